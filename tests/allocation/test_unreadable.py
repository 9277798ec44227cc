"""Objects that are not as Kueue writes them: the plan is made anyway, and says what it does not know."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.governed import select_governed
from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import KueueObjects, Snapshot
from taskgov.snapshot.unreadable import UnreadableObject
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import document, fixed, nodes, quota, row, snapshot


def busy(*extra: Mapping[str, Any], **guardrails: Any) -> Snapshot:
    """One job runs, and ant is to have a node less."""
    quotas = [quota("ant", row(Count=4)), quota("bee", row(Count=2))]
    policy = document(fixed("ant", row(Count=3)), fixed("bee", row(Count=2)), pool=False, guardrails=guardrails)
    work = queues(quotas, job("ant", "ant-runs", 2))
    kueue = replace(work, workloads=(*work.workloads, *extra))
    return snapshot(policy, nodes(6), quotas, kueue=kueue, scheduler_config=SCHEDULER)


def odd(**fields: Any) -> dict[str, Any]:
    return {**job("bee", "odd", 1, minute=5), **fields}


POD_SET = odd()["spec"]["podSets"][0]
QUEUE = "hyperpod-ns-bee-localqueue"
WORKLOADS: Mapping[str, dict[str, Any]] = {
    "a count that is none": odd(spec={"queueName": QUEUE, "podSets": [{**POD_SET, "count": None}]}),
    "pod sets that are a number": odd(spec={"queueName": QUEUE, "podSets": 7}),
    "a spec that is text": odd(spec="none"),
    "a condition without a type": odd(status={"conditions": [{"status": "True"}]}),
    "a status that is a list": odd(status=[1]),
    "an admission without a queue": odd(status={"admission": {"podSetAssignments": []}}),
}


@pytest.mark.parametrize("case", WORKLOADS)
def test_a_workload_that_cannot_be_read_is_named_in_the_prediction(case: str) -> None:
    plan = plan_quotas(busy(WORKLOADS[case]), mode="apply")
    assert plan.outcome is Outcome.APPLY
    assert plan.prediction.not_predicted == ("workloads that cannot be read were left out: odd",)
    assert plan_quotas(busy(WORKLOADS[case], maxPreemptedGpus=0), mode="apply").outcome is Outcome.BLOCKED


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_workload_that_was_left_out_leaves_a_gap_unless_it_is_finished(is_finished: bool) -> None:
    item = {**WORKLOADS["a spec that is text"], "status": {"conditions": [7, {"type": "Finished", "status": "True"}]}}
    found = UnreadableObject.of("Workload", item if is_finished else {**item, "status": {}}, "spec: it is text")
    plan = plan_quotas(replace(busy(), unreadable_objects=(found,)), mode="apply")
    gaps = () if is_finished else (f"workloads that cannot be read were left out: {found.shown}",)
    assert plan.prediction.not_predicted == gaps


@pytest.mark.parametrize(
    "status",
    [None, [], {"conditions": 7}, {"conditions": [7, {"type": "Finished"}]}, {"conditions": {"type": "Finished"}}],
)
def test_a_workload_without_the_condition_is_not_taken_for_finished(status: object) -> None:
    assert not UnreadableObject.of("Workload", odd(status=status), "odd").is_finished


def test_the_rest_is_predicted_beside_it() -> None:
    waits = {**job("ant", "ant-waits", 2, minute=6), "status": {}}
    world = busy(waits, WORKLOADS["a spec that is text"])
    assert world.policy is not None
    more = document(fixed("ant", row(Count=4)), fixed("bee", row(Count=1)), pool=False)
    plan = plan_quotas(replace(world, policy=more), mode="apply")
    assert [change.team for change in plan.changes] == ["bee"]
    assert not plan.prediction.is_complete


def test_many_are_counted() -> None:
    odds = [odd(spec="none", metadata={"name": f"odd-{number}", "namespace": "n"}) for number in range(5)]
    plan = plan_quotas(busy(*odds), mode="apply")
    assert plan.prediction.not_predicted == (
        "workloads that cannot be read were left out: odd-0, odd-1, odd-2 and 2 more",
    )


QUEUES: Mapping[str, dict[str, Any]] = {
    "groups that are a number": {"resourceGroups": 7},
    "a quota that is a list": {
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": []}]}],
            }
        ]
    },
    "a weight that is no number": {"fairSharing": {"weight": "much"}},
    "preemption that is text": {"preemption": "always"},
}


@pytest.mark.parametrize("case", QUEUES)
def test_a_queue_that_cannot_be_read_leaves_the_plan_without_a_prediction(case: str) -> None:
    def written(world: Snapshot) -> Snapshot:
        first, *others = world.kueue.cluster_queues
        broken = {**first, "spec": {**first["spec"], **QUEUES[case]}}
        return replace(world, kueue=replace(world.kueue, cluster_queues=(broken, *others)))

    plan = plan_quotas(written(busy()), mode="apply")
    assert plan.outcome is Outcome.APPLY
    assert not plan.prediction.simulated
    assert "cannot be read" in plan.prediction.not_modelled[0]
    assert plan_quotas(written(busy(maxPreemptedGpus=0)), mode="apply").outcome is Outcome.BLOCKED


@pytest.mark.parametrize(
    ("odd", "read", "stand"),
    [
        pytest.param("hyperpod-ns-alpha-clusterqueue", ["beta"], {"alpha"}, id="named"),
        pytest.param("hyperpod-ns-alpha-clusterqueue", ["alpha", "beta"], {"alpha"}, id="named, and there twice"),
        pytest.param("", ["beta"], {"alpha"}, id="without a name: whose queue is missing"),
        pytest.param("", ["alpha", "beta"], set(), id="without a name, and no queue is missing"),
    ],
)
def test_the_quota_of_a_queue_that_cannot_be_read_stands(odd: str, read: list[str], stand: set[str]) -> None:
    policy = document(fixed("alpha", row(Count=3)), fixed("beta", row(Count=4)), pool=False)
    queues = tuple({"metadata": {"name": f"hyperpod-ns-{team}-clusterqueue"}} for team in read)
    world = snapshot(
        policy,
        nodes(7),
        [quota("alpha", row(Count=4)), quota("beta", row(Count=3))],
        kueue=KueueObjects(cluster_queues=queues),
        unreadable_objects=(UnreadableObject("ClusterQueue", odd, "no spec"),),
    )
    kept = {left.team for left in select_governed(world, {}).left_alone}
    assert kept == stand
