"""Estimate the factor that the run times of a team share, from the jobs that the team started last.

Within a future, the run times of a team are correlated (Gaussian copula): each is a quantile whose normal score is
`sqrt(c) * shared + sqrt(1 - c) * own`, with the correlation c and two standard normal numbers. If the team's latest
jobs ran long, or still run at a high age, the shared number is probably above 0. Its posterior distribution is computed
on a grid: a job that has ended contributes the density of its score, and one that still runs the probability to exceed
its age.

The jobs are selected by their starts, not by their ends. Otherwise, only the short ones of a recent burst would count,
or only the long ones.
"""

from __future__ import annotations

from math import exp, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.estimates.survival import Law

LATEST: Final = 3
"""Number of a team's latest jobs that count."""
WEIGHT: Final = 1 / 3
"""Weight of each of them: the factor drifts, and jobs of one burst are not independent, so three jobs count as one."""
WIDEST: Final = 3.0
STEPS: Final = 24
_GRID: Final = tuple(-WIDEST + 2 * WIDEST * step / STEPS for step in range(STEPS + 1))
EDGE: Final = 0.01
"""Quantiles nearer to 0 or 1 than this count as this."""
_NORMAL: Final = NormalDist()


class Shared(NamedTuple):
    """The distribution of the shared number: normal, with this mean and standard deviation."""

    mean: float = 0.0
    deviation: float = 1.0


def shared_of(law: Law, latest: Iterable[tuple[float, bool]], correlation: float) -> Shared:
    """Return the posterior distribution of the shared number of a team.

    `law` is the distribution of the team's run times; `latest` are pairs (seconds, whether the job ended then) of the
    jobs that it started last. `correlation` is in [0, 1). Without jobs, or without correlation, this is the standard
    normal distribution.

    Example:
        >>> from taskgov.estimates.survival import Law
        >>> law = Law((seconds, True) for seconds in range(100))
        >>> [shared_of(law, [(seconds, True)] * 5, 0.5).mean > 0 for seconds in (10, 90)]
        [False, True]

    """
    if correlation <= 0:
        return Shared()
    together, own = sqrt(correlation), sqrt(1.0 - correlation)
    weights = [-number * number / 2 for number in _GRID]
    for seconds, ended in latest:
        score = _score(law, seconds, ended=ended)
        for place, number in enumerate(_GRID):
            left = (score - together * number) / own
            likelihood = -left * left / 2 if ended else log(max(_NORMAL.cdf(-left), 1e-12))
            weights[place] += WEIGHT * likelihood
    highest = max(weights)
    parts = [exp(weight - highest) for weight in weights]
    total = sum(parts)
    mean = sum(part * number for part, number in zip(parts, _GRID, strict=True)) / total
    square = sum(part * (number - mean) ** 2 for part, number in zip(parts, _GRID, strict=True)) / total
    return Shared(mean, sqrt(square))


def _score(law: Law, seconds: float, *, ended: bool) -> float:
    """Return the normal score of a run time: of the middle of its step if it ended, otherwise of all before it."""
    below = 1.0 - law.longer_than(seconds)
    if ended:
        below -= 0.5 / (law.count + 1)
    return _NORMAL.inv_cdf(min(max(below, EDGE), 1.0 - EDGE))
