"""Which notices teams got, and which are still to be sent: one small JSON document for each cluster.

It is written before anything is sent, and again after each notice. So nothing that was seen is lost when a function
stops, and only what was sent at that very moment can be sent twice. Everything here is a pure function of
the memory before, what a measurement found, and the time.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal, Self

from taskgov.contracts.task_events import DETAIL_TYPE_OF, DETAIL_TYPES, TaskEvent
from taskgov.policy.notices import NoticeRules, Occasion
from taskgov.services.happenings import OCCASIONS

KEPT_DAYS: Final = 2
"""How long an identity is kept after it was seen last: longer than a preemption is reported."""
HELD: Final = 100
"""Events that wait for one notice with their names; of the others only the number is kept."""
HOUR: Final = timedelta(hours=1)
VERSION: Final = 1
Form = Literal["mail", "chat"]


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """One way to one team."""

    team: str
    form: Form

    def topic(self, rules: NoticeRules) -> str | None:
        """Return the ARN of its topic, or None when it has none."""
        return (rules if self.form == "mail" else rules.chat).topic_of(self.team)

    def is_within(self, reach: str, rules: NoticeRules) -> bool:
        """Return whether it has a topic whose ARN begins with `reach`: the function may write to no other."""
        topic = self.topic(rules)
        return topic is not None and topic.startswith(reach)


@dataclass(frozen=True, slots=True)
class Held:
    """What waits for the next notice: the first events, oldest first, and how many there are of each kind in all."""

    events: tuple[TaskEvent, ...] = ()
    counts: Mapping[Occasion, int] = field(default_factory=dict)

    def and_(self, event: TaskEvent) -> "Held":
        """Return it with one more event."""
        occasion = OCCASIONS[type(event)]
        counts = {**self.counts, occasion: self.counts.get(occasion, 0) + 1}
        return Held(self.events if len(self.events) >= HELD else (*self.events, event), counts)


@dataclass(frozen=True, slots=True)
class ToldMemory:
    """The memory of one cluster."""

    told: Mapping[str, date] = field(default_factory=dict)
    """Identity of what was seen and is reported, or about to be -> the day on which it was seen last."""
    counted: frozenset[str] = frozenset()
    """Preemptions (`preempted_id`) that were counted, and teams are not notified of yet."""
    starved: Mapping[str, datetime] = field(default_factory=dict)
    """Place (`happenings.place_of`) -> since when each measurement finds it starved."""
    due: tuple[TaskEvent, ...] = ()
    """Events that the bus has not taken yet."""
    held: Mapping[Channel, Held] = field(default_factory=dict)
    sent: Mapping[Channel, tuple[datetime, ...]] = field(default_factory=dict)
    """When notices were sent within the last hour."""

    def with_starved(self, places: Iterable[str], now: datetime) -> "ToldMemory":
        """Return it with since when each place is starved; those that are not any more are forgotten."""
        return replace(self, starved={place: self.starved.get(place, _second(now)) for place in sorted(places)})

    def with_seen(self, seen: Iterable[TaskEvent], rules: NoticeRules, reach: str, now: datetime) -> "ToldMemory":
        """Return it with what a measurement found: what is new is due on the bus, and held for the topics of its team.

        Topics are those within `reach` (`Channel.is_within`).
        """
        told, due, held = dict(self.told), list(self.due), dict(self.held)
        for event in seen:
            if event.id not in told:
                due.append(event)
                for channel in _channels(event, rules, reach):
                    held[channel] = held.get(channel, Held()).and_(event)
            told[event.id] = now.date()
        oldest = now.date() - timedelta(days=KEPT_DAYS)
        return replace(self, told={key: day for key, day in told.items() if day >= oldest}, due=tuple(due), held=held)

    def to_send(self, rules: NoticeRules, now: datetime) -> tuple[tuple[Channel, Held], ...]:
        """Return the notices to send now, by team: none in quiet hours, none beyond the number for an hour."""
        if rules.is_quiet(now):
            return ()
        return tuple(
            (channel, held)
            for channel, held in sorted(self.held.items())
            if sum(now - at < HOUR for at in self.sent.get(channel, ())) < rules.notices_per_hour
        )

    def after_bus(self, refused: Iterable[TaskEvent]) -> "ToldMemory":
        """Return it when the bus has taken what was due, but for these."""
        return replace(self, due=tuple(refused))

    def after_notice(self, channel: Channel, now: datetime) -> "ToldMemory":
        """Return it when a notice was sent."""
        sent = {**self.sent, channel: (*self.sent.get(channel, ()), _second(now))}
        recent = {key: tuple(at for at in times if now - at < HOUR) for key, times in sent.items()}
        held = {key: of_channel for key, of_channel in self.held.items() if key != channel}
        return replace(self, held=held, sent={key: times for key, times in recent.items() if times})

    def to_json(self) -> bytes:
        """Return the memory as canonical JSON: the same memory gives the same bytes."""
        document = {
            "version": VERSION,
            "told": {key: day.isoformat() for key, day in self.told.items()},
            "counted": sorted(self.counted),
            "starved": {place: at.isoformat() for place, at in self.starved.items()},
            "due": [_event_to_json(event) for event in self.due],
            "held": [_held_to_json(channel, held) for channel, held in sorted(self.held.items())],
            "sent": [
                {**_channel_to_json(channel), "at": [at.isoformat() for at in times]}
                for channel, times in sorted(self.sent.items())
            ],
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes | None) -> Self:
        """Read what `to_json` wrote; None is an empty memory. Raises `ValueError` (also as pydantic's) otherwise."""
        if text is None:
            return cls()
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("version") != VERSION:
            raise ValueError(f"the memory of notices is not a version {VERSION} document")
        try:
            return cls(
                told={str(key): date.fromisoformat(day) for key, day in document["told"].items()},
                counted=frozenset(map(str, document.get("counted", ()))),
                starved={str(place): datetime.fromisoformat(at) for place, at in document["starved"].items()},
                due=tuple(map(_event_from_json, document["due"])),
                held={_channel_from_json(channel): _held_from_json(channel) for channel in document["held"]},
                sent={
                    _channel_from_json(channel): tuple(map(datetime.fromisoformat, channel["at"]))
                    for channel in document["sent"]
                },
            )
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _channels(event: TaskEvent, rules: NoticeRules, reach: str) -> tuple[Channel, ...]:
    both = (Channel(event.team, "mail"), Channel(event.team, "chat"))
    if OCCASIONS[type(event)] not in rules.about:
        return ()
    return tuple(channel for channel in both if channel.is_within(reach, rules))


def _event_to_json(event: TaskEvent) -> dict[str, Any]:
    return {"detailType": DETAIL_TYPE_OF[type(event)], "detail": event.to_json()}


def _event_from_json(data: Any) -> TaskEvent:
    return DETAIL_TYPES[data["detailType"]].model_validate(data["detail"])


def _channel_to_json(channel: Channel) -> dict[str, str]:
    return {"team": channel.team, "form": channel.form}


def _channel_from_json(data: Any) -> Channel:
    if data["form"] not in ("mail", "chat"):
        raise ValueError(f"{data['form']!r} is not a form of a notice")
    return Channel(str(data["team"]), data["form"])


def _held_to_json(channel: Channel, held: Held) -> dict[str, Any]:
    counts = {kind.value: number for kind, number in held.counts.items()}
    return {**_channel_to_json(channel), "events": [_event_to_json(event) for event in held.events], "counts": counts}


def _held_from_json(data: Any) -> Held:
    counts = {Occasion(kind): int(number) for kind, number in data["counts"].items()}
    return Held(tuple(map(_event_from_json, data["events"])), counts)


def _second(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(microsecond=0)
