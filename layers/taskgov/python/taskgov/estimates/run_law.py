"""The distribution of run times of similar jobs, as a table: the run time at each normal score.

A normal score is a quantile of the standard normal distribution: 0 for the median, 1 for the 84th percentile. The table
has a run time for each score from -`TOP` to `TOP`, `POINTS` in all, and is linear between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from math import inf, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NORMAL: Final = NormalDist()
TOP: Final = 3.0
POINTS: Final = 121
STEP: Final = 2 * TOP / (POINTS - 1)
SHORTEST: Final = 60.0
PARTS: Final = tuple(NORMAL.cdf(STEP * place - TOP) for place in range(POINTS))
_BEYOND: Final = (0.75, 0.5, 0.25, 0.1, 0.02, 0.005)
"""Parts of the jobs that run longer than the longest known one."""


def runs_on(age: float, rest: float) -> float:
    """Return how long all but the part `rest` run of the jobs that reached an age which no known job exceeded.

    The longer they have run, the longer they run on (a Pareto distribution).

    Example:
        >>> runs_on(3600.0, 0.25) / 3600  # a quarter runs for longer than two hours
        2.0

    """
    return age / sqrt(rest)


class RunLaw:
    """A distribution of run times."""

    __slots__ = ("times",)

    def __init__(self, times: Sequence[float]) -> None:
        """Take the `POINTS` times of the table, in seconds, sorted."""
        self.times = times

    def below(self, seconds: float) -> float:
        """Return the probability to run at most this long."""
        return self.part(bisect_right(self.times, seconds), seconds)

    def shorter(self, seconds: float) -> float:
        """Return the probability to run shorter. It is less than `below` where many jobs run equally long."""
        return self.part(bisect_left(self.times, seconds), seconds)

    def part(self, place: int, seconds: float) -> float:
        """Return the probability to run at most this long, given how many times of the table are not greater."""
        if place == 0:
            return 0.0
        if place == POINTS:
            return 1.0
        first, then = self.times[place - 1], self.times[place]
        share = (seconds - first) / (then - first) if then > first else 0.0
        return PARTS[place - 1] + share * (PARTS[place] - PARTS[place - 1])

    def seconds(self, score: float) -> float:
        """Return the run time at a score."""
        place = (min(max(score, -TOP), TOP) + TOP) / STEP
        before = min(int(place), POINTS - 2)
        return self.times[before] + (place - before) * (self.times[before + 1] - self.times[before])


class Rest(NamedTuple):
    """The distribution of jobs that run for longer than a time."""

    since: float
    """Seconds."""
    law: RunLaw


def combined(
    seen: Sequence[tuple[float, bool]],
    wider: RunLaw,
    strength: Callable[[float], float],
    since: float = 0.0,
    rest: Rest | None = None,
) -> RunLaw:
    """Return the law of a group, given its jobs (seconds, whether they ended then) and the law of a wider group.

    At each age, the probability to end is that of the jobs of the group that reached the age, and of the wider law as
    so many more jobs as `strength` returns for the age (S. Walker, P. Muliere, "Beta-Stacy processes and a
    generalization of the Polya-urn scheme", 1997). Few jobs that reached an age therefore show little, no matter how
    many younger ones run. Without `strength`, this is the estimator of Kaplan and Meier. All jobs ran, and all draws of
    the wider law run, for longer than `since`. Those that run for longer than `rest.since` continue as `rest` says.

    The part that ends at a time is spread evenly over the time since the one before it: otherwise all draws would be
    late by half a step. If several jobs of the group ended at the same time, only the first one is spread.
    """
    if not seen:
        return wider
    until = inf if rest is None else rest.since
    ends = Counter(seconds for seconds, ended in seen if ended and seconds <= until)
    reached = sorted(seconds for seconds, _ in seen)
    known, values, place, of_wider, stays, others_stay = len(reached), wider.times, 0, 0, 1.0, 1.0
    points, ended = [since], [0.0]
    times = {*ends, *values[: bisect_right(values, until)]}
    for seconds in sorted(times if rest is None else {*times, until}):
        while place < known and reached[place] < seconds:
            place += 1
        while of_wider < POINTS and values[of_wider] <= seconds:
            of_wider += 1
        left = 1.0 - wider.part(of_wider, seconds)
        others = strength(seconds) if others_stay > 0 else 0.0
        at_risk = known - place + others
        if at_risk <= 0:
            break
        ending = others * (1.0 - left / others_stay) if others else 0.0
        if seconds in ends:
            points.append(seconds)
            ended.append(1.0 - stays * (1.0 - (ending + 1) / at_risk))
            ending += ends[seconds]
        stays *= 1.0 - ending / at_risk if ending < at_risk else 0.0
        points.append(seconds)
        ended.append(1.0 - stays)
        others_stay = left
    if rest is None:
        longest = max(points[-1], SHORTEST)
        points += [runs_on(longest, part) for part in _BEYOND]
        ended += [1.0 - stays * part for part in _BEYOND]
    else:
        points += rest.law.times
        ended += [1.0 - stays * (1.0 - part) for part in PARTS]
    return RunLaw(_inverted(points, ended))


def _inverted(points: Sequence[float], ended: Sequence[float]) -> list[float]:
    """Return the time at each score, given times and the part that has ended by each, linear between."""
    place, last, found = 1, len(points) - 1, []
    for part in PARTS:
        while ended[place] < part and place < last:
            place += 1
        low, high, first = ended[place - 1], ended[place], points[place - 1]
        share = min(max((part - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        found.append(first + share * (points[place] - first))
    return found
