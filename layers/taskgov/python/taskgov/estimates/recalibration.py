"""Correct estimates by the errors of earlier ones.

The error of an estimate is the logarithm of the wait divided by the simulated wait.

* **Waits of days** are often simulated too long: where a queue is overloaded, a small error of the load moves its end
  by days. A simulated wait of d days, if it is longer than one, becomes d ** (1 + `bend`) days. For each day,
  the slope of the errors of all teams over the logarithm of d is taken, and of the last days the median. The better the
  days agree, the more of it is used. The other corrections use the waits that are corrected in this way.
* **Half** (the median) is corrected only by errors that persist over many days. Jobs that wait at the same time have
  correlated errors, so hundreds of errors of one day predict little. Each day of a team therefore counts once, with
  its median error. The better the days agree, the more of their median is corrected.
* **Nine of ten** (the 90th percentile) is multiplied by the factor that would have been enough for nine of ten earlier
  estimates: the 90th percentile of the wait divided by the simulated 90th percentile (conformal prediction). Jobs that
  still wait are censored (Kaplan-Meier, `taskgov.estimates.survival`). The factor does not exceed the errors that
  happened, and it falls again after a burst. A factor below 1 makes estimates narrower, so it needs evidence of many
  days: of its logarithm, each day with a start counts a fourteenth (`DAYS`).
* A team with fewer than `ENOUGH` outcomes takes the median correction of all outcomes together. For the 90th
  percentile, outcomes of all teams replace those that a team lacks to `NEEDED`.

An estimate counts from the moment at which its median is over, whether the job has started or not: otherwise, jobs
that start early would count before those that are late. A job that still waits has waited at least until now.

Source: V. Vovk, A. Gammerman, G. Shafer, "Algorithmic learning in a random world", 2005 (conformal prediction).
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from math import exp, inf, isfinite, log
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.quantiles import NINE, Estimate
from taskgov.estimates.survival import Law

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LAST: Final = 100
"""Number of outcomes in a team's score."""
ENOUGH: Final = 20
"""Outcomes that a team needs for a median correction of its own, and all teams together for any calibration."""
DAY: Final = 86400.0
DAYS: Final = 14
"""Number of last days that correct an estimate."""
OF_A_DAY: Final = 20
"""Number of last outcomes of a day that count for it."""
DOUBT: Final = 8.0
"""In standard errors: a median error this far from 0 is corrected by half."""
DOUBT_OF_BEND: Final = 4.0
"""The same for the bend."""
MOST_BEND: Final = 0.9
LEAST_SQUARE: Final = 0.1
"""The sum of squares of a day's logarithms counts as at least this: estimates of hardly over a day show no slope."""
USUAL: Final = 1.0
"""Prior of the variance between days: the squared deviation of one assumed additional day."""
NEEDED: Final = 50
"""Outcomes that decide the 90th percentile of a team. If it has fewer, those of all teams are added."""
LEAST: Final = -3.0
MOST: Final = 3.0
"""Bounds of the logarithmic correction of the 90th percentile: from a twentieth to 20 times the simulated wait."""
SHORTEST: Final = 30.0
"""Shorter waits count as this, in seconds: errors below it do not matter."""


class Outcome(NamedTuple):
    """An earlier estimate: as simulated (`raw`), as published (`given`), and its outcome, in seconds."""

    team: str
    made: float
    raw: Estimate
    given: Estimate
    start: float
    """When the job started; infinite if it has not."""
    cancelled: bool = False


def known(outcomes: Iterable[Outcome], now: float) -> list[Outcome]:
    """Return the outcomes of estimates whose median is over at `now`: a start after `now` counts as infinite.

    A start before the median does not count earlier: jobs of a burst that start early would correct the estimates of
    the others. Left out are cancelled jobs, and damaged outcomes, whose start is before the estimate.
    """
    return [
        outcome if outcome.start <= now else outcome._replace(start=inf)
        for outcome in outcomes
        if not outcome.cancelled and outcome.made + outcome.given.half < now and outcome.made <= outcome.start
    ]


class Factor(NamedTuple):
    """The factor that the 90th percentile of an earlier estimate needed: the wait divided by what was simulated."""

    needed: float
    started: bool
    """Whether the job has started. If it has not, `needed` is a lower bound."""
    day: float


class Correction(NamedTuple):
    """The correction of a team's estimates, added to the logarithm of the wait, and whether it calibrates them."""

    half: float = 0.0
    nine: float = 0.0
    bend: float = 0.0
    """Added to the exponent of waits in days, if they are longer than one."""
    calibrated: bool = False

    def of(self, raw: Estimate) -> Estimate:
        """Return a simulated estimate, corrected. What was simulated to start later stays later."""
        bent = _bent(raw, self.bend)
        half, nine = _corrected(bent.half, self.half), _corrected(bent.nine, self.nine)
        return Estimate(half, max(half, nine))


def corrections(teams: Iterable[str], outcomes: Sequence[Outcome], now: float) -> dict[str, Correction]:
    """Return the correction of each team, from the outcomes of all teams, oldest first, as far as they are known.

    With fewer than `ENOUGH` known outcomes, estimates stay as they are and are not calibrated.
    """
    known_ones = known(outcomes, now)
    if len(known_ones) < ENOUGH:
        return dict.fromkeys(teams, Correction())
    bend = _bend(known_ones, now)
    by_team: dict[str, list[Outcome]] = {}
    known_ones = [outcome._replace(raw=_bent(outcome.raw, bend)) for outcome in known_ones]
    for outcome in known_ones:
        by_team.setdefault(outcome.team, []).append(outcome)
    half = _persistent_error(known_ones, now)  # of a team with too few outcomes of its own
    needed = {team: factors(own, now) for team, own in by_team.items()}
    found = {}
    for team in teams:
        own, others = by_team.get(team, []), (needed[other] for other in needed if other != team)
        own_half = _persistent_error(own, now) if len(own) >= ENOUGH else half
        found[team] = Correction(own_half, _enough_for_nine(needed.get(team, []), others), bend, calibrated=True)
    return found


