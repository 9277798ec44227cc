"""Report what a snapshot of a cluster shows: an event on the bus for each, and notices to the topics of the teams.

Each measurement may send notices, one at a time: a turn in the table separates two measurements, and the memory in the
bucket keeps what was sent. If the memory is lost, marks in the table show what was sent within the last thirty days.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final

from taskgov.contracts.task_events import DETAIL_TYPE_OF, TaskEvent, TaskPreempted, TeamStarved
from taskgov.errors import InvalidRequestError, UpstreamError
from taskgov.policy.notices import NoticeRules
from taskgov.ports import Clock, DocumentStore, EventBus, StateStore, TeamTopics
from taskgov.services.failures import said_of
from taskgov.services.happenings import happenings, place_of, starved_id
from taskgov.services.told_memory import Channel, Held, ToldMemory
from taskgov.services.told_notices import chat, mail, subject
from taskgov.snapshot.model import Snapshot
from taskgov.usage.starved import Starved

KEY: Final = "memory/{}/told.json"
TOLD: Final = "told-"
"""How the marks in the table begin."""
MOST_AT_ONCE: Final = 2_000
"""New events of one measurement: sending them takes seconds. The others are found again a minute later."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The memory after a measurement, before anything is sent."""

    stored: ToldMemory
    after: ToldMemory
    new: frozenset[str]
    """Identities that were not reported before."""

    def is_idle(self, rules: NoticeRules, now: datetime) -> bool:
        """Return whether there is nothing to write down or to send."""
        return self.after == self.stored and not self.after.due and not self.after.to_send(rules, now)


