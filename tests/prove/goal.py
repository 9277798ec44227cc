"""Whether one run reaches the goal: the plan after it, on a snapshot of the same moment, has nothing left to do.

`onLimit: partial` is the exception: there each plan goes a part of the way, and the plans after it go on.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

from taskgov.allocation.plan import Outcome, Plan
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.policy.document import Guardrails
from taskgov.snapshot.model import KueueObjects, Snapshot
from tests.prove.amounts import Vector, resources_of
from tests.prove.facts import Facts, facts_of
from tests.prove.path import waves_of
from tests.prove.sameness import config_key
from tests.prove.writing import Written, team_and_name, write_path

Planner = Callable[[Snapshot], Plan]
MOST_STEPS = 80
IN_FLIGHT = frozenset({"Creating", "Updating", "Pending"})
WAIT = timedelta(hours=12)
"""How far time goes on while a quota of the snapshot never settles: the plan then looks again every few minutes."""
UNLIMITED = {
    "max_decrease_percent": None,
    "max_decrease_per_period": None,
    "max_increase_percent": None,
    "max_increase_per_period": None,
    "on_limit": "block",
}


def is_partial(snapshot: Snapshot) -> bool:
    """Say whether the document lets a plan go a part of the way."""
    rules = Guardrails() if snapshot.policy is None else snapshot.policy.guardrails
    return getattr(rules, "on_limit", "block") == "partial"


def snapshot_after(snapshot: Snapshot, written: Written, kueue: KueueObjects | None) -> Snapshot:
    """Return the snapshot of the same moment after the path was written."""
    after = written.account.snapshot(snapshot)
    return after if kueue is None else replace(after, kueue=kueue)


def queues_follow(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot in which the queues of written quotas hold what these say.

    They are left out, because nobody may know the numbers of their types.
    """
    written = {f"hyperpod-ns-{change.team}-clusterqueue" for change in plan.changes if change.team}
    queues = tuple(each for each in snapshot.kueue.cluster_queues if each["metadata"]["name"] not in written)
    return replace(snapshot, kueue=replace(snapshot.kueue, cluster_queues=queues))


def goal_failures(facts: Facts, written: Written, kueue: KueueObjects | None, planner: Planner) -> Iterator[str]:
    """Yield that the goal is not reached."""
    after = snapshot_after(facts.snapshot, written, kueue)
    if is_partial(facts.snapshot):
        yield from _partial(facts, after if kueue else queues_follow(after, facts.plan), planner)
        return
    again = planner(after)
    if again.changes:
        names = ", ".join(f"{change.kind.value} {change.name}" for change in again.changes)
        yield f"the plan after the run is not empty: {names}"


def _partial(facts: Facts, after: Snapshot, planner: Planner) -> Iterator[str]:
    """Follow the plans until the goal is reached; time goes on to `recheckAt` where a plan waits for it."""
    snapshot, plan = after, facts.plan
    for _ in range(MOST_STEPS):
        goal = _goal(snapshot, planner)
        left = _differences(snapshot, goal)
        plan_now = planner(snapshot)
        if not left:
            if plan_now.changes:
                yield "the goal is reached, and the plan goes on"
            return
        if plan.recheck_at is None:
            yield f"{', '.join(sorted(left))} has not reached the goal, and no plan is due"
            return
        plan = plan_now
        if plan.outcome is Outcome.BLOCKED:
            return  # the limits let nothing move: said, and somebody's matter
        if not plan.changes:
            if plan.recheck_at is None:
                yield f"{', '.join(sorted(left))} has not reached the goal, and no plan is due"
                return
            unsettled = any(quota.status in IN_FLIGHT for quota in snapshot.quotas)
            least = snapshot.taken_at + (WAIT if unsettled else timedelta(minutes=1))
            snapshot = replace(snapshot, taken_at=max(plan.recheck_at, least))
            continue
        step = facts_of(snapshot, plan)
        yield from _overshoots(step, goal)
        snapshot = queues_follow(snapshot_after(snapshot, write_path(step, waves_of(plan)), None), plan)
    yield f"the goal is not reached in {MOST_STEPS} steps"


def _goal(snapshot: Snapshot, planner: Planner) -> dict[str, ComputeQuotaConfig]:
    """Return what quotas are to be by the same document without limits on decreases and increases."""
    policy = snapshot.policy
    if policy is None:
        return {}
    known = {name: value for name, value in UNLIMITED.items() if name in Guardrails.model_fields}
    free = policy.model_copy(update={"guardrails": policy.guardrails.model_copy(update=known)})
    free_snapshot = replace(snapshot, policy=free)
    plan = planner(free_snapshot)
    written = write_path(facts_of(free_snapshot, plan), waves_of(plan))
    return {team_and_name(quota): quota.compute_quota_config for quota in written.account.quotas.values()}


def _differences(snapshot: Snapshot, goal: dict[str, ComputeQuotaConfig]) -> set[str]:
    held = {team_and_name(quota): quota.compute_quota_config for quota in snapshot.quotas}
    names = {*held, *goal}
    return {name for name in names if config_key(held.get(name)) != config_key(goal.get(name))}


def _overshoots(facts: Facts, goal: dict[str, ComputeQuotaConfig]) -> Iterator[str]:
    """Yield the quotas of one step that go beyond the goal, or away from it."""
    for change in facts.plan.changes:
        if change.is_low or not isinstance(change.after, ComputeQuotaConfig):
            continue
        key = f"{change.team} {change.name}"
        standing = next((quota for quota in facts.snapshot.quotas if team_and_name(quota) == key), None)
        before = resources_of(standing.compute_quota_config if standing else None, facts.book)
        end, wanted = resources_of(change.after, facts.book), resources_of(goal.get(key), facts.book)
        if not _between(before, end, wanted):
            yield f"{change.name} goes beyond its goal, or away from it"


def _between(before: Vector, after: Vector, goal: Vector) -> bool:
    keys = {*before, *after, *goal}
    return all(
        min(before.get(key, 0), goal.get(key, 0)) <= after.get(key, 0) <= max(before.get(key, 0), goal.get(key, 0))
        for key in keys
    )
