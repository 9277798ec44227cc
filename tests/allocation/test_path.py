"""The path of a plan: it reaches its goal in one run, and preempts nobody on the way without need."""

from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation import path
from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import ChangeKind, Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import C5, G6, NOW, P5, applied, document, fixed, nodes, quota, row, snapshot

G5_SHARING = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100}}


def plan_of(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def rows(change: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = change.after.to_api()["ComputeQuotaResources"]
    return found


def reaches_its_goal(world: Snapshot) -> Plan:
    """Plan, write, and plan again: nothing is left to do. No write equals what stands."""
    plan = plan_of(world)
    assert plan.outcome is Outcome.APPLY
    for change in plan.changes:
        assert change.before != change.after or change.target_before != change.target_after
    assert plan_of(applied(world, plan)).changes == ()
    return plan


# Promises that raise one resource and lower another, on a type that is full


def full(before: dict[str, Any], pool: dict[str, Any], promise: dict[str, Any], **sections: Any) -> Snapshot:
    policy = document(fixed("a", promise), **sections)
    lends = {"ResourceSharingConfig": {"Strategy": "Lend"}}
    return snapshot(policy, nodes(1, P5), [quota("a", before), quota("shared-pool", pool, settings=lends)])


def test_a_promise_that_gains_gpus_and_loses_vcpus_is_reached_in_one_run() -> None:
    world = full(
        row(P5, Accelerators=2, VCpu=96),
        row(P5, Accelerators=6, VCpu=96, MemoryInGiB=1024),
        row(P5, Accelerators=4, VCpu=48),
    )
    plan = reaches_its_goal(world)
    assert [(change.team, change.wave, change.is_low) for change in plan.changes] == [
        ("a", 1, True),
        ("shared-pool", 1, True),
        ("a", 2, False),
        ("shared-pool", 2, False),
    ]
    low_a, low_pool, a, pool = plan.changes
    assert rows(low_a) == [row(P5, Accelerators=2, VCpu=48.0, MemoryInGiB=1024.0)]
    assert rows(low_pool) == [row(P5, Accelerators=4, VCpu=96.0, MemoryInGiB=1024.0)]
    assert rows(a) == [row(P5, Accelerators=4, VCpu=48.0)]
    assert rows(pool) == [row(P5, Accelerators=4, VCpu=144.0, MemoryInGiB=1024.0)]
    assert (low_a.target_version, a.target_version) == (1, None)
    assert "first of two writes" in low_a.because
    assert "second of two writes" in a.because


def test_two_teams_without_a_pool_trade_a_gpu_for_vcpus() -> None:
    promises = row(P5, Accelerators=4, VCpu=48, MemoryInGiB=1024), row(P5, Accelerators=4, VCpu=144, MemoryInGiB=1024)
    today = row(P5, Accelerators=2, VCpu=96, MemoryInGiB=1024), row(P5, Accelerators=6, VCpu=96, MemoryInGiB=1024)
    policy = document(*map(fixed, "ab", promises), pool=False)
    reaches_its_goal(snapshot(policy, nodes(1, P5), list(map(quota, "ab", today))))


def test_a_type_without_accelerators_trades_vcpus_for_memory() -> None:
    promises = row(C5, VCpu=5, MemoryInGiB=6), row(C5, VCpu=3, MemoryInGiB=10)
    today = row(C5, VCpu=4, MemoryInGiB=8), row(C5, VCpu=4, MemoryInGiB=8)
    policy = document(*map(fixed, "ab", promises), pool=False)
    plan = reaches_its_goal(snapshot(policy, nodes(1, C5), list(map(quota, "ab", today))))
    assert [change.wave for change in plan.changes] == [1, 1, 2, 2]


def test_promises_by_what_nodes_offer_are_reached_too() -> None:
    offer = {"nvidia.com/gpu": 8, "cpu": 190_000, "memory": 2000 * 2**30}
    policy = document(fixed("a", row(P5, Accelerators=4, VCpu=48)), capacity={"basis": "allocatable"})
    quotas = [
        quota("a", row(P5, Accelerators=2, VCpu=95)),
        quota(
            "shared-pool",
            row(P5, Accelerators=6, VCpu=95, MemoryInGiB=986),
            settings={"ResourceSharingConfig": {"Strategy": "Lend"}},
        ),
    ]
    reaches_its_goal(snapshot(policy, nodes(1, P5, allocatable=offer), quotas))


def test_partitions_that_become_larger_ones_are_written_twice_where_vcpus_go_the_other_way() -> None:
    def parts(profile: str, count: int, **amounts: Any) -> dict[str, Any]:
        return row(P5, AcceleratorPartition={"Type": profile, "Count": count}, **amounts)

    policy = document(fixed("a", parts("mig-7g.80gb", 1, VCpu=24, MemoryInGiB=256)), pool=False)
    today = quota("a", parts("mig-1g.10gb", 7, VCpu=24, MemoryInGiB=256))
    plan = reaches_its_goal(snapshot(policy, nodes(1, P5), [today]))
    assert [change.is_low for change in plan.changes] == [False]  # there is room: seven sevenths are one GPU


# The order of writes


def returned(*jobs: dict[str, Any], **guardrails: Any) -> Snapshot:
    """Three nodes of six failed and are back; bee runs more than its quota, and ant waits."""
    before = [quota("ant", row(Count=2), settings=G5_SHARING), quota("bee", row(Count=4), settings=G5_SHARING)]
    now = [quota("ant", row(Count=1), settings=G5_SHARING), quota("bee", row(Count=2), settings=G5_SHARING)]
    work = queues(before, *jobs)
    specs = {each["metadata"]["name"]: each["spec"] for each in queues(now).cluster_queues}
    lowered = tuple({**each, "spec": specs[each["metadata"]["name"]]} for each in work.cluster_queues)
    policy = document(
        fixed("ant", row(Count=2), **G5_SHARING),
        fixed("bee", row(Count=4), **G5_SHARING),
        pool=False,
        guardrails=guardrails,
    )
    waiting = {**job("ant", "ant-waits", 2, minute=5), "status": {}}
    kueue = replace(work, cluster_queues=lowered, workloads=(*work.workloads, waiting))
    return snapshot(policy, nodes(6), now, kueue=kueue, scheduler_config=SCHEDULER)


def test_who_borrows_with_running_work_is_raised_before_who_waits() -> None:
    limits = {"maxPreemptedGpus": 0, "approveAbove": {"preemptedGpus": 0}}
    plan = plan_of(returned(job("bee", "bee-runs", 4, minute=1), **limits))
    assert plan.outcome is Outcome.APPLY
    assert [(change.team, change.wave) for change in plan.changes] == [("bee", 1), ("ant", 2)]
    assert [(each.effect, each.name) for each in plan.prediction.effects] == [("starts", "ant-waits")]


def test_raises_whose_order_makes_no_difference_share_a_wave() -> None:
    plan = plan_of(returned(job("bee", "bee-runs", 2, minute=1)))
    assert [change.wave for change in plan.changes] == [1, 1]


def test_a_job_that_has_been_evicted_has_left_before_the_first_wave() -> None:
    world = returned(job("bee", "bee-runs", 4, minute=1), maxPreemptedGpus=0)
    evicted = {
        "type": "Evicted",
        "status": "True",
        "reason": "Preempted",
        "message": "",
        "lastTransitionTime": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
    }

    def told(item: dict[str, Any]) -> dict[str, Any]:
        status = item.get("status") or {}
        if item["metadata"]["name"] != "bee-runs":
            return item
        return {**item, "status": {**status, "conditions": [*status["conditions"], evicted]}}

    workloads = tuple(told(dict(item)) for item in world.kueue.workloads)
    plan = plan_of(replace(world, kueue=replace(world.kueue, workloads=workloads)))
    assert plan.outcome is Outcome.APPLY
    assert not [each for each in plan.prediction.effects if each.effect == "preempted"]


def swapping(*pairs: tuple[str, str], waits: str) -> Snapshot:
    """Each first team gives two nodes to the second; who borrows runs on what is lent, and one team waits."""
    lends = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 500}}
    givers, takers = [giver for giver, _ in pairs], [taker for _, taker in pairs]
    size = {**dict.fromkeys(givers, (2, 0)), **dict.fromkeys(takers, (0, 2)), waits: (4, 4), "borrower": (0, 0)}
    before = [quota(team, row(Count=had), settings=lends) for team, (had, _) in sorted(size.items())]
    policy = document(
        *(fixed(team, row(Count=becomes), **lends) for team, (_, becomes) in sorted(size.items())),
        pool=False,
        guardrails={"maxPreemptedGpus": 0},
    )
    total = sum(had for had, _ in size.values())
    jobs = [job(giver, f"{giver}-runs", 1, minute=1) for giver in givers]
    jobs += [job(waits, "first", 3, minute=2)]
    return snapshot(policy, nodes(total), before, kueue=queues(before, *jobs), scheduler_config=SCHEDULER)


