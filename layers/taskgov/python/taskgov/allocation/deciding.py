"""Decide the new value of every quota: settle promises, then apply limits and refused writes.

The planner calls it, turns the result into writes, and reports the rest. All functions are pure functions of the
snapshot.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from taskgov.allocation.allocate import TypeClaims, allocate
from taskgov.allocation.allocations import Allocation
from taskgov.allocation.budgets import out_of_budget
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.desired_quotas import DesiredQuotas
from taskgov.allocation.goals import deletion_goals, wanted_goals
from taskgov.allocation.governed import GovernedQuotas, LeftAlone, select_governed
from taskgov.allocation.lease_ends import LeaseBeyond, leases_beyond, without_leases
from taskgov.allocation.leases import Given
from taskgov.allocation.partial import hold_back
from taskgov.allocation.plan import TeamAllocation
from taskgov.allocation.refused import beside_refusals
from taskgov.allocation.sources import Cause
from taskgov.allocation.wanted import Wanted
from taskgov.allocation.waves import Writes
from taskgov.allocation.writes import writes
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.policy.document import OnLimit, PolicyDocument
from taskgov.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class Decided:
    """The new values of quotas, before they are split into writes."""

    governed: GovernedQuotas
    claims_by_type: tuple[TypeClaims, ...]
    desired_quotas: DesiredQuotas
    given: tuple[Given, ...]
    wanted: Wanted
    writes: Writes
    """The allocation behind the quotas."""
    refused_leases: tuple[LeaseBeyond, ...] = ()
    """Leases that last beyond the end of their machines."""


def decide(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity]) -> Decided:
    """Return what every quota is to become by the document, the limits and the writes that were refused.

    Where limits leave nothing to write (`guardrails.onLimit: partial`), it is decided without them, so that the
    guardrails block the plan and name the limit.
    """
    refused_leases = leases_beyond(snapshot)
    snapshot = without_leases(snapshot, refused_leases)
    governed, policy = select_governed(snapshot, capacities), snapshot.policy
    claims_by_type = [] if policy is None else allocate(snapshot, policy, governed, capacities)
    desired_quotas = _desired_quotas(snapshot, claims_by_type, capacities)
    promises = (*governed.promises, *([governed.pool] if governed.pool else []))
    given = tuple(given for claims in claims_by_type for given in claims.given)
    wanted = Wanted(tuple(desired_quotas.of(promise) for promise in promises), governed.stuck)
    pool = governed.pool.team if governed.pool else None
    wanted = beside_refusals(snapshot, wanted, desired_quotas, pool, capacities)
    step = wanted
    if policy is not None and policy.guardrails.on_limit is OnLimit.PARTIAL:
        step = _held_back(snapshot, policy, wanted, desired_quotas, given, capacities)
    planned = _to_write(snapshot, step, capacities)
    if step is not wanted and not planned:
        in_full = _to_write(snapshot, wanted, capacities)
        step, planned = (wanted, in_full) if in_full else (step, planned)
    return Decided(governed, tuple(claims_by_type), desired_quotas, given, step, planned, refused_leases)


def _to_write(snapshot: Snapshot, wanted: Wanted, capacities: Mapping[str, TypeCapacity]) -> Writes:
    overcommit = snapshot.policy is not None and snapshot.policy.capacity.overcommit_percent > 0
    return writes(snapshot, wanted.allocations, capacities, wanted.stuck, overcommit=overcommit)


def as_written(decided: Decided) -> list[Allocation]:
    """Return the planned quotas; those that no wave can write, and those that were refused, are as they stand."""
    left_out = decided.writes.left_out
    teams, because = {change.team for change in left_out}, "left as it is: no wave of the plan can write it"
    written = (
        decided.desired_quotas.not_written(allocation, Cause.NOT_WRITTEN, because)
        if allocation.promise.team in teams
        else allocation
        for allocation in decided.wanted.allocations
    )
    return [*written, *(write.stays for write in decided.wanted.refused if write.stays is not None)]


def planned_lines(decided: Decided) -> tuple[TeamAllocation, ...]:
    """Return the amounts of each team before and after, by type, team and unit."""
    left_alone = (*decided.governed.left_alone, *decided.wanted.left_alone)
    lines = (
        *(line for allocation in as_written(decided) for line in allocation.lines),
        *(line for left in left_alone for line in decided.desired_quotas.lines_of_left_alone(left)),
    )
    return tuple(sorted(lines, key=attrgetter("instance_type", "team", "unit")))


def _held_back(
    snapshot: Snapshot,
    policy: PolicyDocument,
    wanted: Wanted,
    desired_quotas: DesiredQuotas,
    given: Iterable[Given],
    capacities: Mapping[str, TypeCapacity],
) -> Wanted:
    """Return what the limits allow of what is wanted now; `wanted` itself where that is all of it, or none."""
    goals = wanted_goals(snapshot, [(allocation.promise, allocation.config) for allocation in wanted.allocations])
    created_again = {
        promise.failed.compute_quota_id
        for promise in (allocation.promise for allocation in wanted.allocations)
        if promise.failed
    }
    seconds = [quota for quota in wanted.stuck if quota.compute_quota_id not in created_again]
    held = hold_back(snapshot, policy, (*goals, *deletion_goals(snapshot, seconds)), given, capacities)
    if not held.moves or not (held.notes or held.recheck_at):
        return wanted
    allocations, kept = [], []
    for quota, goal in zip(seconds, held.goals[len(goals) :], strict=True):
        if quota.status not in NEVER_IN_FORCE and not goal.is_deleted:
            kept.append(LeftAlone(quota, held.notes[goal.key]))
    for allocation, goal in zip(wanted.allocations, held.goals, strict=False):
        failed = allocation.promise.failed
        if failed is not None and allocation.promise.holds is not None and not goal.is_deleted:
            kept.append(LeftAlone(failed, held.notes[goal.key]))
        elif goal.key in held.notes:
            note = held.notes[goal.key]
            allocations.append(desired_quotas.instead(allocation, goal.after, note, Cause.LIMIT, "onLimit: partial"))
        else:
            allocations.append(allocation)
    spared = {left.quota.compute_quota_id for left in kept}
    stuck = tuple(quota for quota in wanted.stuck if quota.compute_quota_id not in spared)
    return replace(wanted, allocations=tuple(allocations), stuck=stuck, recheck_at=held.recheck_at, kept=tuple(kept))


def _desired_quotas(
    snapshot: Snapshot, claims_by_type: Iterable[TypeClaims], capacities: Mapping[str, TypeCapacity]
) -> DesiredQuotas:
    if snapshot.policy is None:
        return DesiredQuotas(claims_by_type, capacities, (), snapshot.taken_at)
    stopped = out_of_budget(snapshot.policy.budgets, snapshot.budget_use)
    return DesiredQuotas(claims_by_type, capacities, snapshot.policy.leases, snapshot.taken_at, no_borrowing=stopped)
