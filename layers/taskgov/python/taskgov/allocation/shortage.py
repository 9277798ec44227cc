"""Decide who gives how much when the promises do not fit into the capacity.

Tier by tier, the highest number first; in proportion to the promises within a tier; nobody below the floor while
another tier can still give. Floors that do not fit either are an incident: then the floors themselves are scaled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from taskgov.division import Party, divide, exact_parts


@dataclass(frozen=True, slots=True)
class Claim:
    """What one party was promised, in whole units; `floor` is what it keeps while anybody else can give."""

    key: str
    amount: int
    floor: int
    tier: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What everyone is left with. `incident` says that not even the floors fit."""

    amounts: dict[str, int]
    incident: bool = False


def fit(claims: Sequence[Claim], capacity: int) -> Cut:
    """Return what each claim gets of `capacity`; all of it when the claims fit.

    One unit more of capacity never takes a unit from anybody: floors come first, then tier after tier from the lowest
    number, and within each the division is house monotone. The promise is both weight and ceiling.

    Example: of 10, team-b in tier 2 gives first and keeps its floor; then tier 1 gives.
        >>> claims = [Claim("team-a", 6, 2, tier=1), Claim("team-b", 6, 4, tier=2)]
        >>> fit(claims, 10).amounts, fit(claims, 8).amounts
        ({'team-a': 6, 'team-b': 4}, {'team-a': 4, 'team-b': 4})
        >>> fit(claims, 4).amounts, fit(claims, 4).incident
        ({'team-a': 1, 'team-b': 3}, True)

    """
    parts = _parts(claims, max(capacity, 0))
    amounts: dict[str, int] = {}
    for given, parties in parts:
        amounts |= divide(given, parties)
    incident = sum(map(floor_of, claims)) > capacity
    return Cut({claim.key: amounts[claim.key] for claim in claims}, incident)


def exact_cuts(claims: Sequence[Claim], capacity: int) -> dict[str, tuple[Fraction, Fraction]]:
    """Return the proportional part of each claim, without floors and within them: `fit` brings it to whole units."""
    cuts: dict[str, tuple[Fraction, Fraction]] = {}
    for given, parties in _parts(claims, max(capacity, 0)):
        whole = sum(party.weight for party in parties)
        within = exact_parts(Fraction(given), parties)
        for party in parties:
            alone = Fraction(given * party.weight, whole) if whole else Fraction(0)
            cuts[party.key] = alone, within[party.key]
    return cuts


def floor_of(claim: Claim) -> int:
    """Return what a claim keeps while anybody else can give: its floor, and no more than was promised."""
    return min(claim.floor, claim.amount)


def _parts(claims: Sequence[Claim], capacity: int) -> list[tuple[int, list[Party]]]:
    """Return what is divided among whom: tier by tier, or among all floors where these do not fit."""
    if sum(map(floor_of, claims)) > capacity:
        return [(capacity, [Party(claim.key, floor_of(claim), ceiling=floor_of(claim)) for claim in claims])]
    missing = max(sum(claim.amount for claim in claims) - capacity, 0)
    parts: list[tuple[int, list[Party]]] = []
    for _, members in groupby(sorted(claims, key=_gives_first), key=_gives_first):
        tier = list(members)
        promised = sum(claim.amount for claim in tier)
        given = min(missing, promised - sum(map(floor_of, tier)))
        missing -= given
        parts.append((promised - given, [_bounded(claim) for claim in tier]))
    return parts


def _gives_first(claim: Claim) -> int:
    return -claim.tier


def _bounded(claim: Claim) -> Party:
    return Party(claim.key, claim.amount, floor=floor_of(claim), ceiling=claim.amount)
