"""Settle who gets how much of one instance type.

Promises that fit are kept to the letter. Those that do not are measured in the coarsest **grain** that all of them have
in common, cut by `shortage`, and rounded down to whole units:

| promises on the type | grain |
| --- | --- |
| whole instances only | one instance |
| parts, on a type with accelerators | one accelerator (a seventh of it when partitions are promised) |
| parts, on a type without | one vCPU |

A promise weighs by its largest resource: 2 of 4 GPUs with all 48 vCPUs weigh as 4. That is on the safe side: what fits
by the largest resource fits by each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import (
    ACCELERATOR,
    Vector,
    add,
    fits,
    is_in_parts,
    need,
    row_key,
    row_of_parts,
    scaled,
    subtract,
)
from taskgov.allocation.plan import Reason
from taskgov.allocation.shortage import Claim, exact_cuts, fit, floor_of
from taskgov.allocation.sources import Cause, Tell, Trail, amounts_in
from taskgov.allocation.wording import capacity_words, said_number
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis
from taskgov.quantities import CPU


@dataclass(frozen=True, slots=True)
class Ask:
    """What one team was promised of the type. `floor` is in instances; `words` say where the number comes from."""

    team: str
    row: ComputeQuotaResource
    tier: int
    floor: Fraction = Fraction(0)
    words: str = ""
    reason: Reason = Reason.PROMISE
    today: ComputeQuotaResource | None = None
    """What stands today, without what leases have moved."""
    tell: Tell = Trail
    """Where the row comes from."""

    @property
    def key(self) -> str:
        """The team, and the MIG profile where the row is one of partitions."""
        return " ".join(filter(None, (self.team, row_key(self.row)[1])))


@dataclass(frozen=True, slots=True)
class Grant:
    """What one team gets of the type, of what, and why."""

    ask: Ask
    row: ComputeQuotaResource
    reason: Reason
    because: str
    tell: Tell


@dataclass(frozen=True, slots=True)
class Settlement:
    """All grants on one instance type. `short` says in words what did not fit, `incident` that not even floors did."""

    grants: tuple[Grant, ...]
    short: str = ""
    incident: bool = False


def settle(
    capacity: TypeCapacity, asks: Sequence[Ask], taken: Vector, basis: CapacityBasis, *, overcommit: bool
) -> Settlement:
    """Return what every asking team gets, when `taken` of the type is gone already.

    On a type that has no nodes at all, nothing is granted beyond what stands today, unless over-commitment is
    declared: a quota on machines to come is a plan for them, not a promise to run.
    """
    if not capacity.has_nodes or not capacity.per_instance:
        # Nodes that offer nothing (yet) are no ground to promise anything on, at basis `allocatable`.
        declared = overcommit and not capacity.has_nodes
        return Settlement(tuple(_planned_for(ask, capacity, overcommit=declared) for ask in asks))
    asks = [_possible(_at_basis(ask, capacity, basis), capacity) for ask in asks]
    needs = [need(ask.row, capacity.resources) for ask in asks]
    known = [vector for vector in needs if vector is not None]
    left = subtract(capacity.total, taken)
    if fits(add(known), left):
        grants = tuple(
            _unbound(ask) if vector is None else _kept(ask, capacity) for ask, vector in zip(asks, needs, strict=True)
        )
        return Settlement(grants)
    return _Shortage(capacity, asks, left).settlement()


class _Shortage:
    """Cuts the promises on one type to what is left of it."""

    def __init__(self, capacity: TypeCapacity, asks: Sequence[Ask], left: Vector) -> None:
        self._capacity = capacity
        self._per_grain = _grains_per_instance(capacity, asks)
        self._claims = [(ask, _claim(ask, capacity, self._per_grain)) for ask in asks]
        self._known = [claim for _, claim in self._claims if claim is not None]
        per_instance = capacity.per_instance
        self._room = min((max(left[r], 0) * self._per_grain // n for r, n in per_instance.items() if n), default=0)
        self._cut = fit(self._known, self._room)
        several = len({claim.tier for claim in self._known}) > 1
        self._gives_first = max((claim.tier for claim in self._known), default=0) if several else None

    def settlement(self) -> Settlement:
        grants = tuple(_unbound(ask) if claim is None else self._granted(ask, claim) for ask, claim in self._claims)
        return Settlement(grants, short=f"{self._numbers()}, {self._words()}", incident=self._cut.incident)

    def _numbers(self) -> str:
        """Say what does not fit into what, in instances."""
        what = "floors" if self._cut.incident else "promises"
        whole = sum(floor_of(claim) if self._cut.incident else claim.amount for claim in self._known)
        return f"{what} of {self._number(whole)}, {self._number(self._room)} to give"

    def _granted(self, ask: Ask, claim: Claim) -> Grant:
        """Grant what the cut left of a claim."""
        amount = self._cut.amounts[claim.key]
        if amount == claim.amount:
            return _kept(ask, self._capacity)
        row, tell = scaled(ask.row, amount, claim.amount), partial(self._tell, ask, claim)
        if self._cut.incident:
            floor = floor_of(claim)
            below = f", below its floor of {said_number(ask.floor)}" if amount < floor else ""
            because = f"{self._words()}, {self._numbers()}, floors are scaled down, {ask.words}{below}"
            return Grant(ask, row, Reason.INCIDENT, because, tell)
        gives = f"tier {ask.tier} gives first" if ask.tier == self._gives_first else f"tier {ask.tier} gives"
        floor_kept = f", floor {said_number(ask.floor)} kept" if ask.floor else ""
        because = f"{self._words()}, {gives}, {ask.words}{floor_kept}"
        return Grant(ask, row, Reason.SHORTAGE, because, tell)

    def _tell(self, ask: Ask, claim: Claim) -> Trail:
        """Tell how the promise became what the cut left of it: by proportion, by floors, by rounding."""
        alone, within = exact_cuts(self._known, self._room)[claim.key]
        promised, trail, numbers = amounts_in(ask.row), ask.tell(), f"{self._words()}, {self._numbers()}"

        def part(of: Fraction) -> dict[str, Fraction]:
            return {unit: value * of / claim.amount for unit, value in promised.items()}

        if self._cut.incident:
            trail = trail.to(part(Fraction(floor_of(claim))), Cause.SHORTAGE, f"{self._words()}: floors come first")
            trail = trail.to(part(alone), Cause.INCIDENT, numbers)
        else:
            own = within == floor_of(claim) and within > alone
            trail = trail.to(part(alone), Cause.SHORTAGE, f"{numbers}, tier {ask.tier} gives")
            words = f"floor {said_number(ask.floor)}" if own else "floors and ceilings of other promises"
            trail = trail.to(part(within), Cause.FLOOR if own else Cause.BOUNDS_OF_OTHERS, words)
        row = scaled(ask.row, self._cut.amounts[claim.key], claim.amount)
        return trail.to(row, Cause.ROUNDING, "division in whole units")

    def _words(self) -> str:
        return capacity_words(self._capacity.line)

    def _number(self, grains: int) -> str:
        return said_number(Fraction(grains, self._per_grain))


def _grains_per_instance(capacity: TypeCapacity, asks: Sequence[Ask]) -> int:
    if not any(is_in_parts(ask.row) for ask in asks):
        return 1
    sevenths = capacity.per_instance.get(ACCELERATOR, 0)
    if any(ask.row.accelerator_partition for ask in asks):
        return max(sevenths, 1)
    return max(sevenths // 7 or capacity.per_instance.get(CPU, 0) // 1000, 1)


def _claim(ask: Ask, capacity: TypeCapacity, per_grain: int) -> Claim | None:
    """Return the claim in grains, weighed by its largest resource, or None when it cannot be weighed."""
    vector = need(ask.row, capacity.resources)
    if vector is None:
        return None
    per_instance = capacity.per_instance
    amount = max((-(-n * per_grain // per_instance[r]) for r, n in vector.items() if per_instance.get(r)), default=0)
    return Claim(ask.key, amount, min(-int(-ask.floor * per_grain // 1), amount), ask.tier)


def _kept(ask: Ask, capacity: TypeCapacity) -> Grant:
    """Grant all that was asked; a share says which machines it is a share of, where some are missing."""
    missing = ask.reason is Reason.SHARE and capacity.line.nodes != capacity.line.usable
    words = f"{ask.words}, {capacity_words(capacity.line)}" if missing else ask.words
    return Grant(ask, ask.row, ask.reason, words, ask.tell)


def _unbound(ask: Ask) -> Grant:
    """Leave a promise alone whose resources cannot be compared."""
    row = ask.today or scaled(ask.row, 0, 1)
    because = "the resources of the type are not known; left as it is"
    return Grant(ask, row, Reason.UNCHANGED, because, lambda: ask.tell().to(row, Cause.UNKNOWN_TYPE, because))


def _planned_for(ask: Ask, capacity: TypeCapacity, *, overcommit: bool) -> Grant:
    if overcommit:
        because = f"{ask.words}, no nodes yet: declared over-commitment"
        return Grant(ask, ask.row, ask.reason, because, ask.tell)
    row = _lesser(ask.row, ask.today, capacity)
    because = "the type has no nodes; nothing is added" if row != ask.row else f"{ask.words}, the type has no nodes"
    return Grant(ask, row, ask.reason, because, lambda: ask.tell().to(row, Cause.NO_NODES, because))


def _lesser(
    promised: ComputeQuotaResource, today: ComputeQuotaResource | None, capacity: TypeCapacity
) -> ComputeQuotaResource:
    """Return what is promised, but no more of anything than stands today; today's row where that cannot be told."""
    if today is None:
        return scaled(promised, 0, 1)
    wanted, stands = need(promised, capacity.resources), need(today, capacity.resources)
    return promised if wanted is not None and stands is not None and fits(wanted, stands) else today


