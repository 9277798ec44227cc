"""Update the stored estimates after a read of the cluster: settle old ones, add new ones, drop the rest. No I/O.

| the workload of an earlier estimate | the estimate is |
| --- | --- |
| was admitted since, according to the record of work or its own status | settled, with the time of the start |
| ended without a start, or is gone and the estimate is a day old | cancelled, and not scored |
| waits, also in a queue on hold | open; a miss once its time has passed |

An estimate is stored for scoring when its workload has no open one. While the workload waits, another one is stored
each hour of the first day, then each day. A read that is not later than the previous one changes nothing. If the
previous read is an hour or more in the future, the clock was wrong then: everything with a future time is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf, isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.kept import ALL_TEAMS, Kept, KeptEstimates, TeamScore, Waiting
from taskgov.estimates.quantiles import Estimate
from taskgov.estimates.recalibration import LAST, Correction, corrections, known, of_use
from taskgov.estimates.scoring import Scored, score

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from taskgov.estimates.kept import Before

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
LATE: Final = timedelta(minutes=15)
"""Futures are not played more often than this because a job is late."""
MOST_OUTCOMES: Final = 5_000
"""Most outcomes kept for a cluster. The oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The workloads at one read of the cluster. Times are seconds since 1970."""

    at: datetime
    digest: str
    """Digest of the queue (`taskgov.estimates.all_waiting.digest_of`)."""
    waiting: frozenset[str]
    """UIDs of the workloads that wait for quota."""
    present: frozenset[str]
    """UIDs of all workloads that run or wait, also in a queue on hold."""
    held: Mapping[str, int]
    """UID -> since when a running workload holds quota."""
    admitted: Mapping[str, Sequence[int]]
    """UID -> when its attempts were admitted, from the record of work."""
    ended: Mapping[str, int]
    """UID -> when its last ended attempt ended, from the record of work."""


class Drawn(NamedTuple):
    """The simulated waits of a workload, in seconds from the read; infinite beyond the horizon."""

    uid: str
    team: str
    early: float
    raw: Estimate
    futures: int = 0
    """How many futures simulated it."""
    after: tuple[Before, ...] = ()


class Drawing(NamedTuple):
    """The estimates of one read, in queue order; the number of futures, and why some or all are missing."""

    drawn: tuple[Drawn, ...] = ()
    futures: int = 0
    waits: int = 0
    notes: tuple[str, ...] = ()
    is_representative: bool = True
    """Whether enough arrivals were measured (`taskgov.estimates.arrivals`). Otherwise, no estimate is corrected."""


def is_due(before: KeptEstimates | None, seen: Seen) -> bool:
    """Return whether futures are due: the queue has changed, an hour has passed, or a job is late.

    A job is late if it waits although the time of its 90th percentile has passed. Its estimate is then wrong, but a job
    that something else holds back must not cost futures at each read.
    """
    if before is None or before.estimated_at is None or before.digest != seen.digest or before.at > seen.at:
        return True
    age = seen.at - before.estimated_at
    if age < LATE:
        return False
    return bool(seen.waiting) if age >= HOUR else any(_is_late(waiting, seen) for waiting in before.waiting)


def _is_late(waiting: Waiting, seen: Seen) -> bool:
    return waiting.uid in seen.waiting and waiting.is_over(seen.at)


def is_later(before: KeptEstimates | None, seen: Seen) -> bool:
    """Return whether a read is later than the previous one, or that one's clock was wrong."""
    return before is None or before.at < seen.at or before.at >= seen.at + HOUR


