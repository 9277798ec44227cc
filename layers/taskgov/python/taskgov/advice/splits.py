"""Split the past into weeks that a rule may use and the following weeks that evaluate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.advice.past import WEEK

if TYPE_CHECKING:
    from taskgov.advice.past import Past

LEAST_JOBS: Final = 0.01
"""Each part of a split needs at least this fraction of all jobs."""


@dataclass(frozen=True, slots=True)
class Split:
    """Three times in seconds: jobs from `first` to `middle` are known, those up to `last` evaluate the choice."""

    first: float
    middle: float
    last: float


def splits(past: Past, weeks: int, most: int, *, until: float | None = None) -> tuple[Split, ...]:
    """Return the last `most` splits with `weeks` weeks in each part. Each split begins a week after the previous one.

    Splits begin at whole weeks of the history, end by `until`, and have enough jobs in both parts.
    """
    end = past.end if until is None else min(until, past.end)
    found = []
    start = 0
    while (start + 2 * weeks) * WEEK <= end + 1:
        split = Split(start * WEEK, (start + weeks) * WEEK, (start + 2 * weeks) * WEEK)
        if min(len(past.between(split.first, split.middle)), len(past.between(split.middle, split.last))) >= max(
            1, LEAST_JOBS * len(past.pieces)
        ):
            found.append(split)
        start += 1
    return tuple(found[-most:])
