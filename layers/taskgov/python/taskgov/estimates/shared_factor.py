"""The factor that the run times of a team share: how it drifts, and what the team's latest jobs show of it.

Teams run one experiment many times, so jobs that start one after the other tend to be long or short together. A run time
is a quantile of the team's distribution, whose normal score is `sqrt(c) * shared + sqrt(1 - c) * own` (a Gaussian copula
with the correlation c). The number `own` is independent for each job. The number `shared` of a team drifts from start
to start: it keeps the part `KEEPS` of its value (an autoregressive process). Both are standard normal.

The latest jobs show where `shared` is now. This is filtered from start to start: a job that has ended contributes the
density of its score, and one that still runs the probability to exceed its age. Jobs are selected by their starts, not
by their ends. Otherwise, only the short ones of a recent burst would count, or only the long ones.
"""

from __future__ import annotations

from math import exp, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.survival import Law

KEEPS: Final = 0.96
"""The part of the shared number that remains from one start of the team to the next: half of it after 17 starts."""
LATEST: Final = 20
"""Number of a team's latest jobs that count."""
WIDEST: Final = 3.0
STEPS: Final = 24
_GRID: Final = tuple(-WIDEST + 2 * WIDEST * step / STEPS for step in range(STEPS + 1))
"""Values of a standard normal number at which likelihoods are computed."""
EDGE: Final = 0.01
"""Quantiles nearer to 0 or 1 than this count as this."""
_NORMAL: Final = NormalDist()


class Shared(NamedTuple):
    """The distribution of the shared number: normal, with this mean and standard deviation."""

    mean: float = 0.0
    deviation: float = 1.0


def shared_of(law: Law, latest: Sequence[tuple[float, bool]], correlation: float) -> Shared:
    """Return the distribution of a team's shared number now.

    `law` is the distribution of the team's run times; `latest` are pairs (seconds, whether the job ended then), those
    that started last first. `correlation` is in [0, 1). Without jobs, or without correlation, this is the standard
    normal distribution.

    Example:
        >>> from taskgov.estimates.survival import Law
        >>> law = Law((seconds, True) for seconds in range(100))
        >>> [shared_of(law, [(seconds, True)] * 5, 0.5).mean > 0 for seconds in (10, 90)]
        [False, True]

    """
    found = Shared()
    if correlation > 0:
        for seconds, ended in reversed(latest[:LATEST]):
            seen = _with_one(found, _score(law, seconds, ended=ended), correlation, ended=ended)
            found = Shared(KEEPS * seen.mean, sqrt((KEEPS * seen.deviation) ** 2 + 1 - KEEPS * KEEPS))
    return found


def _with_one(before: Shared, score: float, correlation: float, *, ended: bool) -> Shared:
    """Return the distribution after one more job."""
    together, own = sqrt(correlation), sqrt(1.0 - correlation)
    values = [before.mean + before.deviation * number for number in _GRID]
    parts = []
    for number, value in zip(_GRID, values, strict=True):
        left = (score - together * value) / own
        likelihood = -left * left / 2 if ended else log(max(_NORMAL.cdf(-left), 1e-12))
        parts.append(exp(likelihood - number * number / 2))
    total = sum(parts)
    mean = sum(part * value for part, value in zip(parts, values, strict=True)) / total
    square = sum(part * (value - mean) ** 2 for part, value in zip(parts, values, strict=True)) / total
    return Shared(mean, sqrt(square))


def _score(law: Law, seconds: float, *, ended: bool) -> float:
    """Return the normal score of a run time: of the middle of its step if it ended, otherwise of all before it."""
    below = 1.0 - law.longer_than(seconds)
    if ended:
        below -= 0.5 / (law.count + 1)
    return _NORMAL.inv_cdf(min(max(below, EDGE), 1.0 - EDGE))
