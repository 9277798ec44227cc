"""Queues that are not as their quotas say: whom a write of the quota preempts is the plan's doing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.drift import beside
from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import KueueObjects, Snapshot
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import document, fixed, nodes, quota, row, snapshot

SHARING: Mapping[str, Any] = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 500}}
NOBODY: Mapping[str, Any] = {"maxPreemptedGpus": 0}


def lending(team: str, count: int, **fields: Any) -> ComputeQuota:
    return quota(team, row(Count=count), settings=SHARING, **fields)


def waiting(*jobs: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Jobs that nobody has looked at yet."""
    return tuple({**each, "status": {}} for each in jobs)


def edited(kueue: KueueObjects, team: str, **fields: Any) -> KueueObjects:
    """The queues after somebody wrote these fields of a team's ClusterQueue by hand."""

    def written(queue: Mapping[str, Any]) -> Mapping[str, Any]:
        own = queue["metadata"]["name"] == f"hyperpod-ns-{team}-clusterqueue"
        return {**queue, "spec": {**queue["spec"], **fields}} if own else queue

    return replace(kueue, cluster_queues=tuple(map(written, kueue.cluster_queues)))


def planned(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def preempted(plan: Plan) -> list[str]:
    return [each.name for each in plan.prediction.effects if each.effect == "preempted"]


def with_old_queues(now: list[ComputeQuota], *, weight: int | None = None) -> Snapshot:
    """Ant's queue still has 4 of 6 nodes and runs on them, bee waits; the quotas say 2 and 4."""
    work = queues([lending("ant", 4), lending("bee", 2)], job("ant", "ant-runs", 4))
    kueue = replace(work, workloads=(*work.workloads, *waiting(job("bee", "bee-waits", 4, minute=5))))
    promises = {team: fixed(team, row(Count=count), **SHARING) for team, count in (("ant", 2), ("bee", 4))}
    for told in promises.values() if weight is not None else ():
        told["fairShareWeight"] = weight
    policy = document(*promises.values(), pool=False, guardrails=NOBODY)
    return snapshot(policy, nodes(6), now, kueue=kueue, scheduler_config=SCHEDULER)


def test_updates_that_failed_are_tried_again_from_the_numbers_that_the_queues_have() -> None:
    failed = [lending("ant", 2, status="UpdateFailed"), lending("bee", 4, status="UpdateFailed")]
    plan = planned(with_old_queues(failed))
    assert preempted(plan) == ["ant-runs"]
    assert plan.outcome is Outcome.BLOCKED


def test_a_write_of_a_weight_brings_a_queue_that_drifted_to_its_numbers() -> None:
    plan = planned(with_old_queues([lending("ant", 2), lending("bee", 4)], weight=30))
    assert preempted(plan) == ["ant-runs"]
    assert plan.outcome is Outcome.BLOCKED


def test_what_a_queue_that_drifted_preempts_by_itself_is_not_the_plans_doing() -> None:
    """The queues have the new numbers already, and the quotas the old ones."""
    work = queues([lending("ant", 4), lending("bee", 2)], job("ant", "ant-runs", 4))
    drifted = queues([lending("ant", 2), lending("bee", 4)])
    kueue = replace(drifted, workloads=(*work.workloads, *waiting(job("bee", "bee-waits", 4, minute=5))))
    policy = document(
        *(fixed(team, row(Count=count), **SHARING) for team, count in (("ant", 2), ("bee", 4))),
        pool=False,
        guardrails=NOBODY,
    )
    world = snapshot(policy, nodes(6), [lending("ant", 4), lending("bee", 2)], kueue=kueue, scheduler_config=SCHEDULER)
    plan = planned(world)
    assert preempted(plan) == []
    assert plan.outcome is Outcome.APPLY


def on_hold(**promises: int) -> Snapshot:
    """Bee borrows 2 of ant's 4 nodes; ant's queue is on hold by hand, and a job of ant waits in it."""
    quotas = [lending("ant", 4), lending("bee", 2)]
    work = edited(queues(quotas, job("bee", "bee-runs", 4)), "ant", stopPolicy="Hold")
    kueue = replace(work, workloads=(*work.workloads, *waiting(job("ant", "ant-waits", 4, minute=5))))
    policy = document(
        *(fixed(team, row(Count=count), **SHARING) for team, count in promises.items()), pool=False, guardrails=NOBODY
    )
    return snapshot(policy, nodes(8), quotas, kueue=kueue, scheduler_config=SCHEDULER)


def test_a_write_may_take_a_queue_off_hold_and_what_starts_then_preempts() -> None:
    plan = planned(on_hold(ant=5, bee=2))
    assert preempted(plan) == ["bee-runs"]
    assert plan.outcome is Outcome.BLOCKED


def test_a_queue_on_hold_that_is_not_written_stays_on_hold() -> None:
    plan = planned(on_hold(ant=4, bee=3))
    assert preempted(plan) == []
    assert plan.outcome is Outcome.APPLY


@pytest.mark.parametrize("field", ["flavorFungibility", "queueingStrategy"])
def test_settings_that_no_quota_has_may_stay_or_be_put_back(field: str) -> None:
    """Either way nobody is preempted here, and the plan goes on."""
    odd = {"flavorFungibility": {"whenCanPreempt": "Preempt"}, "queueingStrategy": "StrictFIFO"}
    world = on_hold(ant=4, bee=3)
    plan = planned(replace(world, kueue=edited(world.kueue, "bee", **{field: odd[field]})))
    assert plan.prediction.is_complete
    assert plan.outcome is Outcome.APPLY


def test_a_queue_that_nobody_writes_holds_nothing_up() -> None:
    """Somebody raised the queue of yak by hand; its quota is not governed."""
    quotas = [lending("ant", 2), lending("bee", 2), lending("yak", 2)]
    kueue = queues([lending("ant", 2), lending("bee", 2), lending("yak", 6)])
    policy = document(
        *(fixed(team, row(Count=count), **SHARING) for team, count in (("ant", 1), ("bee", 3))), pool=False
    )
    plan = planned(snapshot(policy, nodes(6), quotas, kueue=kueue, scheduler_config=SCHEDULER))
    assert [(change.team, change.wave) for change in plan.changes] == [("ant", 1), ("bee", 2)]


def test_an_update_that_failed_is_tried_again_where_quotas_promise_more_than_there_is() -> None:
    quotas = [lending("ant", 4), lending("bee", 4, status="UpdateFailed")]
    kueue = queues([lending("ant", 4), lending("bee", 2)])
    policy = document(*(fixed(team, row(Count=4), **SHARING) for team in ("ant", "bee")), pool=False)
    capacity = {"overcommitPercent": 50}
    world = snapshot(policy, nodes(6), quotas, kueue=kueue, scheduler_config=SCHEDULER)
    over = document(*(fixed(team, row(Count=4), **SHARING) for team in ("ant", "bee")), pool=False, capacity=capacity)
    plan = planned(replace(world, policy=over))
    assert [change.team for change in plan.changes] == ["bee"]


def test_beside_the_sums_of_quotas_stand_those_of_their_queues() -> None:
    """One accelerator is seven sevenths; where the queues hold nothing, there is no sum."""
    sums = {("p5", "cpu"): 3, ("p5", "memory"): 8, ("g5", "cpu"): 2}
    drift = {("p5", "cpu"): 1, ("p5", "memory"): -8, ("p5", "nvidia.com/gpu"): 2}
    queues = {("p5", "cpu in queues"): 4, ("p5", "accelerator in queues"): 14}
    assert beside(sums, drift, ["p5"]) == {**sums, **queues}
    back = {("p5", "cpu in queues"): 2, ("p5", "memory in queues"): 16, ("p5", "accelerator in queues"): -14}
    assert beside(sums, drift, ["p5"], sign=-1) == {**sums, **back}
