"""Estimates are corrected by how far off earlier ones were.

An estimate's error is the logarithm of the wait divided by what the futures said. Jobs that wait together share their
fate, so hundreds of errors of one day say little about the next. The half is precise as the futures give it, and is
moved only by what they get wrong on many days: each day of a team counts once, by its median error, and the more days
agree, the more of their median is corrected. Nine of ten follows its outcomes: each miss raises it by nine steps, each
hit lowers it by one, so that in the long run it is missed once in ten (adaptive conformal inference). A team without
outcomes begins where the teams are in the middle. Only what was known at the moment counts: a job that still waits has
waited for so long at least, and its quantile is a miss once its time has passed.

Source: I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", 2021.
"""

from __future__ import annotations

from collections import Counter
from math import exp, inf, isfinite, log
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.quantiles import NINE, Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LAST: Final = 100
"""Outcomes by which it is said how good estimates were."""
ENOUGH: Final = 20
"""Outcomes of a team from which on its half is corrected by them alone, and of everybody to be calibrated."""
DAY: Final = 86400.0
DAYS: Final = 14
"""Days of a team by which its half is corrected."""
OF_A_DAY: Final = 20
"""Outcomes of a team and day that count for it, its last."""
DOUBT: Final = 8.0
"""Standard errors: where the median of the days is as far from 0, half of it is corrected."""
USUAL: Final = 1.0
"""Square of the errors of days that is assumed of one day more than there are."""
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


class Correction(NamedTuple):
    """How estimates of a team are moved at a moment, on the scale of logarithms, and whether that calibrates them."""

    half: float = 0.0
    nine: float = 0.0
    calibrated: bool = False

    def of(self, raw: Estimate) -> Estimate:
        """Return what the futures said, moved."""
        half, nine = _moved(raw.half, self.half), _moved(raw.nine, self.nine)
        return Estimate(half, max(half, nine))


def corrections(teams: Iterable[str], known_ones: Sequence[Outcome], now: float) -> dict[str, Correction]:
    """Return the correction of each team by the outcomes of everybody that are known, oldest first.

    With fewer than `ENOUGH` of them estimates stay as they are, and are not calibrated.
    """
    if len(known_ones) < ENOUGH:
        return dict.fromkeys(teams, Correction())
    by_team: dict[str, list[Outcome]] = {}
    for outcome in known_ones:
        by_team.setdefault(outcome.team, []).append(outcome)
    # What holds for a team with too few outcomes of its own.
    half, nine = _usual_error(known_ones, now), _middle(by_team.values())
    found = {}
    for team in teams:
        own = by_team.get(team, [])
        own_half = _usual_error(own, now) if len(own) >= ENOUGH else half
        own_nine = _followed(own, now)
        found[team] = Correction(own_half, nine if own_nine is None else own_nine, calibrated=True)
    return found


def of_use(outcomes: Sequence[Outcome]) -> list[int]:
    """Return the places of outcomes that may still count; they stand in the order in which they were made.

    These are the open ones, and of each team the last `2 * LAST` and the last `OF_A_DAY` of each day.
    """
    settled: Counter[str] = Counter()
    of_day: Counter[tuple[str, float]] = Counter()
    found = []
    for place in reversed(range(len(outcomes))):
        outcome = outcomes[place]
        if outcome.start < inf or outcome.cancelled:
            day = (outcome.team, outcome.made // DAY)
            settled[outcome.team] += 1
            of_day[day] += 1
            if settled[outcome.team] > 2 * LAST and of_day[day] > OF_A_DAY:
                continue
        found.append(place)
    return found[::-1]


def _moved(seconds: float, move: float) -> float:
    if not isfinite(seconds) or seconds <= 0 or not move:
        return seconds
    return max(seconds, SHORTEST) * exp(move)


def _usual_error(used: Sequence[Outcome], now: float) -> float:
    """Return the part of the median error of the last days that is no chance, by how much the days agree."""
    days: dict[float, list[float]] = {}
    for outcome in used:
        waited = min(outcome.start, now) - outcome.made
        if isfinite(outcome.raw.half) and (outcome.start < inf or waited > outcome.given.half):
            error = log(max(waited, SHORTEST) / max(outcome.raw.half, SHORTEST))
            days.setdefault(outcome.made // DAY, []).append(error)
    errors = [median(days[day][-OF_A_DAY:]) for day in sorted(days)[-DAYS:]]
    if not errors:
        return 0.0
    usual = median(errors)
    square = (USUAL + sum((error - usual) ** 2 for error in errors)) / len(errors)
    doubt = DOUBT**2 * square / len(errors)
    return usual * usual**2 / (usual**2 + doubt)


def _middle(teams: Iterable[Sequence[Outcome]]) -> float:
    """Return by how much nine of ten was moved last, for the team in the middle."""
    moves = [_move_of(last) for own in teams if (last := _last_move(own)) is not None]
    return median(moves) if moves else 0.0


def _followed(own: Sequence[Outcome], now: float) -> float | None:
    """Return by how much nine of ten of a team was moved last, and a step for each hit and miss known since."""
    last = _last_move(own)
    if last is None:
        return None
    move = _move_of(last)
    for outcome in own:
        over = outcome.made + outcome.given.nine
        if last.made < min(outcome.start, over) <= now:
            move += STEP * (NINE - (outcome.start <= over))
    return min(max(move, LEAST), MOST)


def _last_move(own: Sequence[Outcome]) -> Outcome | None:
    return next((outcome for outcome in reversed(own) if _shows_move(outcome)), None)


def _shows_move(outcome: Outcome) -> bool:
    return SHORTEST <= outcome.raw.nine < inf


def _move_of(outcome: Outcome) -> float:
    return log(max(outcome.given.nine, SHORTEST) / outcome.raw.nine)
