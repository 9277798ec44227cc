"""How long do jobs run? The law of Kaplan and Meier: it counts jobs that still run for as long as they ran so far.

Source: E. L. Kaplan, P. Meier, "Nonparametric estimation from incomplete observations", 1958.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Law:
    """The chance that a job runs longer than a time: steps at the times at which jobs ended.

    Example:
        >>> law = Law([(10, True), (20, False), (30, True)])
        >>> round(law.longer_than(10), 3), law.longer_than(30), law.quantile(0.5)
        (0.667, 0.0, 30)

    """

    __slots__ = ("_left", "_one", "_times", "count", "last")

    def __init__(self, seen: Iterable[tuple[float, bool]], next_one: float = 0.0) -> None:
        """Take pairs of seconds and whether the job ended then; of one moment ends come before what still runs.

        With `next_one` it is the law of the next job, which may run longer than all that are known: each of n jobs then
        counts 1 / (n + `next_one`). With 1 a single draw is right as often as it says (B. M. Hill, "Posterior
        distribution of percentiles", 1968), but the sum of many is late.
        """
        ordered = sorted(seen, key=lambda pair: (pair[0], not pair[1]))
        self.count = len(ordered)
        """How many jobs it is made of."""
        self.last = ordered[-1][0] if ordered else 0.0
        """The longest time that is known of; what is left after it is unknown."""
        self._times: list[float] = []
        self._left: list[float] = []
        """What is gone after each of the times: 1 minus the chance to run longer."""
        self._one: list[float] = []
        """What one job is of each step."""
        at_risk, stays = len(ordered), 1.0
        for seconds, ended in ordered:
            if ended:
                step = stays / (at_risk + next_one)
                stays -= step
                if self._times and self._times[-1] == seconds:
                    self._left[-1] = 1.0 - stays
                else:
                    self._times.append(seconds)
                    self._one.append(step)
                    self._left.append(1.0 - stays)
            at_risk -= 1

    def steps(self) -> tuple[list[float], list[float], list[float]]:
        """Return the times at which jobs ended, what is gone after each, and what one job is of each step."""
        return self._times, self._left, self._one

    def longer_than(self, seconds: float) -> float:
        """Return the chance to run longer than this; after the last known time what the last step left."""
        place = bisect_right(self._times, seconds)
        return 1.0 - self._left[place - 1] if place else 1.0

    def quantile(self, part: float) -> float | None:
        """Return the first time by which a part of the jobs (0 to 1) has ended; None where the law ends before."""
        place = bisect_left(self._left, part - 1e-12)
        return self._times[place] if place < len(self._times) else None

    def between(self, part: float, above: float) -> float | None:
        """Return the quantile as a draw takes it: what one job is of a step is spread evenly over the time before it.

        Without that all draws would be late by half a step. Where several jobs ended at one moment, the others are
        drawn at that moment. The result is above `above`, up to which `part` is known to be gone.

        Example:
            >>> Law([(10, True), (20, True)]).between(0.75, 10)
            15.0

        """
        place = bisect_left(self._left, part - 1e-12)
        if place == len(self._times):
            return None
        before = self._left[place - 1] if place else 0.0
        first = max(above, self._times[place - 1] if place else 0.0)
        share = min(1.0, (part - before) / self._one[place])
        return first + max(0.0, share) * (self._times[place] - first)
