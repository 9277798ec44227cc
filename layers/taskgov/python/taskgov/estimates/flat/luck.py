"""Random numbers and random run times.

The generator is L'Ecuyer's combined one (P. L'Ecuyer, "Efficient and portable combined random number generators",
1988): it needs no number above 2 ** 53.
"""

from __future__ import annotations

from math import erfc, sqrt
from typing import TYPE_CHECKING, Final

from taskgov.estimates.run_law import NORMAL, POINTS, STEP, TOP
from taskgov.estimates.run_times import LEAST, LONGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.flat.tables import Lasting

FIRST: Final = 2147483563.0
SECOND: Final = 2147483399.0
inv_cdf: Final = NORMAL.inv_cdf


def uniform(luck: list[float]) -> float:
    """Return a random number in (0, 1).

    The state is whole numbers, which are exact as floats: remainders of floats take half as long as those of integers.
    """
    first = luck[0] = luck[0] * 40014.0 % FIRST
    second = luck[1] = luck[1] * 40692.0 % SECOND
    return (first - second if first > second else first - second + FIRST - 1.0) / FIRST


def normal(luck: list[float]) -> float:
    """Return a normally distributed random number."""
    return inv_cdf(uniform(luck))


def seconds_of(lasting: Lasting, prospect: int, shared: float, luck: list[float]) -> float:
    """Return a total run time, as `taskgov.estimates.random_run_times` does, given the number that its batch shares."""
    score = lasting.shared * shared + lasting.own * normal(luck)
    age, below = lasting.age[prospect], lasting.below[prospect]
    if below > 0:
        rest = max(0.5 * erfc(score / sqrt(2.0)), LEAST)
        score = inv_cdf(max(1.0 - (1.0 - below) * rest, LEAST))
    if score < -TOP:
        score = -TOP
    elif score > TOP:
        score = TOP
    place = (score + TOP) / STEP
    before = min(int(place), POINTS - 2)
    times, first = lasting.times, lasting.law[prospect] * POINTS + before
    seconds = times[first] + (place - before) * (times[first + 1] - times[first])
    return max(min(seconds, LONGEST, lasting.limit[prospect]), age + 1.0)


def not_below(values: Sequence[float], low: int, high: int, value: float) -> int:
    """Return the first index at which sorted values are not below a value."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
