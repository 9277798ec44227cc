"""The distribution of run times of similar jobs, as a table: the run time at each normal score.

A normal score is a quantile of the standard normal distribution: 0 for the median, 1 for the 84th percentile. The table
has a run time for each score from -`TOP` to `TOP`, `POINTS` in all, and is linear between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NORMAL: Final = NormalDist()
TOP: Final = 3.0
POINTS: Final = 121
STEP: Final = 2 * TOP / (POINTS - 1)
SHORTEST: Final = 60.0
WEEK: Final = 7 * 86400.0
_PARTS: Final = tuple(NORMAL.cdf(STEP * place - TOP) for place in range(POINTS))
_BEYOND: Final = (0.25, 0.5, 0.75, 0.9, 0.98, 0.995)
"""Quantiles of what is beyond the longest known job."""


class RunLaw:
    """A distribution of run times."""

    __slots__ = ("times",)

    def __init__(self, times: Sequence[float]) -> None:
        """Take the `POINTS` times of the table, in seconds, sorted."""
        self.times = times

    def below(self, seconds: float) -> float:
        """Return the probability to run at most this long."""
        return self._part(bisect_right(self.times, seconds), seconds)

    def shorter(self, seconds: float) -> float:
        """Return the probability to run shorter. It is less than `below` where many jobs run equally long."""
        return self._part(bisect_left(self.times, seconds), seconds)

    def _part(self, place: int, seconds: float) -> float:
        if place == 0:
            return 0.0
        if place == POINTS:
            return 1.0
        first, then = self.times[place - 1], self.times[place]
        share = (seconds - first) / (then - first) if then > first else 0.0
        return _PARTS[place - 1] + share * (_PARTS[place] - _PARTS[place - 1])

    def seconds(self, score: float) -> float:
        """Return the run time at a score.

        Example:
            >>> round(VAGUE_LAW.seconds(0.0) / 60)  # half-way between a minute and a week, in minutes
            100

        """
        place = (min(max(score, -TOP), TOP) + TOP) / STEP
        before = min(int(place), POINTS - 2)
        return self.times[before] + (place - before) * (self.times[before + 1] - self.times[before])


VAGUE_LAW: Final = RunLaw([SHORTEST * (WEEK / SHORTEST) ** part for part in _PARTS])
"""What is assumed without any history: log-uniform from a minute to a week."""


def combined(seen: Sequence[tuple[float, bool]], wider: RunLaw, strength: float) -> RunLaw:
    """Return the law of a group, given its jobs (seconds, whether they ended then) and the law of a wider group.

    At each age, the probability to end is that of the jobs of the group that reached the age, and of the wider law as
    `strength` more jobs (S. Walker, P. Muliere, "Beta-Stacy processes and a generalization of the Polya-urn scheme",
    1997). Few jobs that reached an age therefore show little, no matter how many younger ones run. Without `strength`,
    this is the estimator of Kaplan and Meier.

    The part that ends at a time is spread evenly over the time since the one before it: otherwise all draws would be
    late by half a step. If several jobs of the group ended at the same time, only the first one is spread.
    """
    if not seen:
        return wider
    ordered = sorted(seen, key=lambda job: (job[0], not job[1]))
    place, stays, others_stay = 0, 1.0, 1.0
    points: list[tuple[float, float]] = [(0.0, 0.0)]
    for seconds in sorted({*(seconds for seconds, ended in seen if ended), *wider.times}):
        while place < len(ordered) and ordered[place][0] < seconds:
            place += 1
        at_risk, ends = len(ordered) - place, 0
        while place < len(ordered) and ordered[place] == (seconds, True):
            place, ends = place + 1, ends + 1
        left = 1.0 - wider.below(seconds)
        others = strength if others_stay > 0 else 0.0
        if at_risk + others <= 0:
            break
        expected = others * (1.0 - left / others_stay) if others else 0.0
        points.append((seconds, 1.0 - stays * (1.0 - (expected + min(ends, 1)) / (at_risk + others))))
        stays *= max(1.0 - (expected + ends) / (at_risk + others), 0.0)
        points.append((seconds, 1.0 - stays))
        others_stay = left
    longest = max(points[-1][0], SHORTEST)  # no known job ran longer: the longer it has run, the longer it will run
    points += [(longest / sqrt(1.0 - part), 1.0 - stays * (1.0 - part)) for part in _BEYOND]
    return RunLaw(list(_inverted(points)))


def _inverted(points: Sequence[tuple[float, float]]) -> Iterator[float]:
    """Yield the time at each score, given points (time, part that has ended by then), linear between."""
    place, last = 1, len(points) - 1
    for part in _PARTS:
        while place < last and points[place][1] < part:
            place += 1
        (first, low), (then, high) = points[place - 1], points[place]
        share = (part - low) / (high - low) if high > low else 1.0
        yield first + min(max(share, 0.0), 1.0) * (then - first)
