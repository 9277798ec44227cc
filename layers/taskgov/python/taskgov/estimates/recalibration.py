"""How far off were earlier estimates, and what does that change of the next one? Adaptive conformal inference.

An estimate's error is the logarithm of the wait divided by what the futures said. The next estimate is moved by a
quantile of the last errors of the team, and which quantile adapts: each miss raises it, each hit lowers it. A team with
few outcomes is corrected by what is known of everybody. Only what was known at the moment counts: a job that still
waits has waited for so long at least, and its quantile is a miss once its time has passed.

Source: I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", 2021.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.quantiles import HALF, NINE, Estimate, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

LAST: Final = 100
"""Outcomes that count."""
ENOUGH: Final = 20
"""Outcomes of a team from which on they stand alone, and of everybody from which on an estimate is calibrated."""
STEP: Final = 0.02
"""By how much a miss or a hit moves the quantile that is taken, times what was off."""
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
    own = [outcome for outcome in known_ones if outcome.team == team][-LAST:]
    used = own if len(own) >= ENOUGH else list(known_ones)[-LAST:]
    if len(used) < ENOUGH:
        return raw, False
    half = _moved(raw.half, HALF, used, now)
    nine = _moved(raw.nine, NINE, used, now)
    return Estimate(half, max(half, nine)), True


def _moved(seconds: float, target: float, used: Sequence[Outcome], now: float) -> float:
    if not isfinite(seconds):
        return seconds
    errors, level = [], target
    for outcome in used:
        said, given = _of(outcome.raw, target), _of(outcome.given, target)
        waited = min(outcome.start, now) - outcome.made
        if outcome.start == inf and waited <= given:
            continue  # neither over nor hit
        level += STEP * (target - (outcome.start < inf and waited <= given))
        if isfinite(said):
            errors.append(log(max(waited, SHORTEST) / max(said, SHORTEST)))
    if len(errors) < ENOUGH:
        return seconds
    errors.sort()
    move = quantile(errors, min(max(level, 0.02), 0.995)) * len(errors) / (len(errors) + ENOUGH)
    return max(seconds, SHORTEST) * exp(move) if seconds > 0 else seconds


def _of(estimate: Estimate, target: float) -> float:
    return estimate.half if target == HALF else estimate.nine
