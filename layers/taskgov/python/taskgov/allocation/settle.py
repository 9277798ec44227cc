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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

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
from taskgov.allocation.shares import Party, divide
from taskgov.allocation.shortage import Claim, Cut, fit
from taskgov.allocation.wording import capacity_words, given_amounts
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis, Share
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


@dataclass(frozen=True, slots=True)
class Settlement:
    """All grants on one instance type. `short` says in words what did not fit, `incident` that not even floors did."""

    grants: tuple[Grant, ...]
    short: str = ""
    incident: bool = False


def resolve_shares(shares: Mapping[str, Share], usable: int) -> dict[str, int]:
    """Return the whole instances that each team's share comes to, of `usable` instances.

    Shares divide their common part of the capacity by largest remainder, within floors and ceilings; the part grows
    where floors demand more than the percentages give. Percentages are read as decimals, and a hundredth of an
    instance is forgiven, so that three shares of 33.33 divide everything.
    """
    parties = [_party(team, share) for team, share in shares.items()]
    percent = sum((_percent(share) for share in shares.values()), Fraction(0))
    common = min(usable * percent / 100, Fraction(usable))
    bounded = sum((_bounded(share, usable) for share in shares.values()), Fraction(0))
    total = max(int(max(common, bounded) + Fraction(1, 100)), sum(party.floor for party in parties))
    return divide(total, parties)


def settle(
    capacity: TypeCapacity, asks: Sequence[Ask], taken: Vector, basis: CapacityBasis, *, overcommit: bool
) -> Settlement:
    """Return what every asking team gets, when `taken` of the type is gone already.

    On a type that has no nodes at all, nothing is granted beyond what stands today, unless over-commitment is
    declared: a quota on machines to come is a plan for them, not a promise to run.
    """
    if not capacity.has_nodes or not capacity.per_instance:
        # Nodes that offer nothing (yet) are no ground to promise anything on, at basis `allocatable`.
        grants = tuple(_planned_for(ask, overcommit=overcommit and not capacity.has_nodes) for ask in asks)
        return Settlement(grants)
    asks = [_at_basis(ask, capacity, basis) for ask in asks]
    needs = [need(ask.row, capacity.resources) for ask in asks]
    known = [vector for vector in needs if vector is not None]
    left = subtract(capacity.total, taken)
    if fits(add(known), left):
        grants = tuple(
            _unbound(ask) if vector is None else _kept(ask, capacity) for ask, vector in zip(asks, needs, strict=True)
        )
        return Settlement(grants)
    return _short(capacity, asks, left)


def _short(capacity: TypeCapacity, asks: Sequence[Ask], left: Vector) -> Settlement:
    per_grain = _grains_per_instance(capacity, asks)
    claims = [_claim(ask, capacity, per_grain) for ask in asks]
    known = [claim for claim in claims if claim is not None]
    room = min((max(left[r], 0) * per_grain // n for r, n in capacity.per_instance.items() if n), default=0)
    cut = fit(known, room)
    gives_first = max(claim.tier for claim in known) if len({claim.tier for claim in known}) > 1 else None
    grants = tuple(
        _unbound(ask) if claim is None else _granted(ask, claim, cut, capacity, first=ask.tier == gives_first)
        for ask, claim in zip(asks, claims, strict=True)
    )
    promised, to_give = Fraction(sum(claim.amount for claim in known), per_grain), Fraction(room, per_grain)
    words = f"promises of {_number(promised)}, {_number(to_give)} to give, {capacity_words(capacity.line)}"
    return Settlement(grants, short=words, incident=cut.incident)


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
    return Grant(ask, ask.row, ask.reason, f"{ask.words}, {capacity_words(capacity.line)}" if missing else ask.words)


def _granted(ask: Ask, claim: Claim, cut: Cut, capacity: TypeCapacity, *, first: bool) -> Grant:
    """Grant what the cut left of a claim."""
    amount = cut.amounts[claim.key]
    if amount == claim.amount:
        return _kept(ask, capacity)
    row, words = scaled(ask.row, amount, claim.amount), capacity_words(capacity.line)
    if cut.incident:
        return Grant(ask, row, Reason.INCIDENT, f"{words}, floors do not fit and are scaled down, {ask.words}")
    gives = f"tier {ask.tier} gives first" if first else f"tier {ask.tier} gives"
    floor = f", floor {_number(ask.floor)} kept" if ask.floor else ""
    return Grant(ask, row, Reason.SHORTAGE, f"{words}, {gives}, {ask.words}{floor}")


def _unbound(ask: Ask) -> Grant:
    """Leave a promise alone whose resources cannot be compared."""
    row = ask.today or scaled(ask.row, 0, 1)
    return Grant(ask, row, Reason.UNCHANGED, "the resources of the type are not known; left as it is")


def _planned_for(ask: Ask, *, overcommit: bool) -> Grant:
    if overcommit:
        return Grant(ask, ask.row, ask.reason, f"{ask.words}, no nodes yet: declared over-commitment")
    return Grant(ask, _lesser(ask.row, ask.today), Reason.UNCHANGED, "the type has no nodes; nothing is added")


def _lesser(promised: ComputeQuotaResource, today: ComputeQuotaResource | None) -> ComputeQuotaResource:
    """Return what is promised, but no more of anything than stands today; today's row where units differ."""
    if today is None:
        return scaled(promised, 0, 1)
    wanted, actual = given_amounts(promised), {amount.unit: amount.value for amount in given_amounts(today)}
    if {amount.unit for amount in wanted} != actual.keys():
        return today
    return promised if all(amount.value <= actual[amount.unit] for amount in wanted) else today


def _at_basis(ask: Ask, capacity: TypeCapacity, basis: CapacityBasis) -> Ask:
    """Write whole instances as what they really offer, where the policy counts that."""
    if basis is CapacityBasis.INSTANCES or not ask.row.count or not capacity.per_instance:
        return ask
    real = {resource: amount * ask.row.count for resource, amount in capacity.per_instance.items()}
    return replace(ask, row=row_of_parts(ask.row.instance_type, real))


def _party(team: str, share: Share) -> Party:
    return Party(team, int(_percent(share) * 1_000_000), share.floor, share.ceiling)


def _percent(share: Share) -> Fraction:
    return Fraction(str(share.percent))


def _bounded(share: Share, usable: int) -> Fraction:
    part = max(usable * _percent(share) / 100, Fraction(share.floor))
    return part if share.ceiling is None else min(part, Fraction(share.ceiling))


def _number(value: Fraction) -> str:
    return f"{float(value):g}"
