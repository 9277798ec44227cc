"""How much of a guarantee demand may move in a day, in whole instances: `demand.maxMovePercent`.

The allocation moves by it; `taskgov validate` warns of guarantees that it can never move.
"""

from fractions import Fraction


def most_moved(count: int, percent: float) -> int:
    """Return how many of `count` guaranteed instances may be moved in a day: whole ones, rounded down.

    Example:
        >>> most_moved(20, 10), most_moved(4, 10), most_moved(3, 33.34)
        (2, 0, 1)

    """
    return int(count * Fraction(str(percent)) / 100)


def smallest_percent(count: int) -> float:
    """Return the smallest percentage, in hundredths, by which one of `count` (at least 1) instances moves.

    Example:
        >>> smallest_percent(4), smallest_percent(3)
        (25.0, 33.34)

    """
    return -(-10_000 // count) / 100
