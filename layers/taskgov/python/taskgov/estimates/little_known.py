"""What is assumed of run times where little is known, and how much it counts.

At an age that few known jobs reached, each of these jobs stands for a part w of all jobs. The assumption then counts as
`VAGUE` * w ** 2 more jobs. If all of n known jobs have ended, w is 1 / n: the assumption counts as 0.67 jobs beside
3, and as 0.00015 beside 200. A job that still runs passes its part on to those that ran longer. So w may be large for a
single job that outlived many others, and this job shows little.
"""

from __future__ import annotations

from bisect import bisect_left
from math import log
from typing import TYPE_CHECKING, Final

from taskgov.estimates.run_law import PARTS, SHORTEST, RunLaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

VAGUE: Final = 6.0
WEEK: Final = 7 * 86400.0
FLATTEST: Final = 0.5
STEEPEST: Final = 2.0
"""Least and greatest index of the Pareto distribution of how long old jobs run."""


def vague_law() -> RunLaw:
    """Return what is assumed of all jobs: log-uniform run times, from a minute to a week.

    Example:
        >>> round(vague_law().seconds(0.0) / 60)  # half-way between a minute and a week, in minutes
        100

    """
    return RunLaw([SHORTEST * (WEEK / SHORTEST) ** part for part in PARTS])


def vague_law_of_old(since: float, longest: Sequence[tuple[float, bool]]) -> RunLaw:
    """Return what is assumed of jobs that run for longer than `since` seconds, given the longest known jobs.

    The longer they have run, the longer they run on (a Pareto distribution). How much longer is seen in the longest
    known jobs, as if one more had ended after e times the time that all of them reached: from a quarter to 0.7 of
    those that reach an age reach twice the age (B. M. Hill, "A simple general approach to inference about the tail of a
    distribution", 1975).

    Example:
        >>> round(vague_law_of_old(3600.0, []).seconds(0.0) / 60)  # half of them run twice as long
        120

    """
    least = min(longest)[0] if longest else since
    ends, logarithms = 1, 1.0
    for seconds, ended in longest:
        ends += ended
        logarithms += log(max(seconds, SHORTEST) / max(least, SHORTEST))
    index = min(max(ends / logarithms, FLATTEST), STEEPEST)
    return RunLaw([max(since, SHORTEST) * (1.0 - part) ** (-1.0 / index) for part in PARTS])


def doubt(seen: Iterable[tuple[float, bool]], jobs_of_one: float = 1.0) -> Callable[[float], float]:
    """Return a function: as how many more jobs the assumption counts at an age, given the known jobs.

    A known job is (seconds, whether it ended then). If so many jobs count as one only, each one stands for a part that
    is as many times larger, and the assumption counts as so many times more jobs. Source of its weight: B. Efron, "The
    two sample problem with censored data", 1967.
    """
    ordered = sorted(seen, key=lambda job: (job[0], not job[1]))
    times = [seconds for seconds, _ in ordered]
    longer = [1.0]
    """The part of all jobs that runs longer than the first 0, 1, 2 ... of them (Kaplan and Meier)."""
    for number, (_, ended) in enumerate(ordered):
        longer.append(longer[-1] * (1.0 - ended / (len(ordered) - number)))

    def more_jobs(age: float) -> float:
        shorter = bisect_left(times, age)
        if shorter == len(times):
            return VAGUE
        return VAGUE * (jobs_of_one * longer[shorter] / (len(times) - shorter)) ** 2 * jobs_of_one

    return more_jobs
