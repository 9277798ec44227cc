"""Put the whole cluster's allocation together: promises, leases and the shared pool, instance type by instance type.

The planner calls it once, with the quotas sorted out and the capacity counted. On each type: what is left alone is
taken; promises are settled; leases move what was granted; the shared pool takes what remains.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.demand import observed, trimmed
from taskgov.allocation.leases import LeaseRefusedError, Lending, active_leases, lend, refused_as, until
from taskgov.allocation.parts import ACCELERATOR, Vector, add, is_in_parts, need, row_key, subtract
from taskgov.allocation.plan import Reason
from taskgov.allocation.pool import pool_row
from taskgov.allocation.settle import Ask, Settlement, resolve_shares, settle
from taskgov.allocation.standing import Standings, TeamPromise, today_rows
from taskgov.allocation.wording import said
from taskgov.findings import Finding, Severity
from taskgov.hyperpod.instance_types import unknown_type_finding
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import Lease, PolicyDocument, Share
from taskgov.snapshot.model import ObservedUse, Snapshot


@dataclass(frozen=True, slots=True)
class Holding:
    """What one team is to have in one row of its quota, and why."""

    team: str
    row: ComputeQuotaResource
    reason: Reason
    because: str


@dataclass(frozen=True, slots=True)
class TypeAllocation:
    """What every governed team is to have of one instance type; and what had to be said on the way."""

    instance_type: str
    holdings: tuple[Holding, ...]
    given_leases: tuple[Lease, ...] = ()
    demand: Mapping[str, int] = field(default_factory=dict)
    """Team -> whole instances that demand leaves of its promise."""
    findings: tuple[Finding, ...] = ()


def allocate(
    snapshot: Snapshot, policy: PolicyDocument, standings: Standings, capacities: Mapping[str, TypeCapacity]
) -> list[TypeAllocation]:
    """Return what every governed team is to have, by instance type. `capacities` covers every type that is named."""
    context = _Context(snapshot, policy, standings, capacities)
    return [_allocate_type(context, capacity) for capacity in capacities.values()]


class _Context:
    """What all types need, looked up once: rows and shares by type, floors, observations, leases."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: PolicyDocument,
        standings: Standings,
        capacities: Mapping[str, TypeCapacity],
    ) -> None:
        self.policy = policy
        self.now = snapshot.taken_at
        self.pool = standings.pool
        self.today = {promise.team: today_rows(promise.holds) for promise in standings.promises}
        self.floors = {promise.team: _floor_part(policy, promise, capacities) for promise in standings.promises}
        self.uses: Mapping[tuple[str, str], ObservedUse] = observed(snapshot.observed_use)
        self.kept: dict[str, list[ComputeQuotaResource]] = {}
        self.fixed: dict[str, list[tuple[TeamPromise, ComputeQuotaResource]]] = {}
        self.shares: dict[str, list[tuple[TeamPromise, Share]]] = {}
        self.leases: dict[str, list[Lease]] = {}
        for left_alone in standings.kept:
            for row in left_alone.quota.compute_quota_config.compute_quota_resources:
                self.kept.setdefault(row.instance_type, []).append(row)
        for promise in standings.promises:
            for row in promise.rows:
                self.fixed.setdefault(row.instance_type, []).append((promise, row))
            for share in promise.shares:
                self.shares.setdefault(share.instance_type, []).append((promise, share))
        self.demand: dict[str, dict[str, int]] = {}
        for lease in active_leases(policy.leases, self.now):
            self.leases.setdefault(lease.instance_type, []).append(lease)


def _floor_part(policy: PolicyDocument, promise: TeamPromise, capacities: Mapping[str, TypeCapacity]) -> Fraction:
    """Return the part (0 to 1) of a team's fixed promises that `guardrails.minimumQuota` keeps as their floor.

    The minimum is in accelerators over all types; it is spread over the types as the promise is.
    """
    minimum = policy.guardrails.minimum_quota.get(promise.team, 0)
    if not minimum:
        return Fraction(0)
    needs = (need(row, capacities[row.instance_type].resources) or {} for row in promise.rows)
    promised = Fraction(add(needs).get(ACCELERATOR, 0), 7)
    return min(Fraction(minimum) / promised, Fraction(1)) if promised else Fraction(0)


def _allocate_type(context: _Context, capacity: TypeCapacity) -> TypeAllocation:
    instance_type = capacity.line.instance_type
    taken = add(need(row, capacity.resources) or {} for row in context.kept.get(instance_type, ()))
    asks = _asks(context, capacity)
    rules = context.policy.capacity
    settled = settle(capacity, asks, taken, rules.basis, overcommit=rules.overcommit_percent > 0)
    rows = {grant.ask.key: grant.row for grant in settled.grants}
    left = _left(capacity, taken, rows.values())
    lending, given, refused = _lend_all(context, capacity, asks, Lending(rows, left))
    holdings = [
        Holding(
            team=grant.ask.team,
            row=lending.rows[grant.ask.key],
            reason=grant.reason,
            because=grant.because + _lease_words(grant.ask.key, given),
        )
        for grant in settled.grants
    ]
    if context.pool is not None and capacity.has_nodes:
        others = (*context.kept.get(instance_type, ()), *lending.rows.values())
        row, reason, because = pool_row(context.pool, capacity, lending.pool_left, others, rules.basis)
        words = because + _lease_words(context.pool.team, given)
        holdings.append(Holding(context.pool.team, row, reason, words))
    findings = (*_findings(capacity, settled, asks), *refused)
    demand = context.demand.get(instance_type, {})
    return TypeAllocation(instance_type, tuple(holdings), tuple(given), demand, findings)