def advance(before: KeptEstimates | None, seen: Seen, drawing: Drawing | None, keep_days: int) -> KeptEstimates:
    """Return what is stored after a later read. `drawing` is None if no futures were due."""
    now, at = int(seen.at.timestamp()), seen.at.replace(microsecond=0)
    earlier = before.outcomes if before else ()
    outcomes = [
        _settled(kept, seen)
        for kept in earlier
        if kept.made <= now and now - kept.made < keep_days * DAY.total_seconds()
    ]
    if drawing is None and before is not None:
        bounded = _bounded(outcomes, now)
        return replace(before, at=at, scores=_scores(bounded, now), outcomes=bounded)
    drawing = drawing or Drawing()
    moved = corrections({drawn.team for drawn in drawing.drawn}, [kept.outcome for kept in outcomes], float(now))
    if not drawing.is_representative:
        moved = dict.fromkeys(moved, Correction())
    last = {kept.uid: kept for kept in outcomes if kept.is_open}
    first = {kept.uid: kept for kept in reversed(outcomes) if kept.is_open}
    outcomes += [
        Kept(drawn.uid, drawn.team, now, _rounded(drawn.raw), _rounded(moved[drawn.team].of(drawn.raw)))
        for drawn in drawing.drawn
        if drawn.uid not in last or now - last[drawn.uid].made >= _seconds_between(now - first[drawn.uid].made)
    ]
    bounded = _bounded(outcomes, now)
    return KeptEstimates(
        at=at,
        estimated_at=at,
        digest=seen.digest,
        futures=drawing.futures,
        waiting=tuple(_waiting(drawn, moved[drawn.team], at) for drawn in drawing.drawn),
        waits=drawing.waits,
        notes=drawing.notes,
        scores=_scores(bounded, now),
        outcomes=bounded,
    )


def _settled(kept: Kept, seen: Seen) -> Kept:
    """Return an estimate with the outcome that is known now."""
    if not kept.is_open:
        return kept
    starts = [*seen.admitted.get(kept.uid, ()), *([seen.held[kept.uid]] if kept.uid in seen.held else [])]
    later = [start for start in starts if kept.made <= start <= seen.at.timestamp()]
    if later:
        return replace(kept, start=min(later))
    if kept.uid in seen.present:
        return replace(kept, cancelled=True) if kept.uid in seen.held else kept
    is_lost = seen.at.timestamp() - kept.made >= DAY.total_seconds()
    return replace(kept, cancelled=True) if seen.ended.get(kept.uid, 0) >= kept.made or is_lost else kept


def _waiting(drawn: Drawn, moved: Correction, at: datetime) -> Waiting:
    given = moved.of(drawn.raw)
    early, half, nine = map(_length, (min(drawn.early, given.half), *given))
    return Waiting(drawn.uid, drawn.team, at, early, half, nine, moved.calibrated, drawn.after, drawn.futures)


def _length(seconds: float) -> float | None:
    return float(round(seconds)) if isfinite(seconds) else None


def _rounded(estimate: Estimate) -> Estimate:
    """Return an estimate as it is stored: in whole seconds."""
    return Estimate(*(float(round(length)) if isfinite(length) else inf for length in estimate))


def _seconds_between(age: float) -> float:
    """Return the seconds between two stored estimates of one wait, given the age of the first."""
    return (HOUR if age < DAY.total_seconds() else DAY).total_seconds() - 1


def _bounded(outcomes: Iterable[Kept], now: int) -> tuple[Kept, ...]:
    """Return the outcomes to keep: those that may still count, and at most the newest `MOST_OUTCOMES`."""
    ordered = sorted(outcomes, key=lambda outcome: (outcome.made, outcome.uid))
    places = of_use([kept.outcome for kept in ordered], float(now))
    return tuple(ordered[place] for place in places[-MOST_OUTCOMES:])


def _scores(outcomes: Sequence[Kept], now: int) -> dict[str, TeamScore]:
    """Return how accurate the last settled estimates were, by team and for all."""
    over = known([kept.outcome for kept in outcomes], float(now))
    teams: dict[str, list[Scored]] = {}
    for outcome in over:
        started = outcome.start < inf
        scored = Scored(outcome.team, outcome.given, (outcome.start if started else now) - outcome.made, started)
        for team in (outcome.team, ALL_TEAMS):
            teams.setdefault(team, []).append(scored)
    found = {team: (own[-LAST:], score(own[-LAST:])) for team, own in sorted(teams.items())}
    return {team: TeamScore(len(last), result.half, result.nine) for team, (last, result) in found.items()}
