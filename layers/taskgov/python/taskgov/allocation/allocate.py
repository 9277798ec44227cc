"""Compute the allocation of the whole cluster from promises, leases and the shared pool, type by type.

The planner calls it once, with governed quotas and counted capacity. On each instance type, quotas that are left alone
are subtracted first. Then claims are granted, leases move granted amounts, and the shared pool gets the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.demand import Lent, never_moves, observed, trimmed
from taskgov.allocation.governed import GovernedQuotas
from taskgov.allocation.grants import Grants, grant
from taskgov.allocation.leases import Given, Lenders, Lending, active_leases
from taskgov.allocation.lending import floor_vector, lend_all, with_leases
from taskgov.allocation.parts import ACCELERATOR, RowKey, Vector, add, is_in_parts, need, row_key, subtract
from taskgov.allocation.plan import Reason
from taskgov.allocation.pool import UNKNOWN_PARTS, has_unknown, pool_claim
from taskgov.allocation.portions import portions
from taskgov.allocation.promises import Promise, today_rows
from taskgov.allocation.set_aside import SettingAside
from taskgov.allocation.sources import Cause, Trail
from taskgov.allocation.units import in_instances
from taskgov.allocation.wording import said
from taskgov.findings import Finding
from taskgov.findings.of_plan import (
    CAPACITY_SHORTAGE,
    FLOORS_EXCEED_CAPACITY,
    QUOTA_WITHOUT_NODES,
    SHARE_ROUNDS_TO_NOTHING,
)
from taskgov.hyperpod.equality import is_same_config
from taskgov.hyperpod.instance_types import unknown_type_finding
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.model import ObservedUse, Snapshot

if TYPE_CHECKING:
    from taskgov.policy.measured import Lease, Share


@dataclass(frozen=True, slots=True)
class TypeClaims:
    """The allocation of one instance type to all governed teams, and the findings of its computation."""

    instance_type: str
    claims: tuple[Claim, ...]
    """The claims as granted, and after leases; including the shared pool's."""
    given: tuple[Given, ...] = ()
    """The active leases, and how much of each the donor gives."""
    demand: Mapping[str, int] = field(default_factory=dict)
    """Team -> whole instances that demand leaves of its promise."""
    findings: tuple[Finding, ...] = ()


def allocate(
    snapshot: Snapshot, policy: PolicyDocument, governed: GovernedQuotas, capacities: Mapping[str, TypeCapacity]
) -> list[TypeClaims]:
    """Return the allocation by instance type. `capacities` covers every type that is named."""
    context = _Context(snapshot, policy, governed, capacities)
    return [_allocate_type(context, capacity) for capacity in capacities.values()]


class _Context:
    """The inputs common to all types: rows and shares by type, floors, observations, leases."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: PolicyDocument,
        governed: GovernedQuotas,
        capacities: Mapping[str, TypeCapacity],
    ) -> None:
        self.policy = policy
        self.now = snapshot.taken_at
        self.pool = governed.pool
        self.capacities = capacities
        aside = SettingAside(policy.leases, (), capacities)
        self.today = {promise.team: _today(promise, aside) for promise in governed.promises}
        self.governed = frozenset(promise.team for promise in governed.promises)
        self.left_alone = {left.team: left.because for left in governed.left_alone if left.team not in self.governed}
        self.floors = {promise.team: _floor_part(policy, promise, capacities) for promise in governed.promises}
        self.uses: Mapping[tuple[str, str], ObservedUse] = observed(snapshot.observed_use)
        self.kept: dict[str, list[ComputeQuotaResource]] = {}
        self.fixed: dict[str, list[tuple[Promise, ComputeQuotaResource]]] = {}
        self.shares: dict[str, list[tuple[Promise, Share]]] = {}
        self.leases: dict[str, list[Lease]] = {}
        for left_alone in governed.left_alone:
            for row in left_alone.quota.compute_quota_config.compute_quota_resources:
                self.kept.setdefault(row.instance_type, []).append(row)
        for promise in governed.promises:
            for row in promise.rows:
                self.fixed.setdefault(row.instance_type, []).append((promise, row))
            for share in promise.shares:
                self.shares.setdefault(share.instance_type, []).append((promise, share))
        self.demand: dict[str, dict[str, int]] = {}
        self.nothing: dict[str, list[Claim]] = {}
        self.unmoved: dict[str, list[Finding]] = {}
        for lease in active_leases(policy.leases, self.now):
            self.leases.setdefault(lease.instance_type, []).append(lease)


def _today(promise: Promise, aside: SettingAside) -> Mapping[RowKey, ComputeQuotaResource]:
    """Return the team's present quota, without the amounts that leases had moved when it was written."""
    quota, applied = promise.holds, promise.applied
    rows = today_rows(quota)
    if (
        quota is None
        or applied is None
        or not applied.leased
        or not is_same_config(applied.config, quota.compute_quota_config)
    ):
        return rows
    config = aside.without(quota.compute_quota_config, applied.leased)
    return {row_key(row): row for row in config.compute_quota_resources}


