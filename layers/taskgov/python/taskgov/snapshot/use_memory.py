"""How much each team used in the past: what a single snapshot of the cluster does not show.

`publish_usage` measures every minute and keeps one small JSON document for each cluster; snapshots take from it the
greatest use within a window (demand-aware rebalancing, idle quota) and the GPU-hours of a period (budgets).

A measurement counts for the time since the previous one. If two are further apart than `LONGEST_PAUSE`, the time
between them is a gap: it is neither counted nor called observed. A second measurement at the same moment, or a little
before the last one (clocks differ), adds no time; a clock that was set back by more starts again. All days are days in
UTC.

What is kept stays small. An hourly peak that a later hour reaches is forgotten: it can never again be
the greatest of a window that ends now. Where there are still many, the two that differ least are kept as one, with the
greater use in the later hour: a peak is never less than what was seen. GPU time is kept by the day, for as long as the
longest period of a budget.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final, Literal, Self

from taskgov.snapshot.kept_forms import UseForm, read_kept
from taskgov.snapshot.model import BudgetUse, ObservedUse

LONGEST_PAUSE: Final = timedelta(minutes=15)
"""As long as publishing may be silent before its alarm."""
PEAKS_KEPT: Final = timedelta(days=93)
"""The longest window of demand (92 days), and the hour that it cuts."""
MOST_PEAKS: Final = 48
"""Peaks of one place: 1,000 teams with 15 types each have a document of 16 MB at most."""
DAYS_KEPT: Final = 31
"""The longest period of a budget is a month."""
SEVENTHS: Final = 7
"""Accelerators are counted in sevenths, so that a partition (MIG) is a whole number."""
HOUR: Final = 3600
GZIP: Final = b"\x1f\x8b"

Place = tuple[str, str]
"""A team and an instance type."""
Period = Literal["day", "week", "month"]
Peak = tuple[int, int]
"""An hour since the epoch, and the greatest use in it: thousandths of an instance, rounded up."""


@dataclass(frozen=True, slots=True)
class UseNow:
    """What teams use at one moment. Every place that is watched is there, also with nothing."""

    instances: Mapping[Place, Fraction] = field(default_factory=dict)
    """Instances, by the resource of which most is used."""
    accelerators: Mapping[str, int] = field(default_factory=dict)
    """Team -> accelerators of every kind, in sevenths."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One place: since when it is watched without a gap, and its peaks, oldest and greatest first."""

    since: datetime
    peaks: tuple[Peak, ...] = ()


@dataclass(frozen=True, slots=True)
class UseMemory:
    """The memory of a cluster's use. `at` is the time of the last measurement, None before the first."""

    at: datetime | None = None
    watched: Mapping[Place, Watched] = field(default_factory=dict)
    spent: Mapping[str, Mapping[date, int]] = field(default_factory=dict)
    """Team -> day -> seconds of accelerators in sevenths."""

    def to_bytes(self) -> bytes:
        """Return the memory as compressed JSON: the same memory gives the same bytes."""
        watched: dict[str, dict[str, Any]] = {}
        for (team, instance_type), watch in self.watched.items():
            watched.setdefault(team, {})[instance_type] = {"since": watch.since.isoformat(), "peaks": watch.peaks}
        document = {
            "version": 1,
            "at": self.at.isoformat() if self.at else None,
            "watched": watched,
            "spent": {team: {day.isoformat(): n for day, n in days.items()} for team, days in self.spent.items()},
        }
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return gzip.compress(text.encode(), compresslevel=1, mtime=0)

    @classmethod
    @lru_cache(maxsize=1)
    def from_bytes(cls, stored: bytes | None) -> Self:
        """Read what `to_bytes` wrote, or JSON as it is; None (nothing was kept yet) is an empty memory.

        A measurement reads the same document for the snapshot and to add to it: it is parsed once.
        Raises `ValueError` for anything else: a guess would lower promises or forget what was spent.
        """
        if stored is None:
            return cls()
        kept = read_kept(UseForm, _unpacked(stored), "the memory of use")
        watched = {
            (team, instance_type): Watched(watch.since, watch.peaks)
            for team, types in kept.watched.items()
            for instance_type, watch in types.items()
        }
        return cls(kept.at, watched, kept.spent)


def remember_use(memory: UseMemory, use: UseNow, now: datetime) -> UseMemory:
    """Return the memory after a measurement at `now`. A place that is gone is dropped, but not its use."""
    now = now.astimezone(UTC).replace(microsecond=0)
    if memory.at is not None and memory.at - now > LONGEST_PAUSE:
        memory = _until(memory, now)
    gap = memory.at is None or now - memory.at > LONGEST_PAUSE
    start = now if gap or memory.at is None else memory.at
    at = max(start, now)
    return UseMemory(at, _watched(memory, use, at, gap=gap), _spent(memory, use, start, at))


