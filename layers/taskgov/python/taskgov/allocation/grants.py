"""Grant the claims on one instance type: how much of each claim fits.

Claims that fit are granted exactly. Claims that do not fit are measured in their coarsest common **grain**, cut by
`shortage`, and rounded down to whole units:

| promises on the type | grain |
| --- | --- |
| whole instances only | one instance |
| parts, on a type with accelerators | one accelerator (a seventh of it when partitions are promised) |
| parts, on a type without | one vCPU |

A promise weighs by its largest resource: 2 of 4 GPUs with all 48 vCPUs weigh as 4. This is safe: a set that fits by the
largest resource fits by each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.parts import (
    ACCELERATOR,
    Vector,
    add,
    fits,
    is_in_parts,
    need,
    row_of_parts,
    scaled,
    subtract,
)
from taskgov.allocation.plan import Reason
from taskgov.allocation.shortage import exact_cuts, fit, promised
from taskgov.allocation.sources import Cause, Trail, amounts_in
from taskgov.allocation.wording import capacity_words, said_number
from taskgov.division import Party
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis
from taskgov.quantities import CPU


@dataclass(frozen=True, slots=True)
class Grants:
    """All claims on one instance type, as they are granted.

    `short` says in words what did not fit, `incident` that not even floors did.
    """

    claims: tuple[Claim, ...]
    short: str = ""
    incident: bool = False


def grant(
    capacity: TypeCapacity, claims: Sequence[Claim], taken: Vector, basis: CapacityBasis, *, overcommit: bool
) -> Grants:
    """Return the granted part of every claim; `taken` is the part of the type that is already used.

    On a type without any nodes, nothing is granted beyond the present quota, unless over-commitment is declared: a
    quota on future machines is planned capacity, not a promise to run.
    """
    if not capacity.has_nodes or not capacity.per_instance:
        # Nothing is promised on nodes that offer nothing (yet), at basis `allocatable`.
        declared = overcommit and not capacity.has_nodes
        return Grants(tuple(_planned_for(claim, capacity, overcommit=declared) for claim in claims))
    claims = [_possible(_at_basis(claim, capacity, basis), capacity) for claim in claims]
    needs = [need(claim.row, capacity.resources) for claim in claims]
    known = [vector for vector in needs if vector is not None]
    left = subtract(capacity.total, taken)
    if fits(add(known), left):
        return Grants(
            tuple(
                _unbound(claim) if vector is None else _kept(claim, capacity)
                for claim, vector in zip(claims, needs, strict=True)
            )
        )
    return _Shortage(capacity, claims, left).grants()


class _Shortage:
    """Cuts the claims on one type to what is left of it."""

    def __init__(self, capacity: TypeCapacity, claims: Sequence[Claim], left: Vector) -> None:
        self._capacity = capacity
        self._per_grain = _grains_per_instance(capacity, claims)
        self._claims = [(claim, _in_grains(claim, capacity, self._per_grain)) for claim in claims]
        self._tiers: dict[int, list[Party]] = {}
        for claim, party in self._claims:
            if party is not None:
                self._tiers.setdefault(claim.tier, []).append(party)
        per_instance = capacity.per_instance
        self._room = min((max(left[r], 0) * self._per_grain // n for r, n in per_instance.items() if n), default=0)
        self._cut = fit(self._tiers, self._room)
        self._gives_first = max(self._tiers) if len(self._tiers) > 1 else None

    def grants(self) -> Grants:
        claims = tuple(
            _unbound(claim) if party is None else self._granted(claim, party) for claim, party in self._claims
        )
        return Grants(claims, short=f"{self._numbers()}, {self._words()}", incident=self._cut.incident)

    def _numbers(self) -> str:
        """Say what does not fit into what, in instances."""
        what = "floors" if self._cut.incident else "guarantees"
        parties = (party for parties in self._tiers.values() for party in parties)
        whole = sum(party.floor if self._cut.incident else party.weight for party in parties)
        return f"{what} of {self._number(whole)}, {self._number(self._room)} to give"

    def _granted(self, claim: Claim, party: Party) -> Claim:
        """Return what the cut left of a claim."""
        amount = self._cut.amounts[party.key]
        if amount == party.weight:
            return _kept(claim, self._capacity)
        row, tell = scaled(claim.row, amount, party.weight), partial(self._tell, claim, party)
        if self._cut.incident:
            below = f", below its floor of {said_number(claim.floor)}" if amount < party.floor else ""
            because = f"{self._words()}, {self._numbers()}, floors are scaled down, {claim.because}{below}"
            return replace(claim, row=row, reason=Reason.INCIDENT, because=because, tell=tell)
        gives = f"tier {claim.tier} gives first" if claim.tier == self._gives_first else f"tier {claim.tier} gives"
        floor_kept = f", floor {said_number(claim.floor)} kept" if claim.floor else ""
        because = f"{self._words()}, {gives}, {claim.because}{floor_kept}"
        return replace(claim, row=row, reason=Reason.SHORTAGE, because=because, tell=tell)

    def _tell(self, claim: Claim, party: Party) -> Trail:
        """Describe how the claim became what the cut left of it: by proportion, by floors, by rounding."""
        alone, within = exact_cuts(self._tiers, self._room)[party.key]
        claimed, trail, numbers = amounts_in(claim.row), claim.tell(), f"{self._words()}, {self._numbers()}"

        def part(of: Fraction) -> dict[str, Fraction]:
            return {unit: value * of / party.weight for unit, value in claimed.items()}

        if self._cut.incident:
            trail = trail.to(part(Fraction(party.floor)), Cause.SHORTAGE, f"{self._words()}: floors come first")
            trail = trail.to(part(alone), Cause.INCIDENT, numbers)
        else:
            own = within == party.floor and within > alone
            trail = trail.to(part(alone), Cause.SHORTAGE, f"{numbers}, tier {claim.tier} gives")
            words = f"floor {said_number(claim.floor)}" if own else "floors and ceilings of other teams"
            trail = trail.to(part(within), Cause.FLOOR if own else Cause.BOUNDS_OF_OTHERS, words)
        row = scaled(claim.row, self._cut.amounts[party.key], party.weight)
        return trail.to(row, Cause.ROUNDING, "division in whole units")

    def _words(self) -> str:
        return capacity_words(self._capacity.line)

    def _number(self, grains: int) -> str:
        return said_number(Fraction(grains, self._per_grain))


def _grains_per_instance(capacity: TypeCapacity, claims: Sequence[Claim]) -> int:
    if not any(is_in_parts(claim.row) for claim in claims):
        return 1
    sevenths = capacity.per_instance.get(ACCELERATOR, 0)
    if any(claim.row.accelerator_partition for claim in claims):
        return max(sevenths, 1)
    return max(sevenths // 7 or capacity.per_instance.get(CPU, 0) // 1000, 1)


def _in_grains(claim: Claim, capacity: TypeCapacity, per_grain: int) -> Party | None:
    """Return the claim in grains, weighed by its largest resource, or None when it cannot be weighed."""
    vector = need(claim.row, capacity.resources)
    if vector is None:
        return None
    per_instance = capacity.per_instance
    amount = max((-(-n * per_grain // per_instance[r]) for r, n in vector.items() if per_instance.get(r)), default=0)
    return promised(claim.key, amount, -int(-claim.floor * per_grain // 1))


def _kept(claim: Claim, capacity: TypeCapacity) -> Claim:
    """Grant all of a claim; a share says which machines it is a share of, where some are missing."""
    missing = claim.reason is Reason.SHARE and capacity.line.nodes != capacity.line.usable
    return replace(claim, because=f"{claim.because}, {capacity_words(capacity.line)}") if missing else claim


def _unbound(claim: Claim) -> Claim:
    """Return the claim with its present row, because its resources cannot be compared."""
    row = claim.today or scaled(claim.row, 0, 1)
    because = "the resources of the type are not known; left as it is"
    return replace(
        claim,
        row=row,
        reason=Reason.UNCHANGED,
        because=because,
        tell=lambda: claim.tell().to(row, Cause.UNKNOWN_TYPE, because),
    )


def _planned_for(claim: Claim, capacity: TypeCapacity, *, overcommit: bool) -> Claim:
    if overcommit:
        return replace(claim, because=f"{claim.because}, no nodes yet: declared over-commitment")
    row = _lesser(claim.row, claim.today, capacity)
    kept = f"{claim.because}, the type has no nodes"
    because = "the type has no nodes; nothing is added" if row != claim.row else kept
    return replace(claim, row=row, because=because, tell=lambda: claim.tell().to(row, Cause.NO_NODES, because))


def _lesser(
    promised: ComputeQuotaResource, today: ComputeQuotaResource | None, capacity: TypeCapacity
) -> ComputeQuotaResource:
    """Return the promise, capped by the present row in each resource; the present row if the numbers are unknown."""
    if today is None:
        return scaled(promised, 0, 1)
    wanted, stands = need(promised, capacity.resources), need(today, capacity.resources)
    return promised if wanted is not None and stands is not None and fits(wanted, stands) else today


def _at_basis(claim: Claim, capacity: TypeCapacity, basis: CapacityBasis) -> Claim:
    """Write whole instances as their allocatable resources, if the policy counts those."""
    if basis is CapacityBasis.INSTANCES or not claim.row.count or not capacity.per_instance:
        return claim
    real = {resource: amount * claim.row.count for resource, amount in capacity.per_instance.items()}
    row = row_of_parts(claim.row.instance_type, real)
    return replace(claim, row=row, tell=lambda: Trail().to(row, Cause.PROMISE, claim.because))


def _possible(claim: Claim, capacity: TypeCapacity) -> Claim:
    """Take accelerators out of a promise on a type that has none: no number of machines can keep it."""
    row, resources = claim.row, capacity.resources
    if resources is None or resources.accelerators or not (row.accelerators or row.accelerator_partition):
        return claim
    because = f"{row.instance_type} has no accelerators"
    kept = scaled(row, 0, 1) if row.accelerator_partition else row.model_copy(update={"accelerators": 0})
    tell = partial(_without, claim, kept, because)
    return replace(claim, row=kept, because=f"{claim.because}, {because}", tell=tell)


def _without(claim: Claim, row: ComputeQuotaResource, because: str) -> Trail:
    return claim.tell().to(row, Cause.CEILING, because)
