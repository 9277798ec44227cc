"""What does a look change of the estimates that are kept? Pure decisions: which are settled, due, new, and dropped.

| an earlier estimate | becomes |
| --- | --- |
| its workload was admitted since, by the record of work or by itself | settled, with the moment |
| its workload is gone, or was never seen again for a day | cancelled: it counts for nothing |
| its workload waits | open; a miss once its time has passed |

An estimate is kept when a workload waits and none of its estimates is open; again each hour of the first day, and each
day after that. A look that is not later than the one before adds nothing. After a look an hour and more ahead of now
(the clock was wrong), what has moments ahead of now is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf, isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.kept import ALL_TEAMS, Kept, KeptEstimates, TeamScore, Waiting
from taskgov.estimates.quantiles import Estimate
from taskgov.estimates.recalibration import LAST, corrections, known, of_use
from taskgov.estimates.scoring import Scored, score

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from taskgov.estimates.kept import Before
    from taskgov.estimates.recalibration import Correction

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
MOST_OUTCOMES: Final = 5_000
"""Of a cluster: beyond these the oldest go."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look has of the workloads."""

    at: datetime
    digest: str
    """Of the queue: who waits, who runs, under which quotas."""
    waiting: frozenset[str]
    """UIDs of those that wait for their turn."""
    held: Mapping[str, int]
    """UID -> since when those that run hold quota, in seconds since 1970."""
    admitted: Mapping[str, Sequence[int]]
    """UID -> when its attempts were admitted, by the record of work; each in seconds since 1970."""
    ended: Mapping[str, int]
    """UID -> when its last attempt ended that did, by the record of work; in seconds since 1970."""


class Drawn(NamedTuple):
    """What the futures said of a workload, in seconds from the look; infinite beyond the horizon."""

    uid: str
    team: str
    early: float
    raw: Estimate
    after: tuple[Before, ...] = ()


class Drawing(NamedTuple):
    """What a look drew: estimates in the queue's order, from how many futures, and why there are none or not all."""

    drawn: tuple[Drawn, ...] = ()
    futures: int = 0
    waits: int = 0
    notes: tuple[str, ...] = ()


def is_due(before: KeptEstimates | None, seen: Seen) -> bool:
    """Say whether futures are due: the queue is another one, or an hour is over."""
    if before is None or before.estimated_at is None or before.digest != seen.digest or before.at > seen.at:
        return True
    return bool(seen.waiting) and seen.at - before.estimated_at >= HOUR


def is_later(before: KeptEstimates | None, seen: Seen) -> bool:
    """Say whether a look adds anything: it is later than the one before, or that one's clock was wrong."""
    return before is None or before.at < seen.at or before.at >= seen.at + HOUR


def advance(before: KeptEstimates | None, seen: Seen, drawing: Drawing | None, keep_days: int) -> KeptEstimates:
    """Return what is kept after a look that is later; `drawing` is None where no futures were due."""
    now, at = int(seen.at.timestamp()), seen.at.replace(microsecond=0)
    earlier = before.outcomes if before else ()
    outcomes = [
        _settled(kept, seen)
        for kept in earlier
        if kept.made <= now and now - kept.made < keep_days * DAY.total_seconds()
    ]
    if drawing is None and before is not None:
        bounded = _bounded(outcomes)
        return replace(before, at=at, scores=_scores(bounded, now), outcomes=bounded)
    drawing = drawing or Drawing()
    known_ones = known([kept.outcome for kept in outcomes], float(now))
    moved = corrections({drawn.team for drawn in drawing.drawn}, known_ones, float(now))
    last = {kept.uid: kept for kept in outcomes if kept.is_open}
    first = {kept.uid: kept for kept in reversed(outcomes) if kept.is_open}
    outcomes += [
        Kept(drawn.uid, drawn.team, now, _whole(drawn.raw), _whole(moved[drawn.team].of(drawn.raw)))
        for drawn in drawing.drawn
        if drawn.uid not in last or now - last[drawn.uid].made >= _again(now - first[drawn.uid].made)
    ]
    bounded = _bounded(outcomes)
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
    """Return an estimate with what is known of its workload by now."""
    if not kept.is_open:
        return kept
    starts = [*seen.admitted.get(kept.uid, ()), *([seen.held[kept.uid]] if kept.uid in seen.held else [])]
    later = [start for start in starts if kept.made <= start <= seen.at.timestamp()]
    if later:
        return replace(kept, start=min(later))
    if kept.uid in seen.waiting or kept.uid in seen.held:
        return kept if kept.uid in seen.waiting else replace(kept, cancelled=True)
    is_lost = seen.at.timestamp() - kept.made >= DAY.total_seconds()
    return replace(kept, cancelled=True) if seen.ended.get(kept.uid, 0) >= kept.made or is_lost else kept


def _waiting(drawn: Drawn, moved: Correction, at: datetime) -> Waiting:
    given = moved.of(drawn.raw)
    early, half, nine = map(_length, (min(drawn.early, given.half), *given))
    return Waiting(drawn.uid, drawn.team, at, early, half, nine, moved.calibrated, drawn.after)


def _length(seconds: float) -> float | None:
    return float(round(seconds)) if isfinite(seconds) else None


def _whole(estimate: Estimate) -> Estimate:
    """Return an estimate as it is kept: in whole seconds."""
    return Estimate(*(float(round(length)) if isfinite(length) else inf for length in estimate))


def _again(age: float) -> float:
    """Return how long after the last estimate of a wait another one is kept, by how old the first is."""
    return (HOUR if age < DAY.total_seconds() else DAY).total_seconds() - 1


def _bounded(outcomes: Iterable[Kept]) -> tuple[Kept, ...]:
    """Return what stays: what may still count, and of all the newest."""
    ordered = sorted(outcomes, key=lambda outcome: (outcome.made, outcome.uid))
    places = of_use([kept.outcome for kept in ordered])
    return tuple(ordered[place] for place in places[-MOST_OUTCOMES:])


def _scores(outcomes: Sequence[Kept], now: int) -> dict[str, TeamScore]:
    """Return how good the last estimates were that are known, by team and of all."""
    over = known([kept.outcome for kept in outcomes], float(now))
    teams: dict[str, list[Scored]] = {}
    for outcome in over:
        started = outcome.start < inf
        scored = Scored(outcome.team, outcome.given, (outcome.start if started else now) - outcome.made, started)
        for team in (outcome.team, ALL_TEAMS):
            teams.setdefault(team, []).append(scored)
    found = {team: (own[-LAST:], score(own[-LAST:])) for team, own in sorted(teams.items())}
    return {team: TeamScore(len(last), result.half, result.nine) for team, (last, result) in found.items()}
