"""Reduce the waits of many futures to two quantiles: the median and the 90th percentile."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

HALF: Final = 0.5
NINE: Final = 0.9
LEAST_HISTORY: Final = 20
"""With fewer known runs there is no estimate."""


class Estimate(NamedTuple):
    """Median and 90th percentile of a job's wait, in seconds from the estimate; infinite beyond the horizon."""

    half: float
    nine: float


def estimate_of(waits: Sequence[float]) -> Estimate:
    """Return the two quantiles of sorted waits, interpolated linearly. Raises `ValueError` for no waits.

    Example:
        >>> estimate_of([10, 20, 30, 40])
        Estimate(half=25.0, nine=40.0)

    """
    if not waits:
        raise ValueError("there are no futures to take quantiles of")
    return Estimate(quantile(waits, HALF), quantile(waits, NINE))


def quantile(ordered: Sequence[float], part: float) -> float:
    """Return a quantile of sorted values. The k-th of n values is the quantile k / (n + 1) (mean rank).

    Example:
        >>> quantile([10, 20, 30], 0.25), quantile([10, 20, 30], 0.99), quantile([10, inf], 0.5)
        (10.0, 30.0, inf)

    """
    place = part * (len(ordered) + 1) - 1
    if place <= 0:
        return float(ordered[0])
    if place >= len(ordered) - 1:
        return float(ordered[-1])
    below, above = ordered[int(place)], ordered[int(place) + 1]
    share = place - int(place)
    if share == 0:
        return float(below)
    return inf if above == inf else below + share * (above - below)