def test_a_path_is_never_longer_than_its_bound() -> None:
    plan = plan_of(swapping(("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), waits="w"))
    assert 0 < max(change.wave for change in plan.changes) <= path.MOST_WAVES


# No progress


def recorded(world: Snapshot, plan: Plan) -> Snapshot:
    """The world after a plan, with the record of its writes."""
    written = applied(world, plan)
    last = {change.name: change for change in plan.changes}
    records = tuple(_record(each, last[each.name].after, plan) for each in written.quotas if each.name in last)
    return replace(written, applied=records)


def _record(standing: ComputeQuota, config: Any, plan: Plan) -> AppliedQuota:
    return AppliedQuota(
        compute_quota_id=standing.compute_quota_id,
        version=standing.compute_quota_version,
        config=config,
        target=standing.compute_quota_target,
        plan_id=plan.plan_id,
        at=NOW,
    )


def stubborn() -> Snapshot:
    """A service that took a write of 3 nodes, settled it, and keeps 2."""
    world = snapshot(
        document(fixed("a", row(Count=3)), pool=False, handEdits="putRight"), nodes(3), [quota("a", row(Count=2))]
    )
    after = recorded(world, plan_of(world))
    (standing,) = after.quotas
    kept = standing.model_copy(update={"compute_quota_config": world.quotas[0].compute_quota_config})
    return replace(after, quotas=(kept,))


def test_a_plan_that_was_written_settled_and_had_no_effect_is_not_written_again() -> None:
    plan = plan_of(stubborn())
    assert plan.outcome is Outcome.NO_PROGRESS
    assert [(finding.code, finding.severity.value, finding.subject) for finding in plan.findings] == [
        ("no-progress", "error", "a-quota")
    ]


@pytest.mark.parametrize("field", [{"status": "UpdateFailed"}, {"compute_quota_version": 3}])
def test_what_failed_or_was_changed_since_is_written(field: dict[str, Any]) -> None:
    world = stubborn()
    other = replace(world, quotas=(world.quotas[0].model_copy(update=field),))
    assert plan_of(other).outcome is Outcome.APPLY


def test_a_plan_with_one_change_that_gets_somewhere_is_written() -> None:
    world = stubborn()
    policy = document(fixed("a", row(Count=3)), fixed("b", row(Count=1)), pool=False)
    more = replace(world, policy=policy, nodes=nodes(4))
    assert plan_of(more).outcome is Outcome.APPLY


def test_the_cluster_policy_that_a_service_does_not_take_over_is_no_progress_either() -> None:
    wanted = {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": 70}]}
    world = snapshot(document(schedulerConfig=wanted, pool=False), scheduler_config=SCHEDULER)
    first = plan_of(world)
    (change,) = first.changes
    assert (first.outcome, change.kind) == (Outcome.APPLY, ChangeKind.UPDATE_SCHEDULER_CONFIG)
    assert isinstance(change.after, SchedulerConfig)
    kept = SCHEDULER.model_copy(update={"cluster_scheduler_config_version": 2, "status": "Updated"})
    record = AppliedPolicy(SCHEDULER.cluster_scheduler_config_id, 2, change.after, first.plan_id, NOW)
    after = replace(world, scheduler_config=kept, applied_policy=record)
    assert plan_of(after).outcome is Outcome.NO_PROGRESS
    assert plan_of(replace(after, applied_policy=replace(record, version=1))).outcome is Outcome.APPLY


# A change that is no change


def test_a_write_of_what_stands_cannot_be_built() -> None:
    (change,) = plan_of(
        snapshot(document(fixed("a", row(Count=1)), pool=False), nodes(1), [quota("a", row(Count=2))])
    ).changes
    assert change.before is not None
    with pytest.raises(ValueError, match="stands as it would be written"):
        replace(change, after=change.before)


def test_a_world_at_rest_with_mixed_parts_reaches_every_promise() -> None:
    policy = document(fixed("a", row(G6, Accelerators=1, VCpu=20)), fixed("b", row(G6, Accelerators=6, VCpu=40)))
    lends = {"ResourceSharingConfig": {"Strategy": "Lend"}}
    quotas = [
        quota("a", row(G6, Accelerators=3, VCpu=10)),
        quota("b", row(G6, Accelerators=2, VCpu=90)),
        quota("shared-pool", row(G6, Accelerators=7, VCpu=44, MemoryInGiB=72), settings=lends),
    ]
    reaches_its_goal(snapshot(policy, nodes(3, G6), quotas))


# What a person approves, and what is left in between


def test_the_digest_of_the_changes_does_not_depend_on_the_jobs_that_run() -> None:
    busy = plan_of(returned(job("bee", "bee-runs", 4, minute=1)))
    calm = plan_of(returned(job("bee", "bee-runs", 2, minute=1)))
    assert [change.wave for change in busy.changes] != [change.wave for change in calm.changes]
    assert changes_sha256(busy) == changes_sha256(calm)


def test_the_digest_of_the_changes_is_another_for_another_goal() -> None:
    plans = [
        plan_of(snapshot(document(fixed("a", row(Count=count)), pool=False), nodes(4), [quota("a", row(Count=1))]))
        for count in (2, 3)
    ]
    assert changes_sha256(plans[0]) != changes_sha256(plans[1])


def test_a_quota_between_its_two_writes_is_reported_and_judged_from_what_stood_before() -> None:
    policy = document(fixed("a", row(Count=5)), pool=False, guardrails={"maxIncreasePercent": 30})
    low = quota("a", row(Count=1), version=2)
    written = AppliedQuota(
        compute_quota_id=low.compute_quota_id,
        version=2,
        config=low.compute_quota_config,
        target=low.compute_quota_target,
        plan_id="plan-1",
        at=NOW,
        began_from=quota("a", row(Count=4)).compute_quota_config,
    )
    plan = plan_of(snapshot(policy, nodes(5), [low], applied=(written,)))
    assert plan.outcome is Outcome.APPLY
    assert [finding.code for finding in plan.findings] == ["between-writes"]
    assert plan.changes[0].began_from == written.began_from
