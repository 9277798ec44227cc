"""What is every quota to become? Promises settled, then what limits and refused writes leave of them.

The planner asks, makes writes of the answer, and tells the rest. Everything here is a pure function of the snapshot.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from taskgov.allocation.allocate import TypeAllocation, allocate
from taskgov.allocation.budgets import out_of_budget
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.desired import Desired, Wishes
from taskgov.allocation.goals import deletion_goals, wanted_goals
from taskgov.allocation.leases import Given
from taskgov.allocation.partial import hold_back
from taskgov.allocation.plan import Change
from taskgov.allocation.refused import beside_refusals
from taskgov.allocation.sources import Cause
from taskgov.allocation.standing import Kept, Standings, sort_out
from taskgov.allocation.wanted import Wanted
from taskgov.allocation.waves import Writes
from taskgov.allocation.writes import writes
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.policy.document import OnLimit, PolicyDocument
from taskgov.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class Decided:
    """What quotas are to become, before it is known in which writes."""

    standings: Standings
    allocations: tuple[TypeAllocation, ...]
    wishes: Wishes
    given: tuple[Given, ...]
    wanted: Wanted


def decide(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity]) -> Decided:
    """Return what every quota is to become by the document, the limits and the writes that were refused."""
    standings, policy = sort_out(snapshot, capacities), snapshot.policy
    allocations = [] if policy is None else allocate(snapshot, policy, standings, capacities)
    wishes = _wishes(snapshot, allocations, capacities)
    promises = (*standings.promises, *([standings.pool] if standings.pool else []))
    given = tuple(given for allocation in allocations for given in allocation.given)
    wanted = Wanted(tuple(wishes.of(promise) for promise in promises), standings.stuck)
    pool = standings.pool.team if standings.pool else None
    wanted = beside_refusals(snapshot, wanted, wishes, pool, capacities)
    if policy is not None and policy.guardrails.on_limit is OnLimit.PARTIAL:
        wanted = _held_back(snapshot, policy, wanted, wishes, given, capacities)
    return Decided(standings, tuple(allocations), wishes, given, wanted)


def to_write(snapshot: Snapshot, decided: Decided, capacities: Mapping[str, TypeCapacity]) -> Writes:
    """Return the writes that make the quotas so."""
    overcommit = snapshot.policy is not None and snapshot.policy.capacity.overcommit_percent > 0
    return writes(snapshot, decided.wanted.desired, capacities, decided.wanted.stuck, overcommit=overcommit)


def as_written(decided: Decided, left_out: Iterable[Change]) -> list[Desired]:
    """Return what quotas are to be; those that no wave can write, and those that were refused, are as they stand."""
    teams, because = {change.team for change in left_out}, "left as it is: no wave of the plan can write it"
    written = (
        decided.wishes.not_written(each, Cause.NOT_WRITTEN, because) if each.promise.team in teams else each
        for each in decided.wanted.desired
    )
    return [*written, *(each.stays for each in decided.wanted.refused if each.stays is not None)]


def _held_back(
    snapshot: Snapshot,
    policy: PolicyDocument,
    wanted: Wanted,
    wishes: Wishes,
    given: Iterable[Given],
    capacities: Mapping[str, TypeCapacity],
) -> Wanted:
    """Return what the limits allow of what is wanted now; all of it, to be blocked, where they allow no step."""
    goals = wanted_goals(snapshot, [(each.promise, each.config) for each in wanted.desired])
    created_again = {each.promise.failed.compute_quota_id for each in wanted.desired if each.promise.failed}
    seconds = [quota for quota in wanted.stuck if quota.compute_quota_id not in created_again]
    held = hold_back(snapshot, policy, (*goals, *deletion_goals(snapshot, seconds)), given, capacities)
    if not held.moves:
        return wanted
    desired, kept = [], []
    for quota, goal in zip(seconds, held.goals[len(goals) :], strict=True):
        if quota.status not in NEVER_IN_FORCE and not goal.is_deleted:
            kept.append(Kept(quota, held.notes[goal.key]))
    for each, goal in zip(wanted.desired, held.goals, strict=False):
        failed = each.promise.failed
        if failed is not None and each.promise.holds is not None and not goal.is_deleted:
            kept.append(Kept(failed, held.notes[goal.key]))
        elif goal.key in held.notes:
            desired.append(wishes.instead(each, goal.after, held.notes[goal.key], Cause.LIMIT, "onLimit: partial"))
        else:
            desired.append(each)
    spared = {each.quota.compute_quota_id for each in kept}
    stuck = tuple(quota for quota in wanted.stuck if quota.compute_quota_id not in spared)
    return replace(wanted, desired=tuple(desired), stuck=stuck, recheck_at=held.recheck_at, kept=tuple(kept))


def _wishes(
    snapshot: Snapshot, allocations: Iterable[TypeAllocation], capacities: Mapping[str, TypeCapacity]
) -> Wishes:
    if snapshot.policy is None:
        return Wishes(allocations, capacities, (), snapshot.taken_at)
    stopped = out_of_budget(snapshot.policy.budgets, snapshot.budget_use)
    return Wishes(allocations, capacities, snapshot.policy.leases, snapshot.taken_at, no_borrowing=stopped)
