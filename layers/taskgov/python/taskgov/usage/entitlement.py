"""What each team is entitled to now, given what all of them want: shown beside what they use.

A team's guarantee comes first, up to its demand. The surplus is split by weighted max-min fairness of dominant
shares (DRF, Ghodsi et al. 2011): all with more demand grow together, each in the proportions of its demand and as fast
as its weight, until its demand is met or something it needs is used up. Teams of weight 0 share what is then left,
equally; an infinite share never appears.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

Amounts = Mapping[str, int]
"""Resource -> base units; a resource is any key that all parties use alike, such as `ml.p5.48xlarge/nvidia.com/gpu`."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """One team: its fair-share weight, its guarantee (nominal quota), and what it would use were it alone."""

    team: str
    weight: int
    guaranteed: Amounts
    wants: Amounts


def entitlements(claimants: Iterable[Claimant], capacity: Amounts) -> dict[str, dict[str, int]]:
    """Return team -> what it is entitled to, rounded down to base units; never more than its demand.

    Guarantees are not cut to `capacity`: where they exceed it, nothing is left to split.

    Example: a surplus of 6 GPUs; weight 10 beside weight 5 gets twice as much, weight 0 waits for what they leave.
        >>> def wants(gpus): return {"gpu": gpus}
        >>> teams = [Claimant("a", 10, {}, wants(9)), Claimant("b", 5, {}, wants(9)), Claimant("c", 0, {}, wants(9))]
        >>> entitlements(teams, {"gpu": 6})
        {'a': {'gpu': 4}, 'b': {'gpu': 2}, 'c': {'gpu': 0}}

    """
    ordered = sorted(claimants, key=lambda claimant: claimant.team)
    own = {
        claimant.team: {r: min(n, claimant.guaranteed.get(r, 0)) for r, n in claimant.wants.items()}
        for claimant in ordered
    }
    free = {r: Fraction(n - sum(held.get(r, 0) for held in own.values())) for r, n in capacity.items()}
    lacking = [claimant for claimant in ordered if own[claimant.team] != claimant.wants]
    weighted = [
        _Growing(claimant, own[claimant.team], Fraction(claimant.weight)) for claimant in lacking if claimant.weight > 0
    ]
    unweighted = [_Growing(claimant, own[claimant.team], Fraction(1)) for claimant in lacking if claimant.weight <= 0]
    grown = {**_grow(weighted, free, capacity), **_grow(unweighted, free, capacity)}
    return own | {
        claimant.team: {
            r: own[claimant.team][r] + int(grown[claimant.team] * (n - own[claimant.team][r]))
            for r, n in claimant.wants.items()
        }
        for claimant in lacking
    }


class _Growing:
    """One team while the surplus is split: `part` is how much of what it lacks it has been given, 0 to 1."""

    def __init__(self, claimant: Claimant, own: Amounts, weight: Fraction) -> None:
        self.team = claimant.team
        self.weight = weight
        self.lacks = {r: n - own[r] for r, n in claimant.wants.items() if n > own[r]}
        self.part = Fraction(0)

    def speed(self, capacity: Amounts) -> Fraction:
        """Return how fast `part` grows, so that the dominant share grows as fast as the weight."""
        dominant = max(Fraction(n, capacity[r]) for r, n in self.lacks.items())
        return self.weight / dominant

    def is_stuck(self, free: Mapping[str, Fraction]) -> bool:
        return self.part >= 1 or any(free.get(r, Fraction(0)) <= 0 for r in self.lacks)


def _grow(teams: Sequence[_Growing], free: dict[str, Fraction], capacity: Amounts) -> dict[str, Fraction]:
    """Let all teams grow until nobody can; take what they got out of `free`; return each one's part."""
    growing = [team for team in teams if team.lacks and not team.is_stuck(free)]
    while growing:
        speeds = {team.team: team.speed(capacity) for team in growing}
        flow = {r: sum((speeds[t.team] * t.lacks.get(r, 0) for t in growing), Fraction(0)) for r in free}
        filled = (free[r] / rate for r, rate in flow.items() if rate)
        sated = ((1 - team.part) / speeds[team.team] for team in growing)
        time = min((*filled, *sated))
        for team in growing:
            team.part += speeds[team.team] * time
        for r, rate in flow.items():
            free[r] -= rate * time
        growing = [team for team in growing if not team.is_stuck(free)]
    return {team.team: team.part for team in teams}
