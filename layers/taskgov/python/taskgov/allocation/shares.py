"""Split a whole number of things by weight, within floors and ceilings.

One rule for everything that is divided: shares of capacity, the cut in a shortage, floors that do not fit. Exact
integers throughout; what the things are (instances, accelerators, vCPUs) is the caller's business.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Party:
    """One who takes part in a split. The key breaks ties; a ceiling of None is no bound."""

    key: str
    weight: int
    floor: int = 0
    ceiling: int | None = None


def divide(total: int, parties: Iterable[Party]) -> dict[str, int]:
    """Split `total` by weight in whole units, within floors and ceilings, by the largest remainder.

    Whoever's proportional part breaks a bound is put on it and the rest is split again among the others, until no
    bound is broken; then everyone gets the whole part, and what is left over goes one by one to the largest
    remainders, ties by key. Weights that are all 0 count as equal.

    The result sums to `total`, or to the sum of the ceilings when that is less. Raises `ValueError` when the floors
    exceed `total` or a bound contradicts itself: what then is the caller's decision (see `shortage`).

    Example: 10 over three equal shares (Kueue KEP-12382), and 12 where one may have 3 at most.
        >>> divide(10, [Party("a", 1), Party("b", 1), Party("c", 1)])
        {'a': 4, 'b': 3, 'c': 3}
        >>> divide(12, [Party("a", 50, ceiling=3), Party("b", 25), Party("c", 25, floor=4)])
        {'a': 3, 'b': 5, 'c': 4}

    """
    ordered = sorted(parties, key=lambda party: party.key)
    _check(total, ordered)
    bound, free = _settle_bounds(total, ordered)
    return {party.key: amount for party, amount in zip(ordered, _round(total, ordered, bound, free), strict=True)}


def _check(total: int, parties: Sequence[Party]) -> None:
    floors = sum(party.floor for party in parties)
    if floors > total:
        raise ValueError(f"floors of {floors} exceed the {total} there are to divide")
    for party in parties:
        if party.weight < 0 or (party.ceiling is not None and party.ceiling < party.floor):
            raise ValueError(f"{party.key}: weight {party.weight}, floor {party.floor}, ceiling {party.ceiling}")


def _settle_bounds(total: int, parties: Sequence[Party]) -> tuple[dict[str, int], list[Party]]:
    """Return who stands on a bound, with its value, and who shares the rest.

    Of the broken floors and the broken ceilings, the side that is broken by more is put right first: putting it right
    can only lessen the other (the rule by which CSS resolves flexible lengths). Nobody is put on a bound wrongly.
    """
    bound: dict[str, int] = {}
    free = list(parties)
    while free:
        rest, weights = total - sum(bound.values()), _weights(free)
        whole = sum(weights)
        below = {
            party.key: party.floor * whole - rest * weight
            for party, weight in zip(free, weights, strict=True)
            if rest * weight < party.floor * whole
        }
        above = {
            party.key: rest * weight - party.ceiling * whole
            for party, weight in zip(free, weights, strict=True)
            if party.ceiling is not None and rest * weight > party.ceiling * whole
        }
        if not below and not above:
            break
        missing, excess = sum(below.values()), sum(above.values())
        bound |= {party.key: party.floor for party in free if party.key in below and missing >= excess}
        bound |= {party.key: party.ceiling or 0 for party in free if party.key in above and excess >= missing}
        free = [party for party in free if party.key not in bound]
    return bound, free


def _round(total: int, parties: Sequence[Party], bound: dict[str, int], free: list[Party]) -> list[int]:
    rest, weights = total - sum(bound.values()), _weights(free)
    whole = sum(weights)
    parts = {party.key: divmod(rest * weight, whole) for party, weight in zip(free, weights, strict=True)}
    left_over = rest - sum(part for part, _ in parts.values()) if free else 0
    # A stable sort of parties in key order: equal remainders are served by key.
    lucky = {party.key for party in sorted(free, key=lambda party: -parts[party.key][1])[:left_over]}
    return [bound[party.key] if party.key in bound else parts[party.key][0] + (party.key in lucky) for party in parties]


def _weights(parties: Sequence[Party]) -> list[int]:
    weights = [party.weight for party in parties]
    return weights if any(weights) else [1] * len(weights)
