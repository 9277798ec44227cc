"""What the run times of the jobs of an experiment have in common in a future.

Teams submit experiments: many jobs of the same size, one right after the other, that tend to be long or short together.
Jobs of one group (team, owner if known, and GPUs) that are submitted at most `GAP` apart form a *batch*.

A run time is a quantile of the job's distribution, whose normal score is `sqrt(c) * shared + sqrt(1 - c) * own` (a
Gaussian copula with the correlation c). The number `own` is independent for each job. The number `shared` of a group
drifts from start to start (an autoregressive process): within a batch it keeps the part `WITHIN` of its value, from
batch to batch the part `BETWEEN`. Both are standard normal, so correlation changes no single run time. What the latest
jobs of a group show is in the distribution of its run times already (`taskgov.estimates.run_times`).

Large batches are different from small ones: where a team submits 50 jobs within minutes, they are seldom jobs of days.
So the number of jobs in a batch (`SIZES`) is a property of a job's request, with a distribution of its own. For a batch
that still grows, it is the number so far.

On Philly (first half), the scores of two jobs of a team and the same number of GPUs have a correlation of 0.59 if they
were submitted within a minute, 0.35 within 5 to 30 minutes, 0.13 within 2 to 6 hours, and 0.05 within 6 to 24 hours; of
jobs with other numbers of GPUs, 0.27 within a minute and none later.
"""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import TYPE_CHECKING, Final

from taskgov.estimates.requests import alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.requests import Group, Request

TOGETHER: Final = 0.6
"""Correlation of two run times of a batch that start one after the other."""
GAP: Final = 60.0
"""Seconds between two submissions of a batch, at most."""
WITHIN: Final = 0.995
BETWEEN: Final = 0.8
WITHIN_ADDS: Final = sqrt(1.0 - WITHIN * WITHIN)
"""The standard deviation of what is added."""
BETWEEN_ADDS: Final = sqrt(1.0 - BETWEEN * BETWEEN)
NO_BATCH: Final = -1
SIZES: Final = (1, 3, 10, 50)
"""The classes of batches: each has at least so many jobs."""


def batches(jobs: Sequence[tuple[Group, float]]) -> list[int]:
    """Return the batch of each job, given its group and when it was submitted, in seconds: a number from 0.

    Example:
        >>> batches([(("a",), 0), (("b",), 30), (("a",), 60), (("a",), 121)])
        [0, 1, 0, 3]

    """
    found = [NO_BATCH] * len(jobs)
    last: dict[Group, int] = {}
    for place in sorted(range(len(jobs)), key=lambda place: jobs[place][1]):
        group, at = jobs[place]
        before = last.get(group)
        found[place] = place if before is None or at - jobs[before][1] > GAP else found[before]
        last[group] = place
    return found


def size_class(size: int) -> int:
    """Return 1, 3, 10 or 50: the greatest of them that is at most the number of jobs.

    Example:
        >>> size_class(2), size_class(49)
        (1, 10)

    """
    return max(least for least in SIZES if least <= size)


def sized(jobs: Sequence[tuple[Request, float]]) -> list[Request]:
    """Return the request of each job with its batch and the size class of it, given when each came, in seconds.

    The number of a batch is the second of its first submission. If some of its jobs have a number already, it is the
    smallest of these; a class that a request has already stays if it is greater.
    """
    found = batches([(alike(request), at) for request, at in jobs])
    count, numbers = Counter(found), dict[int, int]()
    for (request, at), batch in zip(jobs, found, strict=True):
        number = request.batch or max(int(at), 1)
        numbers[batch] = min(numbers.get(batch, number), number)
    return [
        request._replace(size=max(size_class(count[batch]), request.size), batch=numbers[batch])
        for (request, _), batch in zip(jobs, found, strict=True)
    ]


def new_batch(block: int, batch: int, arrivals: int) -> int:
    """Return the batch of copies of past arrivals in a block of a future (from 0), different from those present.

    `batch` is that of the copied ones, below `arrivals`.
    """
    return NO_BATCH - 1 - block * arrivals - batch
