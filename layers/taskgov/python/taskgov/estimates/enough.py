"""How many futures a job needs. Those of jobs that start late cost most, and need fewest.

| after so many futures | a job needs no more if |
| --- | --- |
| 12 | it started in none of them |
| 25 | its median is a day or more: it is days off in any case, however many futures there are |

Otherwise, a few jobs that seldom start within the horizon would make each future go on to its end for all jobs.
"""

from __future__ import annotations

from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST: Final = 12
FEW: Final = 25
LATE: Final = 86400.0
CHECKS: Final = (FEWEST, FEW)
"""The numbers of futures after which jobs that need no more are left out."""


def is_enough(waits: Sequence[float]) -> bool:
    """Return whether a job needs no more futures, given its waits, in seconds, in those that were played so far.

    Example:
        >>> is_enough([60.0] * 12), is_enough([float("inf")] * 12), is_enough([90_000.0] * 25)
        (False, True, True)

    """
    if len(waits) >= FEW:
        return median(waits) >= LATE
    return len(waits) >= FEWEST and not any(map(isfinite, waits))