def observed_use(
    memory: UseMemory, use: UseNow, pending: frozenset[Place], now: datetime, window_hours: int
) -> tuple[ObservedUse, ...]:
    """Return what each place used at most in the window that ends now; nothing if the last measurement is too long ago.

    `use` and `pending` (where work waits) are of this moment: growth shows at once.
    """
    if memory.at is None or abs(now - memory.at) > LONGEST_PAUSE:
        return ()
    window = timedelta(hours=window_hours)
    return tuple(
        ObservedUse(
            team=place[0],
            instance_type=place[1],
            hours=min(window, max(now - watch.since, timedelta())) / timedelta(hours=1),
            peak_instances=max(_greatest(watch.peaks, now - window), _thousandths(use.instances.get(place))) / 1000,
            pending=place in pending,
        )
        for place, watch in sorted(memory.watched.items())
    )


def budget_use(memory: UseMemory, team: str, period: Period, now: datetime) -> BudgetUse | None:
    """Return the GPU-hours of the running period; None before the first measurement."""
    if memory.at is None:
        return None
    start = period_start(period, now)
    spent = sum(amount for day, amount in memory.spent.get(team, {}).items() if start.date() <= day <= now.date())
    return BudgetUse(team, start, round(spent / (SEVENTHS * HOUR), 6), period)


def period_start(period: Period, now: datetime) -> datetime:
    """Return when the running day, week (from Monday) or month began, in UTC.

    >>> period_start("week", datetime(2026, 11, 20, 12, tzinfo=UTC)).isoformat()
    '2026-11-16T00:00:00+00:00'
    """
    today = now.astimezone(UTC).date()
    first = {"day": today, "week": today - timedelta(days=today.weekday()), "month": today.replace(day=1)}[period]
    return _midnight(first)


def _unpacked(stored: bytes) -> bytes:
    if not stored.startswith(GZIP):
        return stored
    try:
        return gzip.decompress(stored)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"the memory of use is damaged ({type(error).__name__})") from error


def _watched(memory: UseMemory, use: UseNow, at: datetime, *, gap: bool) -> dict[Place, Watched]:
    found: dict[Place, Watched] = {}
    for place, instances in use.instances.items():
        before = memory.watched.get(place, Watched(since=at))
        since = at if gap else before.since
        found[place] = Watched(since, _with_peak(before.peaks, (_hour(at), _thousandths(instances))))
    return found


def _with_peak(peaks: tuple[Peak, ...], new: Peak) -> tuple[Peak, ...]:
    """Add the newest peak: those that it reaches go, and it goes when its hour has a greater one."""
    oldest = new[0] - int(PEAKS_KEPT / timedelta(hours=1))
    kept = tuple(peak for peak in peaks if peak[0] >= oldest and peak[1] > new[1])
    return kept if new[1] == 0 or (kept and kept[-1][0] == new[0]) else _fewer((*kept, new))


def _fewer(peaks: tuple[Peak, ...]) -> tuple[Peak, ...]:
    """Return no more peaks than are kept: two that differ least become one (ties: the oldest)."""
    if len(peaks) <= MOST_PEAKS:
        return peaks
    place = min(range(len(peaks) - 1), key=lambda number: peaks[number][1] - peaks[number + 1][1])
    together = (peaks[place + 1][0], peaks[place][1])
    return (*peaks[:place], together, *peaks[place + 2 :])


def _greatest(peaks: tuple[Peak, ...], since: datetime) -> int:
    """Return the greatest peak of the hours that reach into the window: its first hour counts as a whole."""
    return next((value for hour, value in peaks if hour >= _hour(since)), 0)


def _spent(memory: UseMemory, use: UseNow, start: datetime, end: datetime) -> dict[str, dict[date, int]]:
    oldest = end.date() - timedelta(days=DAYS_KEPT)
    spent = {team: {day: n for day, n in days.items() if day >= oldest} for team, days in memory.spent.items()}
    for team, accelerators in use.accelerators.items():
        for day, seconds in _by_day(start, end):
            days = spent.setdefault(team, {})
            days[day] = days.get(day, 0) + accelerators * seconds
    return {team: kept for team, days in spent.items() if (kept := {day: n for day, n in days.items() if n})}


def _by_day(start: datetime, end: datetime) -> Iterator[tuple[date, int]]:
    """Split a time at the midnights in it."""
    while start < end:
        stop = min(end, _midnight(start.date() + timedelta(days=1)))
        yield start.date(), int((stop - start).total_seconds())
        start = stop


def _until(memory: UseMemory, now: datetime) -> UseMemory:
    """Forget what is in the future of a clock that was set back, and the last measurement."""
    watched = {
        place: replace(watch, peaks=tuple(peak for peak in watch.peaks if peak[0] <= _hour(now)))
        for place, watch in memory.watched.items()
    }
    spent = {team: {day: n for day, n in days.items() if day <= now.date()} for team, days in memory.spent.items()}
    return UseMemory(None, watched, spent)


def _thousandths(instances: Fraction | None) -> int:
    return ceil((instances or 0) * 1000)


def _hour(at: datetime) -> int:
    return int(at.timestamp()) // HOUR


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