def _asks(context: _Context, capacity: TypeCapacity) -> list[Ask]:
    """Return what every team asks of the type, by team: its fixed row and its share, whichever it has."""
    instance_type, usable = capacity.line.instance_type, capacity.line.usable
    shares = {promise.team: (promise, share) for promise, share in context.shares.get(instance_type, ())}
    counts = resolve_shares({team: share for team, (_, share) in shares.items()}, usable)
    asks = [_fixed(context, capacity, promise, row) for promise, row in context.fixed.get(instance_type, ())]
    for team, (promise, share) in shares.items():
        row = ComputeQuotaResource(instance_type=instance_type, count=counts[team])
        today = context.today[team].get(row_key(row))
        words = _share_words(share, usable, counts[team])
        asks.append(Ask(team, row, promise.tier, Fraction(share.floor), words, Reason.SHARE, today))
    return sorted(asks, key=lambda ask: ask.key)


def _fixed(context: _Context, capacity: TypeCapacity, promise: TeamPromise, row: ComputeQuotaResource) -> Ask:
    floor = context.floors[promise.team] * _in_instances(row, capacity)
    use = context.uses.get((promise.team, row.instance_type))
    left = trimmed(row, use, context.policy.demand, promise.applied, context.now, floor)
    if left.level is not None:
        context.demand.setdefault(row.instance_type, {})[promise.team] = left.level
    words = f"promised {said(row)}" + (f", {left.words}" if left.words else "")
    reason = Reason.DEMAND if left.words else Reason.PROMISE
    today = context.today[promise.team].get(row_key(row))
    return Ask(promise.team, left.row, promise.tier, floor, words, reason, today)


def _in_instances(row: ComputeQuotaResource, capacity: TypeCapacity) -> Fraction:
    per_instance = capacity.per_instance
    vector = need(row, capacity.resources) or {}
    return max((Fraction(n, per_instance[r]) for r, n in vector.items() if per_instance.get(r)), default=Fraction(0))


def _left(capacity: TypeCapacity, taken: Vector, rows: Iterable[ComputeQuotaResource]) -> Vector:
    """Return what is left of the usable capacity; over-commitment is for promises, never for the pool."""
    granted = (need(row, capacity.resources) or {} for row in rows)
    left = subtract(capacity.usable, add((taken, *granted)))
    return {resource: max(amount, 0) for resource, amount in left.items()}


def _lend_all(
    context: _Context, capacity: TypeCapacity, asks: Sequence[Ask], lending: Lending
) -> tuple[Lending, list[Lease], list[Finding]]:
    floors = {ask.key: ask.floor for ask in asks}
    pool_team = None if context.pool is None else context.pool.team
    given: list[Lease] = []
    refused: list[Finding] = []
    for lease in context.leases.get(capacity.line.instance_type, ()):
        floor = floors.get(lease.from_, Fraction(0))
        try:
            lending = lend(lease, lending, pool_team, capacity.per_instance, floor)
        except LeaseRefusedError as refusal:
            subject = f"{lease.from_} -> {lease.to}"
            because = f"The lease of {lease.count} {lease.instance_type} ({lease.reason}) is refused: {refusal}."
            remedy = "choose another donor or a smaller count, or end the lease"
            refused.append(Finding("lease-refused", Severity.WARNING, subject, because, remedy, refused_as(lease)))
        else:
            given.append(lease)
    return lending, given, refused


def _lease_words(team: str, given: Iterable[Lease]) -> str:
    words = []
    for lease in given:
        if lease.to == team:
            words.append(f", +{lease.count} leased from {lease.from_} {until(lease)}")
        elif lease.from_ == team:
            words.append(f", -{lease.count} leased to {lease.to} {until(lease)}")
    return "".join(words)


def _findings(capacity: TypeCapacity, settled: Settlement, asks: Sequence[Ask]) -> Iterable[Finding]:
    line = capacity.line
    evidence: dict[str, str | int] = {"instanceType": line.instance_type, "usable": line.usable, "nodes": line.nodes}
    if settled.incident:
        because = f"Not even the floors fit: {settled.short}. They are scaled down in proportion."
        remedy = "bring nodes back, or lower floors in the policy document"
        yield Finding("floors-exceed-capacity", Severity.INCIDENT, line.instance_type, because, remedy, evidence)
    elif settled.short:
        because = f"Promises exceed capacity: {settled.short}. Tiers give, the highest number first."
        remedy = "bring nodes back, lower promises, or declare capacity.overcommitPercent"
        yield Finding("capacity-shortage", Severity.WARNING, line.instance_type, because, remedy, evidence)
    if not capacity.has_nodes and asks:
        teams = ", ".join(ask.team for ask in asks)
        because = f"{teams} have promises on {line.instance_type}, of which the cluster has no nodes."
        remedy = "add nodes, remove the promise, or declare capacity.overcommitPercent to plan ahead"
        yield Finding("quota-without-nodes", Severity.WARNING, line.instance_type, because, remedy, evidence)
    if capacity.resources is None and any(is_in_parts(ask.row) for ask in asks):
        yield unknown_type_finding(line.instance_type)


def _share_words(share: Share, usable: int, count: int) -> str:
    """Say where a share comes from; a bound is worth saying when it made the number."""
    words = f"{share.percent:g} % of {usable} usable"
    part = usable * share.percent / 100
    if share.floor and count == share.floor and part < count:
        return f"{words}, floor {share.floor}"
    return f"{words}, ceiling {share.ceiling}" if count == share.ceiling and part > count else words
