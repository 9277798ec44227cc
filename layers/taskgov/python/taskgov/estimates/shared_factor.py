"""The factor that the run times of a team share: how it drifts, and what the team's latest jobs show of it.

Teams run one experiment many times, so jobs that start one after the other tend to be long or short together. A run
time is a quantile of the team's distribution, whose normal score is `sqrt(c) * shared + sqrt(1 - c) * own` (a Gaussian
copula with the correlation c). The number `own` is independent for each job. The number `shared` of a team drifts from
start to start: it keeps the part `KEEPS` of its value (an autoregressive process). Both are standard normal.

The latest jobs show where `shared` is now. Each start moves its distribution: a job that has ended as in a Kalman
filter, by its score, and one that still runs by the condition that its score is above that of its age (the moments of a
normal distribution with a correlated one truncated). Jobs are selected by their starts, not by their ends. Otherwise,
only the short ones of a recent burst would count, or only the long ones.
"""

from __future__ import annotations

from math import erfc, inf, nextafter, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.survival import Law

KEEPS: Final = 0.96
"""The part of the shared number that remains from one start of the team to the next: half of it after 17 starts.

On Philly (first half), scores of jobs of a team have a correlation of 0.41 one start apart, 0.24 after 10 starts, and
0.09 after 40."""
GAINS: Final = sqrt(1.0 - KEEPS * KEEPS)
"""The standard deviation of what is added to it."""
LATEST: Final = 20
"""Number of a team's latest jobs that count."""
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
    mean, square, own = 0.0, 1.0, 1.0 - correlation
    for seconds, ended in reversed(latest[:LATEST]):
        whole = correlation * square + own  # the variance of this job's score
        gain = sqrt(correlation) * square / sqrt(whole)
        off = (_score(law, seconds, ended=ended) - sqrt(correlation) * mean) / sqrt(whole)
        if ended:
            mean, square = mean + gain * off, square - gain * gain
        else:
            beyond = _NORMAL.pdf(off) / (erfc(off / sqrt(2.0)) / 2)  # `cdf` is 0 where this is still exact
            mean, square = mean + gain * beyond, square - gain * gain * beyond * (beyond - off)
        mean, square = KEEPS * mean, KEEPS * KEEPS * square + GAINS * GAINS
    return Shared(mean, sqrt(square))


def _score(law: Law, seconds: float, *, ended: bool) -> float:
    """Return the normal score of a run time: of the middle of its step if it ended, otherwise of all up to it.

    Jobs that ran equally long share a step. By its end, a team whose jobs all run equally long would count as late.
    """
    below = 1.0 - law.longer_than(seconds)
    if ended:
        below = (below + 1.0 - law.longer_than(nextafter(seconds, -inf))) / 2
    return _NORMAL.inv_cdf(min(max(below, EDGE), 1.0 - EDGE))
