"""Compute the shares of one instance type in whole units.

| shares | divide |
| --- | --- |
| percentages | their part of the usable capacity; all of it if they sum to within 0.1 of 100 |
| weights | the usable capacity minus fixed promises, percentages and quotas that are left alone |

Both are divided by `taskgov.division`, within floors and ceilings, unit by unit: instances among shares counted in
instances, accelerators among shares counted in accelerators. If floors need more than the percentages give, the other
shares of the unit shrink once the capacity is used up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.parts import Vector, add, subtract
from taskgov.allocation.plan import Reason
from taskgov.allocation.sources import Cause, Trail, amounts_in
from taskgov.allocation.units import in_instances, most_units, row_at_basis, vector_of
from taskgov.division import Party, divide, exact_parts
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis
from taskgov.policy.measured import WHOLE_WITHIN, Share, Unit

HUNDREDTH: Final = Fraction(1, 100)
"""How exactly a person writes a percentage: a third is 33.33, and 33.33 % of 3 is one."""
MOST_ADDED: Final = Fraction(1, 10)
"""How much of a unit the rounding of percentages may add, on types of which there are many."""
MILLIONTHS: Final = 1_000_000
"""Percentages as weights: a person writes no more decimals."""

Steps = tuple[tuple[Fraction, Cause, str], ...]
"""The amount of a share after each cause, in its unit."""
Shares = Mapping[str, Share]
"""Team -> its share of the instance type."""


def portions(shares: Shares, capacity: TypeCapacity, taken: Vector, basis: CapacityBasis) -> dict[str, Claim]:
    """Return the claim that each share of a type comes to; `taken` is what fixed promises and quotas left alone have.

    More capacity never makes a portion smaller where all shares of the type are counted in instances.
    """
    return _Portions(capacity, basis).of(shares, taken)


@dataclass(frozen=True, slots=True)
class _Portions:
    capacity: TypeCapacity
    basis: CapacityBasis

    def of(self, shares: Shares, taken: Vector) -> dict[str, Claim]:
        percents = {team: share for team, share in shares.items() if share.percent is not None}
        weights = {team: share for team, share in shares.items() if share.weight is not None}
        whole = sum(map(percent_of, percents.values()), Fraction(0))
        scale = 100 / whole if abs(whole - 100) <= WHOLE_WITHIN else Fraction(1)
        found: dict[str, Claim] = {}
        for group in _by_unit(percents):
            found |= self._percentages(group, scale)
        served = (vector_of(claim.row, self.capacity) or {} for claim in found.values())
        left = subtract(self.capacity.usable, add((taken, *served)))
        all_weights = sum(share.weight or 0 for share in weights.values())
        for group in _by_unit(weights):
            found |= self._weights(group, left, all_weights)
        return found

    def _percentages(self, shares: Shares, scale: Fraction) -> dict[str, Claim]:
        first = next(iter(shares.values()))
        usable = self._usable(first)
        own = {team: usable * percent_of(share) * scale / 100 for team, share in shares.items()}
        within = sum((_bounded(share, own[team]) for team, share in shares.items()), Fraction(0))
        common = min(max(sum(own.values(), Fraction(0)), within), Fraction(usable))
        # Rounding by a person costs no unit: up to a hundredth of a percent for each share makes a unit whole.
        rounded_off = min(usable * len(shares) * HUNDREDTH / 100, MOST_ADDED)
        parties = {team: _party(team, share, int(percent_of(share) * MILLIONTHS)) for team, share in shares.items()}
        words = {team: f"{share.percent:g} % of {usable} usable{_unit(share)}" for team, share in shares.items()}
        return self._divided(shares, parties, common, own, words, rounded_off)

    def _weights(self, shares: Shares, left: Vector, all_weights: int) -> dict[str, Claim]:
        first = next(iter(shares.values()))
        weights = sum(share.weight or 0 for share in shares.values())
        part = {resource: amount * weights // all_weights for resource, amount in left.items()}
        common = Fraction(most_units(first, self.capacity, part, self.basis))
        own = {team: common * (share.weight or 0) / weights for team, share in shares.items()}
        parties = {team: _party(team, share, share.weight or 0) for team, share in shares.items()}
        there = f"the {common}{_unit(first)} that fixed quotas leave"
        words = {team: f"weight {share.weight} of {weights} in {there}" for team, share in shares.items()}
        return self._divided(shares, parties, common, own, words)

    def _divided(
        self,
        shares: Shares,
        parties: Mapping[str, Party],
        common: Fraction,
        own: Mapping[str, Fraction],
        words: Mapping[str, str],
        rounded_off: Fraction = Fraction(0),
    ) -> dict[str, Claim]:
        total = max(int(common + rounded_off), sum(party.floor for party in parties.values()))
        amounts, exact = divide(total, parties.values()), exact_parts(common, parties.values())
        return {
            team: self._claim(team, share, amounts[team], own[team], exact[team], words[team])
            for team, share in shares.items()
        }

    def _claim(self, team: str, share: Share, amount: int, own: Fraction, exact: Fraction, words: str) -> Claim:
        row = row_at_basis(share, amount, self.capacity, self.basis)
        bounded = _bounded(share, own)
        bound = f"floor {share.floor}" if bounded > own else f"ceiling {share.ceiling}"
        told = f"{words}, {bound}" if bounded != own and bounded == amount else words
        steps = (
            (own, Cause.SHARE, words),
            (bounded, Cause.FLOOR if bounded > own else Cause.CEILING, bound),
            (exact, Cause.BOUNDS_OF_OTHERS, "floors and ceilings of other shares"),
            (Fraction(amount), Cause.ROUNDING, f"division in whole {share.unit_name}"),
        )
        part = min(Fraction(share.floor, amount), Fraction(1)) if amount else Fraction(0)
        floor = part * in_instances(row, self.capacity)
        nothing = "" if amount or share.ceiling == 0 else self._why_nothing(share, own, words)
        tell = partial(self._trail, share, row, amount, steps)
        return Claim(team, row, Reason.SHARE, told, tell, floor=floor, nothing=nothing)

    def _trail(self, share: Share, row: ComputeQuotaResource, amount: int, steps: Steps) -> Trail:
        """Describe the numbers of a share in the units of its row."""
        # What one unit is: the row says it, unless it is a row of nothing.
        whole, units = (row, amount) if amount else (row_at_basis(share, 1, self.capacity, self.basis), 1)
        unit_amounts = {name: value / units for name, value in amounts_in(whole).items()}
        trail = Trail()
        for number, cause, because in steps:
            trail = trail.to({name: value * number for name, value in unit_amounts.items()}, cause, because)
        return trail.to(row, Cause.ROUNDING, "division in whole vCPUs and GiB")

    def _why_nothing(self, share: Share, own: Fraction, words: str) -> str:
        """Say why a share comes to nothing; 0 percent, and a share of no instances, need no word."""
        if own >= 1:
            return f"floors of other shares leave nothing of {words}"
        is_share_of_some = own or (share.weight and self.capacity.line.usable)
        return f"{words} is less than one {share.unit_name.removesuffix('s')}" if is_share_of_some else ""

    def _usable(self, share: Share) -> int:
        if share.unit is Unit.INSTANCES:
            return self.capacity.line.usable
        return most_units(share, self.capacity, self.capacity.usable, self.basis)


def percent_of(share: Share) -> Fraction:
    """Return a share's percentage as the decimal that a person wrote; 0 for a weight."""
    return Fraction(str(share.percent or 0))


def _by_unit(shares: Shares) -> Iterator[dict[str, Share]]:
    groups: dict[str, dict[str, Share]] = {}
    for team, share in sorted(shares.items()):
        groups.setdefault(share.place, {})[team] = share
    yield from groups.values()


def _party(team: str, share: Share, weight: int) -> Party:
    """Return who takes part in a division; 0 percent is the floor, and nothing of what ceilings leave."""
    return Party(team, weight, share.floor, share.ceiling if weight else share.floor)


def _bounded(share: Share, amount: Fraction) -> Fraction:
    amount = max(amount, Fraction(share.floor))
    return amount if share.ceiling is None else min(amount, Fraction(share.ceiling))


def _unit(share: Share) -> str:
    """Return the unit after a number; instances go without saying."""
    return "" if share.unit is Unit.INSTANCES else f" {share.unit_name}"
