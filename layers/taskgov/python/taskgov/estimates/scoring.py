"""Score how accurate estimates were. The rules were fixed before any parameter was tuned.

* A quantile is hit if the job started within its time, and missed once its time has passed.
* Estimates of cancelled jobs, and open ones, are counted separately. An estimate is open if its job has not started and
  its time is not over.
* Ratios ignore estimates of 0 and those beyond the horizon.
"""

from __future__ import annotations

from math import inf, isfinite, log
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskgov.estimates.quantiles import Estimate

FACTOR: Final = 2.0


class Scored(NamedTuple):
    """An estimate with its outcome. `waited` is the seconds from it to the start, or to the last known moment."""

    team: str
    estimate: Estimate
    waited: float
    started: bool = True
    cancelled: bool = False
    at_submission: bool = True


class Score(NamedTuple):
    """The score of many estimates. Fractions are from 0 to 1; NaN if no estimate counts."""

    number: int
    half: float
    """Fraction whose median was hit."""
    nine: float
    within: float
    """Fraction of estimates at submission whose median is within a factor of 2 of the wait."""
    error: float
    """Median absolute error of the median, in seconds."""
    spread: float
    """Median ratio of the 90th percentile to the median, for estimates at submission."""
    cancelled: int
    open: int
    """Neither hit nor missed yet."""
    beyond: int
    """The median is beyond the horizon."""


def score(scored: Iterable[Scored]) -> Score:
    """Return the score of estimates."""
    everything = list(scored)
    counted = [job for job in everything if not job.cancelled]
    halves = [hit for job in counted if (hit := _hit(job, job.estimate.half)) is not None]
    nines = [hit for job in counted if (hit := _hit(job, job.estimate.nine)) is not None]
    first = [job for job in counted if job.at_submission and job.started and _has_ratio(job)]
    errors = [abs(job.estimate.half - job.waited) for job in counted if job.started and isfinite(job.estimate.half)]
    spreads = [job.estimate.nine / job.estimate.half for job in counted if job.at_submission and _has_ratio(job)]
    return Score(
        number=len(counted),
        half=_part(halves),
        nine=_part(nines),
        within=_part([abs(log(max(job.waited, 1.0) / job.estimate.half)) <= log(FACTOR) for job in first]),
        error=median(errors) if errors else float("nan"),
        spread=median(spreads) if spreads else float("nan"),
        cancelled=len(everything) - len(counted),
        open=len(counted) - len(nines),
        beyond=sum(job.estimate.half == inf for job in counted),
    )


def by_team(scored: Iterable[Scored], least: int = 100) -> dict[str, Score]:
    """Return the score of each team with at least `least` estimates, by name."""
    teams: dict[str, list[Scored]] = {}
    for job in scored:
        teams.setdefault(job.team, []).append(job)
    return {team: score(own) for team, own in sorted(teams.items()) if len(own) >= least}


def _hit(job: Scored, seconds: float) -> bool | None:
    """Return whether the job started in time; None if this is not known yet, or the quantile is beyond the horizon."""
    if not isfinite(seconds):
        return None
    if job.waited > seconds:
        return False
    return True if job.started else None


def _has_ratio(job: Scored) -> bool:
    return 0 < job.estimate.half < inf


def _part(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else float("nan")
