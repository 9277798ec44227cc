"""What was guaranteed, used, borrowed, lent, idle, waiting and preempted in each hour, by team and instance type.

Amounts are whole numbers of base units times seconds, so that nothing is lost: for each instance type and hour

    guaranteed = own + lent + idle          used = own + borrowed + over quota
    used of all + idle of all + not guaranteed = capacity x measured time + overcommitted

Time that was not measured is in none of them; it is counted by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Self

from taskgov.work.attempt import End
from taskgov.work.standing import NOTHING, Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from taskgov.ports.work import WorkDone
    from taskgov.work.standing import Kind, Place, Standing

HOUR = timedelta(hours=1)


@dataclass(slots=True)
class Spent:
    """What one team had of one instance type: base units times seconds."""

    own: int = 0
    borrowed: int = 0
    over_quota: int = 0
    lent: int = 0
    idle: int = 0
    waiting: int = 0
    preempted: int = 0
    """What preempted attempts had run: work to do again, at most. It counts in the hour of the preemption."""

    def add(self, more: Spent) -> None:
        """Add what was spent at another time."""
        for amount in fields(self):
            setattr(self, amount.name, getattr(self, amount.name) + getattr(more, amount.name))

    @classmethod
    def of(cls, line: Line, seconds: int) -> Self:
        """Return what a line comes to in a time."""
        return cls(
            own=line.own * seconds,
            borrowed=line.borrowed * seconds,
            over_quota=line.over_quota * seconds,
            lent=line.lent * seconds,
            idle=line.idle * seconds,
            waiting=line.waiting * seconds,
        )

    @property
    def guaranteed(self) -> int:
        """Own, lent and idle together."""
        return self.own + self.lent + self.idle

    @property
    def used(self) -> int:
        """Own, borrowed and over quota together."""
        return self.own + self.borrowed + self.over_quota


@dataclass(slots=True)
class Offered:
    """What healthy nodes of one instance type offered: base units times seconds."""

    capacity: int = 0
    not_promised: int = 0
    """The part of capacity that neither a quota nor work over quota had."""
    overcommitted: int = 0
    """What quotas guaranteed, or work held over quota, beyond it."""

    def add(self, more: Offered) -> None:
        """Add what was offered at another time."""
        self.capacity += more.capacity
        self.not_promised += more.not_promised
        self.overcommitted += more.overcommitted


@dataclass(slots=True)
class Usage:
    """What a time came to, by periods (hours, or others that they were put together to)."""

    spent: dict[tuple[datetime, Place], Spent] = field(default_factory=dict)
    offered: dict[tuple[datetime, Kind], Offered] = field(default_factory=dict)
    measured: dict[datetime, int] = field(default_factory=dict)
    """Seconds of each period that were measured."""
    lasted: dict[datetime, int] = field(default_factory=dict)
    """Seconds of each period, measured or not."""

    def by(self, starts: Mapping[datetime, datetime]) -> Usage:
        """Return periods put together: each goes to the one that it is mapped to."""
        together = Usage()
        for (start, place), spent in self.spent.items():
            together.spent.setdefault((starts[start], place), Spent()).add(spent)
        for (start, kind), offered in self.offered.items():
            together.offered.setdefault((starts[start], kind), Offered()).add(offered)
        for start, seconds in self.measured.items():
            together.measured[starts[start]] = together.measured.get(starts[start], 0) + seconds
        for start, seconds in self.lasted.items():
            together.lasted[starts[start]] = together.lasted.get(starts[start], 0) + seconds
        return together


def usage_of(done: WorkDone) -> Usage:
    """Return what a time came to, hour by hour, up to the last measurement."""
    end = min(done.end, done.looked_at) if done.looked_at else done.start
    usage = Usage(lasted=dict(hours_between(done.start, end)))
    meter = _Meter(usage)
    for _, _, happens in sorted(_happenings(done), key=lambda happening: happening[:2]):
        happens(meter)
    for attempt in done.ended:
        if attempt.end is End.EVICTED and attempt.reason.startswith("Preempted") and attempt.run_seconds:
            hour = max(_hour(attempt.ended or end), done.start)
            for held in attempt.held:
                place = attempt.team, held.instance_type, held.resource
                usage.spent.setdefault((hour, place), Spent()).preempted += held.amount * attempt.run_seconds
    return usage


def _happenings(done: WorkDone) -> Iterator[tuple[datetime, int, Callable[[_Meter], None]]]:
    """Yield what changes: when, in which order at the same moment, and how."""
    for span in done.measured:
        yield span.end, 0, partial(_Meter.stop, at=span.end)
        yield span.start, 2, partial(_Meter.start, at=span.start)
    for standing in done.standings:
        yield standing.at, 1, partial(_Meter.stand, standing=standing)


class _Meter:
    """Adds up what stands for as long as it stands and is measured: what does not change costs nothing."""

    def __init__(self, usage: Usage) -> None:
        self.usage = usage
        self.since: datetime | None = None
        """When the present measured time began; None while nobody measures, or nothing is known yet."""
        self.measures = False
        self.is_known = False
        self.lines: dict[Place, tuple[Line, datetime]] = {}
        self.capacity: dict[Kind, tuple[int, datetime]] = {}
        self.promised: dict[Kind, int] = {}

    def start(self, at: datetime) -> None:
        """Begin to measure."""
        self.measures = True
        if self.is_known:
            self._begin(at)

    def stop(self, at: datetime) -> None:
        """Measure no more."""
        for kind in self.capacity:
            self._close_kind(kind, at)
        for place in self.lines:
            self._close_line(place, at)
        if self.since is not None:
            for hour, seconds in hours_between(self.since, at):
                self.usage.measured[self._period(hour)] = self.usage.measured.get(self._period(hour), 0) + seconds
        self.measures, self.since = False, None

    def stand(self, standing: Standing) -> None:
        """Let a standing hold from its moment on."""
        at, lines, capacity = standing.at, dict(standing.lines), dict(standing.capacity)
        if standing.whole:
            lines = dict.fromkeys(self.lines, NOTHING) | lines
            capacity = dict.fromkeys(self.capacity, 0) | capacity
        for kind in {place[1:] for place in lines} | capacity.keys():
            self._close_kind(kind, at)
            self.capacity[kind] = capacity.get(kind, self.capacity.get(kind, (0, at))[0]), at
        for place, line in lines.items():
            before = self._close_line(place, at)
            self.lines[place] = line, at
            more = line.guaranteed + line.over_quota - before.guaranteed - before.over_quota
            self.promised[place[1:]] = self.promised.get(place[1:], 0) + more
        if not self.is_known:
            self.is_known = True
            if self.measures:
                self._begin(at)

    def _begin(self, at: datetime) -> None:
        self.since = at
        self.lines = {place: (line, at) for place, (line, _) in self.lines.items()}
        self.capacity = {kind: (amount, at) for kind, (amount, _) in self.capacity.items()}

    def _close_line(self, place: Place, at: datetime) -> Line:
        """Count a line up to a moment, and return it."""
        line, since = self.lines.get(place, (NOTHING, at))
        if self.since is not None and line != NOTHING:
            for hour, seconds in hours_between(since, at):
                self.usage.spent.setdefault((self._period(hour), place), Spent()).add(Spent.of(line, seconds))
        return line

    def _close_kind(self, kind: Kind, at: datetime) -> None:
        """Count a capacity, and what was guaranteed of it, up to a moment."""
        capacity, since = self.capacity.get(kind, (0, at))
        rest = capacity - self.promised.get(kind, 0)
        if self.since is not None and (capacity or rest):
            for hour, seconds in hours_between(since, at):
                offered = Offered(capacity * seconds, max(rest, 0) * seconds, max(-rest, 0) * seconds)
                self.usage.offered.setdefault((self._period(hour), kind), Offered()).add(offered)

    def _period(self, start: datetime) -> datetime:
        """Return the period that a moment is in: the first one may begin within an hour."""
        return max(_hour(start), min(self.usage.lasted, default=start))


def hours_between(start: datetime, end: datetime) -> Iterator[tuple[datetime, int]]:
    """Yield the parts of a time in each hour: when it begins, and its seconds."""
    while start < end:
        stop = min(end, _hour(start) + HOUR)
        yield start, int((stop - start).total_seconds())
        start = stop


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def apportioned(amounts: Iterable[int], scale: int) -> list[int]:
    """Return amounts divided by `scale`, in whole numbers whose sum is that of all divided: largest remainder.

    Ties go to the first.

    Example:
        >>> apportioned([10, 10, 10, 0], 20)
        [1, 1, 0, 0]

    """
    some = list(amounts)
    whole = [amount // scale for amount in some]
    missing = (2 * sum(some) + scale) // (2 * scale) - sum(whole)
    order = sorted(range(len(some)), key=lambda n: (-(some[n] % scale), n))
    for n in order[:missing]:
        whole[n] += 1
    return whole