def _floor_part(policy: PolicyDocument, promise: Promise, capacities: Mapping[str, TypeCapacity]) -> Fraction:
    """Return the part (0 to 1) of a team's fixed promises that `guardrails.minimumQuota` keeps as their floor.

    The minimum is in accelerators over all types; it is spread over the types as the promise is.
    """
    minimum = policy.guardrails.minimum_quota.get(promise.team, 0)
    if not minimum:
        return Fraction(0)
    needs = (need(row, capacities[row.instance_type].resources) or {} for row in promise.rows)
    promised = Fraction(add(needs).get(ACCELERATOR, 0), 7)
    return min(Fraction(minimum) / promised, Fraction(1)) if promised else Fraction(0)


def _allocate_type(context: _Context, capacity: TypeCapacity) -> TypeClaims:
    instance_type = capacity.line.instance_type
    taken = add(need(row, capacity.resources) or {} for row in context.kept.get(instance_type, ()))
    claims = _claims(context, capacity, taken)
    rules = context.policy.capacity
    granted = grant(capacity, claims, taken, rules.basis, overcommit=rules.overcommit_percent > 0)
    rows = {claim.key: claim.row for claim in granted.claims}
    before = Lending(rows, _left(capacity, taken, rows.values()))
    pool = None if context.pool is None else context.pool.team
    compared = not has_unknown((*context.kept.get(instance_type, ()), *rows.values()), capacity)
    lenders = Lenders(
        capacity=capacity,
        basis=rules.basis,
        teams=context.governed,
        pool=pool if compared else None,
        floors={claim.key: floor_vector(claim, capacity) for claim in claims if claim.floor},
        left_alone=context.left_alone if compared or pool is None else {**context.left_alone, pool: UNKNOWN_PARTS},
    )
    lending, told = lend_all(context.leases.get(instance_type, ()), before, lenders)
    allocated = [with_leases(claim, claim.key, lending, capacity) for claim in granted.claims]
    for key in sorted(lending.rows.keys() - rows.keys()):
        row = ComputeQuotaResource(instance_type=instance_type)
        nothing = Claim(key.split(" ")[0], row, Reason.LEASE_STARTED, "nothing is guaranteed")
        allocated.append(with_leases(nothing, key, lending, capacity))
    if context.pool is not None and capacity.has_nodes:
        others = (*context.kept.get(instance_type, ()), *lending.rows.values())
        allocated.append(pool_claim(context.pool, capacity, before.pool_left, lending, others, rules.basis))
    findings = (
        *_findings(capacity, granted, claims),
        *_of_nothing(capacity, context.nothing.get(instance_type, ())),
        *told,
        *context.unmoved.get(instance_type, ()),
    )
    demand = context.demand.get(instance_type, {})
    return TypeClaims(instance_type, tuple(allocated), lending.given, demand, findings)


