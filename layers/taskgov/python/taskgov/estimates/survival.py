"""The Kaplan-Meier estimator: a distribution, given times of which some are only known to be longer (censored).

Source: E. L. Kaplan, P. Meier, "Nonparametric estimation from incomplete observations", 1958.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Law:
    """The probability that a job runs longer than a time: a step function with steps at the ends of jobs.

    Example:
        >>> law = Law([(10, True), (20, False), (30, True)])
        >>> law.quantile(0.3), law.quantile(0.5)
        (10, 30)

    """

    __slots__ = ("_ended", "_times", "last")

    def __init__(self, seen: Iterable[tuple[float, bool]], next_one: float = 0.0) -> None:
        """Take pairs (seconds, whether the job ended then). At equal times, ends count before jobs that still run.

        With `next_one`, this is the distribution of the next job, which may run longer than all known ones: each of n
        jobs then weighs 1 / (n + `next_one`). With 1, a single draw is calibrated (B. M. Hill, "Posterior distribution
        of percentiles", 1968), but the sum of many draws is too large.
        """
        ordered = sorted(seen, key=lambda pair: (pair[0], not pair[1]))
        self.last = ordered[-1][0] if ordered else 0.0
        """The longest known time. The distribution beyond it is unknown."""
        self._times: list[float] = []
        self._ended: list[float] = []
        """The fraction that has ended by each of the times."""
        at_risk, stays = len(ordered), 1.0
        for seconds, ended in ordered:
            if ended:
                stays -= stays / (at_risk + next_one)
                if self._times and self._times[-1] == seconds:
                    self._ended[-1] = 1.0 - stays
                else:
                    self._times.append(seconds)
                    self._ended.append(1.0 - stays)
            at_risk -= 1

    def quantile(self, part: float) -> float | None:
        """Return the first time by which `part` (0 to 1) of the jobs have ended; None if beyond the last step."""
        place = bisect_left(self._ended, part - 1e-12)
        return self._times[place] if place < len(self._times) else None
