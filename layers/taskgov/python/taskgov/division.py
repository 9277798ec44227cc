"""Divide a whole number of things by weight, within floors and ceilings.

One rule for everything that is divided: shares of capacity, the cut in a shortage, floors that do not fit. Exact
integers throughout; what the things are (instances, accelerators, vCPUs) is the caller's business.

The rule is the divisor method of Sainte-Laguë (Webster), bounded: everybody starts at the floor, and each further unit
goes to the party below its ceiling for which weight / (2 x units + 1) is greatest, ties by key. It is **house
monotone** (Balinski and Young, Fair Representation, 1982): one unit more to divide never takes a unit from anybody. The
price is the quota rule: a result can be a unit or more away from both whole numbers around the exact part.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush


@dataclass(frozen=True, slots=True)
class Party:
    """One who takes part in a division. The key breaks ties; a ceiling of None does not limit it."""

    key: str
    weight: int
    floor: int = 0
    ceiling: int | None = None


def divide(total: int, parties: Iterable[Party]) -> dict[str, int]:
    """Divide `total` by weight in whole units, within floors and ceilings, by the bounded method of Sainte-Laguë.

    A weight of 0 gets no more than its floor, unless ceilings leave something: that is divided equally among the
    parties of weight 0. The result sums to `total`, or to the sum of the ceilings when that is less.

    Raises `ValueError` when the floors exceed `total` or a bound contradicts itself: what then is the caller's decision
    (see `shortage`).

    Example: 10 over three equal shares (Kueue KEP-12382), and 12 where one may have 3 at most.
        >>> divide(10, [Party("a", 1), Party("b", 1), Party("c", 1)])
        {'a': 4, 'b': 3, 'c': 3}
        >>> divide(12, [Party("a", 50, ceiling=3), Party("b", 25), Party("c", 25, floor=4)])
        {'a': 3, 'b': 5, 'c': 4}

    """
    ordered = sorted(parties, key=lambda party: party.key)
    _check(total, ordered)
    units = {party.key: party.floor for party in ordered}
    for group in _by_rank(ordered):
        others = total - sum(units[party.key] for party in ordered) + sum(party.floor for party in group)
        units |= _divide_by_weight(others, group)
    return units


def divide_while(parties: Iterable[Party], take: Callable[[str], bool]) -> dict[str, int]:
    """Give units by the same method, one at a time, to those that can take one: what is divided need not be one number.

    `take` is called with the key of the party whose claim is strongest. It takes a unit and returns True, or says that
    there is none for it: then that party is not asked again. The result is the units of each party.
    """
    ordered = {party.key: party for party in sorted(parties, key=lambda party: party.key)}
    units = {key: party.floor for key, party in ordered.items()}
    takers = [(-_claim(party, units[key]), key) for key, party in ordered.items() if _has_room(party, units)]
    heapify(takers)
    while takers:
        _, key = heappop(takers)
        if take(key):
            units[key] += 1
            if _has_room(ordered[key], units):
                heappush(takers, (-_claim(ordered[key], units[key]), key))
    return units


def exact_parts(total: Fraction, parties: Iterable[Party]) -> dict[str, Fraction]:
    """Return the exact parts of `total` by weight within floors and ceilings: what `divide` brings to whole units.

    `total` need not be whole. Where it is less than the floors, everybody has the floor; where it is more than the
    ceilings, everybody has the ceiling.
    """
    ordered = sorted(parties, key=lambda party: party.key)
    parts = {party.key: Fraction(party.floor) for party in ordered}
    for group in _by_rank(ordered):
        others = total - sum(parts[party.key] for party in ordered) + sum(party.floor for party in group)
        parts |= _exact(others, group)
    return parts


def _check(total: int, parties: Sequence[Party]) -> None:
    floors = sum(party.floor for party in parties)
    if floors > total:
        raise ValueError(f"floors of {floors} exceed the {total} there are to divide")
    for party in parties:
        if party.weight < 0 or (party.ceiling is not None and party.ceiling < party.floor):
            raise ValueError(f"{party.key}: weight {party.weight}, floor {party.floor}, ceiling {party.ceiling}")


def _by_rank(parties: Sequence[Party]) -> tuple[list[Party], list[Party]]:
    """Return those with a weight, and those without, who come after them and are equal among themselves."""
    weightless = (Party(party.key, 1, party.floor, party.ceiling) for party in parties if not party.weight)
    return [party for party in parties if party.weight], list(weightless)


def _divide_by_weight(total: int, parties: Sequence[Party]) -> dict[str, int]:
    """Divide among parties with a weight, from near the end: unit by unit from the floors would take too long.

    The exact parts are weight / divisor within bounds. Rounded parts by that divisor are units that the method gives,
    and their sum is at most a unit a party away from `total`; the rest is given or taken in the order of the method.
    """
    bound, free = _on_bounds(total, parties)
    units = dict(bound)
    if free:
        rest, whole = total - sum(bound.values()), sum(party.weight for party in free)
        for party in parties:
            units[party.key] = _bounded(party, (2 * party.weight * rest + whole) // (2 * whole))
    missing = total - sum(units.values())
    if missing > 0:
        _give(missing, parties, units)
    elif missing < 0:
        _take(-missing, parties, units)
    return units


def _give(missing: int, parties: Sequence[Party], units: dict[str, int]) -> None:
    """Give one unit at a time to the next by the method and below the ceiling."""
    takers = [(-_claim(party, units[party.key]), party.key, party) for party in parties if _has_room(party, units)]
    heapify(takers)
    while missing > 0 and takers:
        _, key, party = heappop(takers)
        units[key] += 1
        missing -= 1
        if _has_room(party, units):
            heappush(takers, (-_claim(party, units[key]), key, party))


def _take(excess: int, parties: Sequence[Party], units: dict[str, int]) -> None:
    """Take one unit at a time from the last to get one by the method that is above the floor."""
    order = {party.key: -place for place, party in enumerate(parties)}
    givers = [
        (_claim(party, units[party.key] - 1), order[party.key], party)
        for party in parties
        if units[party.key] > party.floor
    ]
    heapify(givers)
    while excess > 0 and givers:
        _, place, party = heappop(givers)
        units[party.key] -= 1
        excess -= 1
        if units[party.key] > party.floor:
            heappush(givers, (_claim(party, units[party.key] - 1), place, party))


def _claim(party: Party, units: int) -> Fraction:
    """Return how strong the claim of a party that has `units` is to one more."""
    return Fraction(party.weight, 2 * units + 1)


def _has_room(party: Party, units: Mapping[str, int]) -> bool:
    return party.ceiling is None or units[party.key] < party.ceiling


def _bounded(party: Party, part: int) -> int:
    part = max(part, party.floor)
    return part if party.ceiling is None else min(part, party.ceiling)


def _exact(total: Fraction, parties: Sequence[Party]) -> dict[str, Fraction]:
    bound, free = _on_bounds(total, parties)
    rest, whole = total - sum(bound.values()), sum(party.weight for party in free)
    parts = {party.key: Fraction(rest * party.weight, whole) for party in free}
    return parts | {key: Fraction(bounds) for key, bounds in bound.items()}


def _on_bounds(total: int | Fraction, parties: Sequence[Party]) -> tuple[dict[str, int], list[Party]]:
    """Return who stands on a bound, with its value, and who shares the rest by weight.

    Of the broken floors and the broken ceilings, the side that is broken by more is put right first: putting it right
    can only lessen the other (the rule by which CSS resolves flexible lengths). Nobody is put on a bound wrongly.
    """
    bound: dict[str, int] = {}
    free = list(parties)
    while free:
        rest, whole = total - sum(bound.values()), sum(party.weight for party in free)
        below = [party for party in free if rest * party.weight < party.floor * whole]
        above = [party for party in free if party.ceiling is not None and rest * party.weight > party.ceiling * whole]
        if not below and not above:
            break
        missing = sum(party.floor * whole - rest * party.weight for party in below)
        excess = sum(rest * party.weight - (party.ceiling or 0) * whole for party in above)
        bound |= {party.key: party.floor for party in below if missing >= excess}
        bound |= {party.key: party.ceiling or 0 for party in above if excess >= missing}
        free = [party for party in free if party.key not in bound]
    return bound, free