@dataclass(frozen=True, slots=True)
class TellTeams:
    """Sends events to teams about their tasks. Its fields are the ports it uses."""

    documents: DocumentStore
    state: StateStore
    bus: EventBus
    topics: TeamTopics
    clock: Clock

    def __call__(self, snapshot: Snapshot, starved: tuple[Starved, ...], counted: Collection[str]) -> tuple[str, ...]:
        """Report what is new, and return the topics that could not be reached, with the reason: they are tried again.

        `starved` is who is starved in the snapshot (`taskgov.usage.starved`). Preemptions that are not in `counted`
        (`preempted_id`) wait: what teams were notified of is taken as counted.

        Raises UpstreamError when the bus does not take an event, after everything else is done; the next measurement
        tries again. Raises InvalidRequestError for a memory that somebody damaged.
        """
        now, rules = self.clock.now(), _rules(snapshot)
        if self._look(snapshot, starved, counted, now).is_idle(rules, now):
            return ()
        turn = self.state.take_turn(snapshot.cluster.arn, now)
        if turn is None:
            return ()  # another measurement reports; the next one finds what only this one saw
        try:
            return self._tell(snapshot, starved, counted, now)
        finally:
            self.state.end_turn(snapshot.cluster.arn, turn)

    def _tell(
        self, snapshot: Snapshot, starved: tuple[Starved, ...], counted: Collection[str], now: datetime
    ) -> tuple[str, ...]:
        look = self._look(snapshot, starved, counted, now)  # once more: another measurement may have reported meanwhile
        memory = look.after
        if memory != look.stored:
            self._put(snapshot, memory)
        for mark in sorted({_mark(event) for event in memory.due if event.id in look.new}):
            self.state.count_once(snapshot.cluster.arn, mark, now)
        refused = self.bus.publish_all([(DETAIL_TYPE_OF[type(event)], event.to_json()) for event in memory.due])
        told = memory.after_bus([event for place, event in enumerate(memory.due) if place in refused])
        if told != memory:
            self._put(snapshot, told)
        untold = self._send(snapshot, told, _rules(snapshot), now)
        if refused:
            why = refused[min(refused)]
            raise UpstreamError(f"{len(refused)} of {len(memory.due)} events were not taken by the bus: {why}")
        return untold

    def _send(self, snapshot: Snapshot, memory: ToldMemory, rules: NoticeRules, now: datetime) -> tuple[str, ...]:
        """Send what is due, and write each down; what is sent again after a crash is one notice at most."""
        untold = []
        for channel, held in memory.to_send(rules, now) if snapshot.policy else ():
            topic = channel.topic(rules) or ""
            try:
                if channel.is_within(self.topics.begin_with, rules):  # else the document names it no more
                    self._notice(snapshot, channel, held, topic, rules.lines_per_notice)
            except Exception as error:  # noqa: BLE001 - an error of one topic is named, and the others are notified
                untold.append(f"{topic}, of {channel.team}: {said_of(error)}")
            else:
                memory = memory.after_notice(channel, now)
                self._put(snapshot, memory)
        return tuple(untold)

    def _notice(self, snapshot: Snapshot, channel: Channel, held: Held, topic: str, lines: int) -> None:
        name, team = snapshot.cluster.name, channel.team
        if channel.form == "mail":
            self.topics.send(topic, subject(held, name, team), mail(held, name, team, lines))
        else:
            self.topics.send_chat(topic, chat(held, name, snapshot.cluster.arn, team, lines))

    def _look(self, snapshot: Snapshot, starved: tuple[Starved, ...], counted: Collection[str], now: datetime) -> _Look:
        stored, rules = self.documents.find(_key(snapshot)), _rules(snapshot)
        before = _read(snapshot, stored)
        memory = before.with_starved(map(place_of, starved), snapshot.taken_at)
        seen = happenings(snapshot, starved, memory.starved, rules)
        if stored is None:
            memory = replace(memory, told=self._marked(snapshot, memory, seen, now))
        new = [
            event
            for event in seen
            if event.id not in memory.told and (event.id in counted or not isinstance(event, TaskPreempted))
        ][:MOST_AT_ONCE]
        known = [event for event in seen if event.id in memory.told]
        after = memory.with_seen((*known, *new), rules, self.topics.begin_with, now)
        after = replace(after, counted=frozenset(counted) - after.told.keys())
        return _Look(before, after, frozenset(event.id for event in new))

    def _marked(
        self, snapshot: Snapshot, memory: ToldMemory, seen: Collection[TaskEvent], now: datetime
    ) -> dict[str, date]:
        """Return what was reported before the memory was lost, as far as it still exists.

        A team that is starved while the memory is lost, and was notified within the last thirty days, is not notified
        again.
        """
        if not seen and not memory.starved:
            return {}  # nothing to compare: a cluster without a memory that is at rest asks the table for nothing
        marks = self.state.all_counted(snapshot.cluster.arn, TOLD)
        told = [event.id for event in seen if _mark(event) in marks]
        told += [starved_id(place, since) for place, since in memory.starved.items() if _starved_mark(place) in marks]
        return dict.fromkeys(told, now.date())

    def _put(self, snapshot: Snapshot, memory: ToldMemory) -> None:
        self.documents.put(_key(snapshot), memory.to_json(), "application/json")


def known_before(documents: DocumentStore, snapshot: Snapshot) -> Collection[str]:
    """Return what was counted before: what teams were notified of, or will be. Nothing without a readable memory."""
    try:
        memory = _read(snapshot, documents.find(_key(snapshot)))
    except InvalidRequestError:  # the report names it
        return ()
    return memory.told.keys() | memory.counted


def _rules(snapshot: Snapshot) -> NoticeRules:
    return snapshot.policy.notice_rules if snapshot.policy else NoticeRules()


def _key(snapshot: Snapshot) -> str:
    return KEY.format(snapshot.cluster.name)


def _read(snapshot: Snapshot, stored: bytes | None) -> ToldMemory:
    try:
        return ToldMemory.from_json(stored)
    except ValueError as error:
        key = _key(snapshot)
        raise InvalidRequestError(f"{key} cannot be read ({error}); delete it, and marks show what was sent") from error


def _mark(event: TaskEvent) -> str:
    """Return what stays in the table: of starvation the place, since its beginning is in the memory alone."""
    if isinstance(event, TeamStarved):
        return _starved_mark(f"{event.team} {event.instance_type} {event.resource}")
    return f"{TOLD}{event.id}"


def _starved_mark(place: str) -> str:
    return f"{TOLD}starved-{place}"
