"""The distribution of run times (Kaplan-Meier estimator). Jobs that still run count as censored.

Source: E. L. Kaplan, P. Meier, "Nonparametric estimation from incomplete observations", 1958.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Law:
    """The probability that a job runs longer than a time: a step function with steps at the ends of jobs.

    Example:
        >>> law = Law([(10, True), (20, False), (30, True)])
        >>> round(law.longer_than(10), 3), law.longer_than(30), law.quantile(0.5)
        (0.667, 0.0, 30)

    """

    __slots__ = ("_ended", "_times", "_weights", "count", "last")

    def __init__(self, seen: Iterable[tuple[float, bool]], next_one: float = 0.0) -> None:
        """Take pairs (seconds, whether the job ended then). At equal times, ends count before jobs that still run.

        With `next_one`, this is the distribution of the next job, which may run longer than all known ones: each of n
        jobs then weighs 1 / (n + `next_one`). With 1, a single draw is calibrated (B. M. Hill, "Posterior distribution
        of percentiles", 1968), but the sum of many draws is too large.
        """
        ordered = sorted(seen, key=lambda pair: (pair[0], not pair[1]))
        self.count = len(ordered)
        """Number of jobs."""
        self.last = ordered[-1][0] if ordered else 0.0
        """The longest known time. The distribution beyond it is unknown."""
        self._times: list[float] = []
        self._ended: list[float] = []
        """The fraction that has ended by each of the times."""
        self._weights: list[float] = []
        """The weight of one job in each step."""
        at_risk, stays = len(ordered), 1.0
        for seconds, ended in ordered:
            if ended:
                step = stays / (at_risk + next_one)
                stays -= step
                if self._times and self._times[-1] == seconds:
                    self._ended[-1] = 1.0 - stays
                else:
                    self._times.append(seconds)
                    self._weights.append(step)
                    self._ended.append(1.0 - stays)
            at_risk -= 1

    def steps(self) -> tuple[list[float], list[float], list[float]]:
        """Return the times at which jobs ended, the fraction ended by each, and the weight of one job in each step."""
        return self._times, self._ended, self._weights

    def longer_than(self, seconds: float) -> float:
        """Return the probability to run longer. It is constant after the last step."""
        place = bisect_right(self._times, seconds)
        return 1.0 - self._ended[place - 1] if place else 1.0

    def quantile(self, part: float) -> float | None:
        """Return the first time by which `part` (0 to 1) of the jobs have ended; None if beyond the last step."""
        place = bisect_left(self._ended, part - 1e-12)
        return self._times[place] if place < len(self._times) else None

    def between(self, part: float, above: float) -> float | None:
        """Return a quantile for random draws, interpolated; None if it is beyond the last step.

        The weight of one job in each step is spread evenly over the time before it: otherwise all draws would be late
        by half a step. If several jobs ended at the same time, the others are drawn at exactly that time. The result is
        at least `above`.

        Example:
            >>> Law([(10, True), (20, True)]).between(0.75, 10)
            15.0

        """
        place = bisect_left(self._ended, part - 1e-12)
        if place == len(self._times):
            return None
        before = self._ended[place - 1] if place else 0.0
        first = max(above, self._times[place - 1] if place else 0.0)
        share = min(1.0, (part - before) / self._weights[place])
        return first + max(0.0, share) * (self._times[place] - first)