def _at_basis(ask: Ask, capacity: TypeCapacity, basis: CapacityBasis) -> Ask:
    """Write whole instances as what they really offer, where the policy counts that."""
    if basis is CapacityBasis.INSTANCES or not ask.row.count or not capacity.per_instance:
        return ask
    real = {resource: amount * ask.row.count for resource, amount in capacity.per_instance.items()}
    row = row_of_parts(ask.row.instance_type, real)
    return replace(ask, row=row, tell=lambda: Trail().to(row, Cause.PROMISE, ask.words))


def _possible(ask: Ask, capacity: TypeCapacity) -> Ask:
    """Take accelerators out of a promise on a type that has none: no number of machines can keep it."""
    row, resources = ask.row, capacity.resources
    if resources is None or resources.accelerators or not (row.accelerators or row.accelerator_partition):
        return ask
    because = f"{row.instance_type} has no accelerators"
    kept = scaled(row, 0, 1) if row.accelerator_partition else row.model_copy(update={"accelerators": 0})
    tell = partial(_without, ask, kept, because)
    return replace(ask, row=kept, words=f"{ask.words}, {because}", tell=tell)


def _without(ask: Ask, row: ComputeQuotaResource, because: str) -> Trail:
    return ask.tell().to(row, Cause.CEILING, because)