def factors(own: Sequence[Outcome], now: float) -> list[Factor]:
    """Return the factors that the 90th percentiles of a team's last known estimates needed, latest first.

    Of the last `DAYS` days with outcomes, the last `2 * LAST` outcomes count, and the last `OF_A_DAY` of each day.
    """
    of_day: Counter[float] = Counter()
    found: list[Factor] = []
    for outcome in reversed(own):
        day = outcome.made // DAY
        if day not in of_day and len(of_day) == DAYS:
            break
        if isfinite(outcome.raw.nine):
            of_day[day] += 1
            if len(found) < 2 * LAST or of_day[day] <= OF_A_DAY:
                waited = min(outcome.start, now) - outcome.made
                needed = max(waited, SHORTEST) / max(outcome.raw.nine, SHORTEST)
                found.append(Factor(needed, outcome.start <= now, day))
    return found


def of_use(outcomes: Sequence[Outcome], now: float) -> list[int]:
    """Return the indexes of the outcomes that may still count. `outcomes` are in the order in which they were made.

    These are the open ones, those whose median is not over, and of the others for each team the last `2 * LAST` and the
    last `OF_A_DAY` of each day.
    """
    settled: Counter[str] = Counter()
    of_day: Counter[tuple[str, float]] = Counter()
    found = []
    for place in reversed(range(len(outcomes))):
        outcome = outcomes[place]
        is_open = outcome.start == inf or now <= outcome.made + outcome.given.half < inf
        if outcome.cancelled or not is_open:
            day = (outcome.team, outcome.made // DAY)
            settled[outcome.team] += 1
            of_day[day] += 1
            if settled[outcome.team] > 2 * LAST and of_day[day] > OF_A_DAY:
                continue
        found.append(place)
    return found[::-1]


def _corrected(seconds: float, move: float) -> float:
    if not isfinite(seconds) or seconds <= 0 or not move:
        return seconds
    return max(seconds, SHORTEST) * exp(move)


def _bent(raw: Estimate, bend: float) -> Estimate:
    return (
        Estimate(*(DAY * (wait / DAY) ** (1.0 + bend) if DAY < wait < inf else wait for wait in raw)) if bend else raw
    )


def _bend(used: Sequence[Outcome], now: float) -> float:
    """Return the slope of errors over the logarithm of days, shrunk towards 0 the less the days agree."""
    days: dict[float, list[tuple[float, float]]] = {}
    for outcome in used:
        if DAY < outcome.raw.half < inf:
            waited = max(min(outcome.start, now) - outcome.made, SHORTEST)
            error = log(waited / outcome.raw.half)
            days.setdefault(outcome.made // DAY, []).append((error, log(outcome.raw.half / DAY)))
    last = [days[day][-OF_A_DAY:] for day in sorted(days)[-DAYS:]]
    slopes = [
        sum(error * days for error, days in day) / max(sum(days**2 for _, days in day), LEAST_SQUARE) for day in last
    ]
    return min(max(_shrunk(slopes, DOUBT_OF_BEND), -MOST_BEND), MOST_BEND)


def _persistent_error(used: Sequence[Outcome], now: float) -> float:
    """Return the median error of the last days, shrunk towards 0 the less the days agree."""
    days: dict[float, list[float]] = {}
    for outcome in used:
        waited = min(outcome.start, now) - outcome.made
        if isfinite(outcome.raw.half) and (outcome.start < inf or waited > outcome.given.half):
            error = log(max(waited, SHORTEST) / max(outcome.raw.half, SHORTEST))
            days.setdefault(outcome.made // DAY, []).append(error)
    return _shrunk([median(days[day][-OF_A_DAY:]) for day in sorted(days)[-DAYS:]], DOUBT)


def _shrunk(errors: Sequence[float], standard_errors: float) -> float:
    """Return the median of errors, by half if it is this many standard errors from 0."""
    if not errors:
        return 0.0
    usual = median(errors)
    square = (USUAL + sum((error - usual) ** 2 for error in errors)) / len(errors)
    doubt = standard_errors**2 * square / len(errors)
    return usual * usual**2 / (usual**2 + doubt)


def _enough_for_nine(own: Sequence[Factor], of_others: Iterable[Sequence[Factor]]) -> float:
    """Return the logarithm of the factor that is enough for nine of ten."""
    others = list(chain.from_iterable(of_others)) if len(own) < NEEDED else []
    lacks = min(max(NEEDED - len(own), 0), len(others))
    seen = [*own, *(others[place * len(others) // lacks] for place in range(lacks))]
    if len(seen) < ENOUGH:
        return 0.0
    law = Law(((factor.needed, factor.started) for factor in seen), next_one=1.0)
    enough = law.quantile(NINE)
    move = min(max(log(max(law.last, 1.0) if enough is None else enough), LEAST), MOST)
    days = len({factor.day for factor in seen if factor.started})
    return move if move > 0 else move * min(days / DAYS, 1.0)
