"""Divide the cuts if the promises exceed the capacity.

Tiers are cut from the highest number down, in proportion to the promises within a tier. No team falls below its floor
while another tier can be cut. If even the floors do not fit, this is an incident, and the floors are scaled down.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from taskgov.division import Party, divide, exact_parts

Tiers = Mapping[int, Sequence[Party]]
"""Tier -> who was promised how many whole units (see `promised`)."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What everyone is left with. `incident` says that not even the floors fit."""

    amounts: Mapping[str, int]
    incident: bool = False


def promised(key: str, amount: int, floor: int) -> Party:
    """Return a promise as a party to a division: it is both weight and ceiling, and no floor is above it."""
    return Party(key, amount, floor=min(floor, amount), ceiling=amount)


def fit(tiers: Tiers, capacity: int) -> Cut:
    """Return what each promise gets of `capacity`; all of it when the promises fit.

    One unit more of capacity never takes a unit from anybody: floors come first, then tier after tier from the lowest
    number, and within each the division is house monotone.

    Example: of 10, team-b in tier 2 gives first and keeps its floor; then tier 1 gives.
        >>> tiers = {1: [promised("team-a", 6, floor=2)], 2: [promised("team-b", 6, floor=4)]}
        >>> fit(tiers, 10).amounts, fit(tiers, 8).amounts
        ({'team-a': 6, 'team-b': 4}, {'team-a': 4, 'team-b': 4})
        >>> fit(tiers, 4).amounts, fit(tiers, 4).incident
        ({'team-a': 1, 'team-b': 3}, True)

    """
    amounts: dict[str, int] = {}
    for given, parties in _parts(tiers, max(capacity, 0)):
        amounts |= divide(given, parties)
    everybody = _everybody(tiers)
    return Cut({party.key: amounts[party.key] for party in everybody}, _floors(everybody) > capacity)


def exact_cuts(tiers: Tiers, capacity: int) -> dict[str, tuple[Fraction, Fraction]]:
    """Return the proportional part of each promise, without floors and within them: `fit` makes whole units of it."""
    cuts: dict[str, tuple[Fraction, Fraction]] = {}
    for given, parties in _parts(tiers, max(capacity, 0)):
        whole = _amounts(parties)
        within = exact_parts(Fraction(given), parties)
        for party in parties:
            alone = Fraction(given * party.weight, whole) if whole else Fraction(0)
            cuts[party.key] = alone, within[party.key]
    return cuts


def _parts(tiers: Tiers, capacity: int) -> list[tuple[int, Sequence[Party]]]:
    """Return what is divided among whom: tier by tier, or among all floors where these do not fit."""
    everybody = _everybody(tiers)
    if _floors(everybody) > capacity:
        return [(capacity, [promised(party.key, party.floor, floor=0) for party in everybody])]
    missing = max(_amounts(everybody) - capacity, 0)
    parts: list[tuple[int, Sequence[Party]]] = []
    for _, parties in sorted(tiers.items(), reverse=True):
        given = min(missing, _amounts(parties) - _floors(parties))
        missing -= given
        parts.append((_amounts(parties) - given, parties))
    return parts


def _everybody(tiers: Tiers) -> list[Party]:
    return [party for _, parties in sorted(tiers.items()) for party in parties]


def _amounts(parties: Iterable[Party]) -> int:
    return sum(party.weight for party in parties)


def _floors(parties: Iterable[Party]) -> int:
    return sum(party.floor for party in parties)
