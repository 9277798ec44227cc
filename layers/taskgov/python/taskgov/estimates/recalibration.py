"""Estimates are corrected by how far off earlier ones were.

An estimate's error is the logarithm of the wait divided by what the futures said. The half is moved by the median error
of the last outcomes of the team. Nine of ten follows its outcomes: each miss raises it by nine steps, each hit lowers
it by one, so that in the long run it is missed once in ten (adaptive conformal inference). Jobs that wait together
share their fate; so the half, which should be precise, moves less than its outcomes, and only nine of ten follows
them quickly. A team with few outcomes is corrected by what is known of everybody. Only what was known at the moment
counts: a job that still waits has waited for so long at least, and its quantile is a miss once its time has passed.

Source: I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", 2021.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.quantiles import HALF, NINE, Estimate, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

LAST: Final = 100
"""Outcomes by which it is said how good estimates were."""
WINDOW: Final = 2 * LAST
"""Outcomes that count for the next one."""
ENOUGH: Final = 20
"""Outcomes of a team from which on they stand alone, and of everybody from which on an estimate is calibrated."""
FULL: Final = 100
"""With so many outcomes an error is corrected by half of it."""
STEP: Final = 0.03
"""By how much a hit lowers the logarithm of nine of ten, times 0.1; a miss raises it, times 0.9."""
LEAST: Final = -3.0
MOST: Final = 3.0
"""Nine of ten is moved no further: from a twentieth to 20 times what the futures said."""
SHORTEST: Final = 30.0
"""Waits below are as this, in seconds: nobody minds an error of them."""


class Outcome(NamedTuple):
    """An earlier estimate: what the futures said, what was given, and how it came. All in seconds, but `made`."""

    team: str
    made: float
    raw: Estimate
    given: Estimate
    start: float
    """When the job started; infinite where it has not."""
    cancelled: bool = False


def known(outcomes: Sequence[Outcome], now: float) -> list[Outcome]:
    """Return what of the outcomes is known at a moment: of a start later than now only that it is later.

    Estimates that were made later, or whose time is neither over nor hit, are left out; so are cancelled jobs.
    """
    return [
        outcome if outcome.start <= now else outcome._replace(start=inf)
        for outcome in outcomes
        if not outcome.cancelled
        and outcome.made < now
        and (outcome.start <= now or outcome.made + outcome.given.half < now)
    ]


def recalibrated(raw: Estimate, team: str, known_ones: Sequence[Outcome], now: float) -> tuple[Estimate, bool]:
    """Return an estimate moved by the outcomes that are known, oldest first, and whether it is calibrated.

    With fewer than `ENOUGH` outcomes of anybody it stays as it is, and is not calibrated.
    """
    own = [outcome for outcome in known_ones if outcome.team == team][-WINDOW:]
    if len(own) >= ENOUGH:
        half, nine = _usual_error(own, HALF, now), _followed(own, now)
    elif len(known_ones) >= ENOUGH:
        used = known_ones[-WINDOW:]
        half, nine = _usual_error(used, HALF, now), _usual_error(used, NINE, now)
    else:
        return raw, False
    given = _moved(raw.half, half), _moved(raw.nine, nine)
    return Estimate(given[0], max(given)), True


def _moved(seconds: float, move: float) -> float:
    if not isfinite(seconds) or seconds <= 0 or not move:
        return seconds
    return max(seconds, SHORTEST) * exp(move)


def _usual_error(used: Sequence[Outcome], target: float, now: float) -> float:
    """Return the quantile of the errors of what the futures said, nearer to 0 the fewer there are."""
    errors = []
    for outcome in used:
        said, waited = _of(outcome.raw, target), min(outcome.start, now) - outcome.made
        if isfinite(said) and (outcome.start < inf or waited > _of(outcome.given, target)):
            errors.append(log(max(waited, SHORTEST) / max(said, SHORTEST)))
    if len(errors) < ENOUGH:
        return 0.0
    return quantile(sorted(errors), target) * len(errors) / (len(errors) + FULL)


def _followed(used: Sequence[Outcome], now: float) -> float:
    """Return by how much nine of ten was moved last, and a step for each hit and miss that was known since."""
    last = next((outcome for outcome in reversed(used) if 0 < outcome.raw.nine < inf), None)
    if last is None:
        return 0.0
    move = log(max(last.given.nine, SHORTEST) / max(last.raw.nine, SHORTEST))
    for outcome in used:
        over = outcome.made + outcome.given.nine
        if last.made < min(outcome.start, over) <= now:
            move += STEP * (NINE - (outcome.start <= over))
    return min(max(move, LEAST), MOST)


def _of(estimate: Estimate, target: float) -> float:
    return estimate.half if target == HALF else estimate.nine
