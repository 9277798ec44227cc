"""Decide who gives how much when the promises do not fit into the capacity.

Tier by tier, the highest number first; in proportion to the promises within a tier; nobody below the floor while
another tier can still give. Floors that do not fit either are an incident: then the floors themselves are scaled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from taskgov.allocation.shares import Party, divide


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

    Example: of 10, team-b in tier 2 gives first and keeps its floor; then tier 1 gives.
        >>> claims = [Claim("team-a", 6, 2, tier=1), Claim("team-b", 6, 4, tier=2)]
        >>> fit(claims, 10).amounts, fit(claims, 8).amounts
        ({'team-a': 6, 'team-b': 4}, {'team-a': 4, 'team-b': 4})
        >>> fit(claims, 4)
        Cut(amounts={'team-a': 1, 'team-b': 3}, incident=True)

    """
    floors = sum(_floor(claim) for claim in claims)
    if floors > capacity:
        parties = [Party(claim.key, _floor(claim), ceiling=_floor(claim)) for claim in claims]
        return Cut(divide(max(capacity, 0), parties), incident=True)
    missing = max(sum(claim.amount for claim in claims) - capacity, 0)
    amounts: dict[str, int] = {}
    for _, members in groupby(sorted(claims, key=_gives_first), key=_gives_first):
        tier = list(members)
        promised = sum(claim.amount for claim in tier)
        given = min(missing, promised - sum(_floor(claim) for claim in tier))
        missing -= given
        amounts |= divide(promised - given, [_bounded(claim) for claim in tier])
    return Cut({claim.key: amounts[claim.key] for claim in claims})


def _floor(claim: Claim) -> int:
    return min(claim.floor, claim.amount)


def _gives_first(claim: Claim) -> int:
    return -claim.tier


def _bounded(claim: Claim) -> Party:
    return Party(claim.key, claim.amount, floor=_floor(claim), ceiling=claim.amount)
