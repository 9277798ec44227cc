"""A day of the record: attempts that ended, measured time, and how quotas stood. JSON lines in gzip.

The file is `work/<cluster>/<day>.jsonl.gz`, with days in UTC. Each line is an object; `record` names its kind:

| `record` | members |
| --- | --- |
| `day` (first line) | the day, and `form`, the version of the format |
| `attempt` | those of `Attempt`, in camelCase |
| `measured` | `from`, `to` |
| `standing` | what changed: rows of team, type, resource and numbers of `Line`; rows of type, resource, capacity |

Athena can read these files directly. Records are merged, and duplicates are stored once, so several writers need no
coordination.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Self

from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.measured import Span, clipped, union
from taskgov.work.standing import Line, Standing

FORM: Final = 1
KEY: Final = "work/{}/{}.jsonl.gz"
"""Format with the cluster's name and the day."""


@dataclass(frozen=True, slots=True)
class Day:
    """A part of the record, of one day or several."""

    attempts: tuple[Attempt, ...] = ()
    """Ended attempts, by end."""
    measured: tuple[Span, ...] = ()
    standings: tuple[Standing, ...] = ()
    """By time. The first of a day is whole."""

    def __bool__(self) -> bool:
        """Return whether it has any record."""
        return bool(self.attempts or self.measured or self.standings)

    def with_(self, more: "Day") -> "Day":
        """Return both parts, merged."""
        return joined((self, more))

    def by_day(self) -> "dict[date, Day]":
        """Return the records by day, cut at midnight (UTC)."""
        days: dict[date, Day] = {}

        def add(day: date, part: Day) -> None:
            days[day] = days.get(day, Day()).with_(part)

        for span in self.measured:
            for day in days_between(span.start, span.end):
                add(day, Day(measured=clipped((span,), midnight(day), midnight(day + timedelta(days=1)))))
        grouped: dict[date, tuple[list[Attempt], list[Standing]]] = {}
        for attempt in self.attempts:
            grouped.setdefault(_ended(attempt).date(), ([], []))[0].append(attempt)
        for standing in self.standings:
            grouped.setdefault(standing.at.date(), ([], []))[1].append(standing)
        for day, (attempts, standings) in grouped.items():
            add(day, Day(attempts=tuple(attempts), standings=tuple(standings)))
        return days

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield one JSON object for each line of the file."""
        for span in self.measured:
            yield {"record": "measured", "from": stamp(span.start), "to": stamp(span.end)}
        for standing in self.standings:
            yield {"record": "standing", **standing_data(standing)}
        for attempt in self.attempts:
            yield {"record": "attempt", **attempt_data(attempt)}

    @classmethod
    def of_lines(cls, lines: Iterable[Mapping[str, Any]]) -> Self:
        """Read what `lines` yields. Raises `LookupError`, `TypeError` or `ValueError` for anything else."""
        attempts, measured, standings = [], [], []
        for line in lines:
            match line["record"]:
                case "attempt":
                    attempts.append(attempt_of(line))
                case "measured":
                    measured.append(Span(moment(line["from"]), moment(line["to"])))
                case "standing":
                    standings.append(standing_of(line))
                case other:
                    raise ValueError(f"it has a record {other!r}")
        return cls(tuple(attempts), tuple(measured), tuple(standings))


def joined(parts: Iterable[Day]) -> Day:
    """Return all parts, merged. If an attempt has several records, the one with the fewest inferred fields is kept."""
    some = tuple(parts)
    attempts: dict[tuple[str, str, int], Attempt] = {}
    for attempt in (attempt for part in some for attempt in part.attempts):
        known = attempts.get(attempt.identity)
        if known is None or _fields_unknown(attempt) < _fields_unknown(known):
            attempts[attempt.identity] = attempt
    standings = {standing.at: standing for part in some for standing in part.standings}
    return Day(
        tuple(sorted(attempts.values(), key=lambda attempt: (_ended(attempt), attempt.uid))),
        union(span for part in some for span in part.measured),
        tuple(standings[at] for at in sorted(standings)),
    )


def to_bytes(part: Day, day: date) -> bytes:
    """Return the file of a day. Equal records give equal bytes."""
    head = {"record": "day", "form": FORM, "day": day.isoformat()}
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (head, *part.lines()))
    return gzip.compress(text.encode(), mtime=0)


def from_bytes(stored: bytes) -> Day:
    """Read what `to_bytes` wrote. Raises `ValueError` for anything else, including another `form`."""
    try:
        head, *lines = map(json.loads, gzip.decompress(stored).splitlines())
        if head["form"] != FORM:
            raise ValueError(f"it is of form {head['form']!r} and not {FORM}")
        return Day.of_lines(lines)
    except (OSError, EOFError, zlib.error, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not a day of the record of work ({type(error).__name__})") from error


def midnight(day: date) -> datetime:
    """Return when a day begins, in UTC."""
    return datetime.combine(day, time(), UTC)


def days_between(start: datetime, end: datetime) -> Iterator[date]:
    """Yield the days (UTC) that a period overlaps."""
    day, last = start.astimezone(UTC).date(), (end - timedelta(microseconds=1)).astimezone(UTC).date()
    while day <= last:
        yield day
        day += timedelta(days=1)


def attempt_data(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as JSON types, without empty values."""
    data = {
        "uid": attempt.uid,
        "number": attempt.number,
        "team": attempt.team,
        "owner": attempt.owner,
        "stem": attempt.stem,
        "kind": attempt.kind,
        "priorityClass": attempt.priority_class,
        "priority": attempt.priority,
        "held": [[held.instance_type, held.resource, held.amount] for held in attempt.held],
        "maximumExecutionTimeSeconds": attempt.max_seconds,
        "created": stamp(attempt.created),
        "queued": stamp(attempt.queued),
        "admitted": attempt.admitted and stamp(attempt.admitted),
        "ended": attempt.ended and stamp(attempt.ended),
        "end": attempt.end,
        "reason": attempt.reason,
        "inferred": list(attempt.inferred),
    }
    return {name: value for name, value in data.items() if value not in (None, "", [])}


