"""Random numbers and random run times.

The generator is L'Ecuyer's combined one (P. L'Ecuyer, "Efficient and portable combined random number generators",
1988): it needs no number above 2 ** 63.
"""

from __future__ import annotations

from math import cos, erfc, exp, log, pi, sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.flat.tables import Lasting

FIRST: Final = 2147483563
SECOND: Final = 2147483399
SHORTEST: Final = 60.0
WEEK: Final = 7 * 86400.0
LONGEST: Final = 60 * 86400.0


def uniform(luck: list[int]) -> float:
    """Return a random number in (0, 1)."""
    luck[0] = luck[0] * 40014 % FIRST
    luck[1] = luck[1] * 40692 % SECOND
    mixed = luck[0] - luck[1]
    if mixed < 1:
        mixed += FIRST - 1
    return mixed / FIRST


def normal(luck: list[int]) -> float:
    """Return a normally distributed random number."""
    return sqrt(-2.0 * log(uniform(luck))) * cos(2.0 * pi * uniform(luck))


def seconds_of(lasting: Lasting, prospect: int, shared: list[float], luck: list[int]) -> float:
    """Return a total run time, as `taskgov.estimates.run_times.Prospect.draw` does. The team's shared number drifts."""
    if lasting.fixed[prospect] >= 0:
        return lasting.fixed[prospect]
    team = lasting.team[prospect]
    place = lasting.shared * shared[team] + lasting.own * normal(luck)
    shared[team] = lasting.keeps * shared[team] + lasting.gains * normal(luck)
    part = min(0.5 * erfc(-place / sqrt(2.0)), 1.0 - 1e-9)
    which = uniform(luck)
    mix, last = lasting.mix[prospect], lasting.mix[prospect + 1] - 1
    while mix < last and lasting.weight[mix] <= which:
        mix += 1
    own_age = lasting.age[prospect]
    age, seconds = own_age, -1.0
    while mix < last + 1 and seconds < 0:
        law = lasting.law[mix]
        mix += 1
        left = left_after(lasting, law, age)
        if left <= 0:
            continue
        target = left * (1.0 - part)
        seconds = between(lasting, law, 1.0 - target, age)
        if seconds < 0:
            part = 1.0 - target / left_after(lasting, law, lasting.last[law])
            age = max(age, lasting.last[law])
    if seconds < 0 and age > 0:
        seconds = max(age, SHORTEST) / sqrt(max(1.0 - part, 1e-9))
    elif seconds < 0:
        seconds = SHORTEST * exp(log(WEEK / SHORTEST) * part)
    return max(min(seconds, LONGEST, lasting.limit[prospect]), own_age + 1.0)


def left_after(lasting: Lasting, law: int, seconds: float) -> float:
    """Return the probability to run longer, by a law."""
    first = lasting.first[law]
    place = above(lasting.times, first, lasting.first[law + 1], seconds)
    return 1.0 - lasting.gone[place - 1] if place > first else 1.0


def between(lasting: Lasting, law: int, part: float, age: float) -> float:
    """Return the interpolated quantile of a law above an age; -1 beyond its end."""
    first, end = lasting.first[law], lasting.first[law + 1]
    place = not_below(lasting.gone, first, end, part - 1e-12)
    if place == end:
        return -1.0
    before = lasting.gone[place - 1] if place > first else 0.0
    start = max(age, lasting.times[place - 1] if place > first else 0.0)
    share = min(1.0, (part - before) / lasting.job_part[place])
    return start + max(0.0, share) * (lasting.times[place] - start)


def above(values: Sequence[float], low: int, high: int, value: float) -> int:
    """Return the first index at which sorted values are above a value."""
    while low < high:
        middle = (low + high) // 2
        if value < values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


def not_below(values: Sequence[float], low: int, high: int, value: float) -> int:
    """Return the first index at which sorted values are not below a value."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