def _claims(context: _Context, capacity: TypeCapacity, taken: Vector) -> list[Claim]:
    """Return each team's claim on the type: its fixed row, its share, or both."""
    instance_type = capacity.line.instance_type
    fixed = context.fixed.get(instance_type, ())
    claims = [_fixed(context, capacity, promise, row) for promise, row in fixed]
    promised = add((taken, *(need(row, capacity.resources) or {} for _, row in fixed)))
    shares = {promise.team: (promise, share) for promise, share in context.shares.get(instance_type, ())}
    basis = context.policy.capacity.basis
    found = portions({team: share for team, (_, share) in shares.items()}, capacity, promised, basis)
    for team, claim in found.items():
        if claim.nothing:
            context.nothing.setdefault(instance_type, []).append(claim)
        promise = shares[team][0]
        today = context.today[team].get(row_key(claim.row))
        because = ", ".join(filter(None, (claim.because, promise.of_families.get(instance_type))))
        claims.append(replace(claim, because=because, tier=promise.tier, today=today))
    return sorted(claims, key=lambda claim: claim.key)


def _fixed(context: _Context, capacity: TypeCapacity, promise: Promise, row: ComputeQuotaResource) -> Claim:
    floor = context.floors[promise.team] * in_instances(row, capacity)
    use = context.uses.get((promise.team, row.instance_type))
    lent = Lent(promise.team, capacity, context.policy.leases)
    left = trimmed(row, use, context.policy.demand, promise.applied, context.now, floor, lent)
    if left.never_moves:
        context.unmoved.setdefault(row.instance_type, []).append(never_moves(promise.team, row, context.policy.demand))
    if left.level is not None:
        context.demand.setdefault(row.instance_type, {})[promise.team] = left.level
    adopted = promise.adopted is not None
    of_family = promise.of_families.get(row.instance_type)
    words = ", ".join(filter(None, (f"guaranteed {said(row)}", of_family, left.words)))
    reason = Reason.DEMAND if left.words else Reason.PROMISE
    today = context.today[promise.team].get(row_key(row))

    def tell() -> Trail:
        cause, because = (
            (Cause.EDIT_ADOPTED, "the edit by hand that was taken as the guarantee")
            if adopted
            else (Cause.PROMISE, f"guaranteed by the document{f', {of_family}' if of_family else ''}")
        )
        return Trail().to(row, cause, because).to(left.row, Cause.DEMAND, left.words)

    return Claim(promise.team, left.row, reason, words, tell, promise.tier, floor, today)


def _left(capacity: TypeCapacity, taken: Vector, rows: Iterable[ComputeQuotaResource]) -> Vector:
    """Return the rest of the usable capacity. Over-commitment is for promises only, never for the pool."""
    granted = (need(row, capacity.resources) or {} for row in rows)
    left = subtract(capacity.usable, add((taken, *granted)))
    return {resource: max(amount, 0) for resource, amount in left.items()}


def _findings(capacity: TypeCapacity, granted: Grants, claims: Sequence[Claim]) -> Iterable[Finding]:
    line = capacity.line
    evidence: dict[str, str | int] = {"instanceType": line.instance_type, "usable": line.usable, "nodes": line.nodes}
    if granted.incident:
        yield FLOORS_EXCEED_CAPACITY.about(line.instance_type, evidence, short=granted.short)
    elif granted.short:
        yield CAPACITY_SHORTAGE.about(line.instance_type, evidence, short=granted.short)
    if not capacity.has_nodes and claims:
        teams = ", ".join(claim.team for claim in claims)
        yield QUOTA_WITHOUT_NODES.about(line.instance_type, evidence, teams=teams, instance_type=line.instance_type)
    if capacity.resources is None and any(is_in_parts(claim.row) for claim in claims):
        yield unknown_type_finding(line.instance_type)


def _of_nothing(capacity: TypeCapacity, claims: Iterable[Claim]) -> Iterable[Finding]:
    """Report shares that round to nothing, with a remedy."""
    line = capacity.line
    for claim in claims:
        evidence: dict[str, str | int] = {"instanceType": line.instance_type, "usable": line.usable}
        yield SHARE_ROUNDS_TO_NOTHING.about(
            claim.team, evidence, team=claim.team, instance_type=line.instance_type, words=claim.nothing
        )
