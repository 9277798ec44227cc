"""How is the past cut into what a rule may know and what it is judged on? Into weeks that follow each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.advice.past import WEEK

if TYPE_CHECKING:
    from taskgov.advice.past import Past

LEAST_JOBS: Final = 0.01
"""A part of a split that holds less than so much of all jobs says nothing."""


@dataclass(frozen=True, slots=True)
class Split:
    """Three moments, in seconds: what came from `first` up to `middle` is known, what came up to `last` is judged."""

    first: float
    middle: float
    last: float


def splits(past: Past, weeks: int, most: int, *, until: float | None = None) -> tuple[Split, ...]:
    """Return the last splits of so many weeks that are known and so many that are judged, each a week on.

    They lie on whole weeks of the history, end at `until` at the latest, and hold enough jobs on both sides.
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