def attempt_of(data: Mapping[str, Any]) -> Attempt:
    """Read what `attempt_data` returned."""
    return Attempt(
        uid=str(data["uid"]),
        number=int(data["number"]),
        team=str(data["team"]),
        owner=data.get("owner"),
        stem=str(data["stem"]),
        kind=str(data["kind"]),
        priority_class=data.get("priorityClass"),
        priority=int(data["priority"]),
        held=tuple(Held(str(kind), str(resource), int(n)) for kind, resource, n in data.get("held", ())),
        max_seconds=data.get("maximumExecutionTimeSeconds"),
        created=moment(data["created"]),
        queued=moment(data["queued"]),
        admitted=moment(data["admitted"]) if "admitted" in data else None,
        ended=moment(data["ended"]) if "ended" in data else None,
        end=End(data["end"]) if "end" in data else None,
        reason=str(data.get("reason", "")),
        inferred=tuple(map(str, data.get("inferred", ()))),
    )


def standing_data(standing: Standing) -> dict[str, Any]:
    """Return a standing as JSON types."""
    return {
        "at": stamp(standing.at),
        "whole": standing.whole,
        "lines": [[*place, *_amounts(line)] for place, line in sorted(standing.lines.items())],
        "capacity": [[*kind, amount] for kind, amount in sorted(standing.capacity.items())],
    }


def _amounts(line: Line) -> tuple[int, ...]:
    return line.guaranteed, line.used, line.borrowed, line.lent, line.over_quota, line.waiting


def standing_of(data: Mapping[str, Any]) -> Standing:
    """Read what `standing_data` returned."""
    return Standing(
        moment(data["at"]),
        {(str(team), str(kind), str(what)): Line(*map(int, row)) for team, kind, what, *row in data["lines"]},
        {(str(kind), str(what)): int(amount) for kind, what, amount in data["capacity"]},
        whole=bool(data["whole"]),
    )


def stamp(at: datetime) -> str:
    """Return a time as Kubernetes writes it: UTC, whole seconds."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def moment(text: str) -> datetime:
    """Read what `stamp` wrote. Raises `ValueError` for anything else, and for a time without a time zone."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at


def _ended(attempt: Attempt) -> datetime:
    return attempt.ended or attempt.queued


def _fields_unknown(attempt: Attempt) -> int:
    return len(attempt.inferred) + (attempt.admitted is None)
