"""Kubernetes objects in."""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.scheduling import instant, reading, status_reading
from taskgov.scheduling.demand import pod_requests
from taskgov.scheduling.instants import NEVER_AGAIN
from taskgov.scheduling.objects import BorrowWithinCohort, Fungibility, Preemption, Quota, Requirement, Selector
from tests.scheduling.builders import a_condition, a_job

GIB = 2**30


def _container(**resources: dict[str, str]) -> dict[str, Any]:
    return {"resources": resources}


@pytest.mark.parametrize(
    ("pod", "requests"),
    [
        ({"containers": [_container(requests={"cpu": "1"}), _container(requests={"cpu": "500m"})]}, {"cpu": 1500}),
        ({"containers": [_container(limits={"nvidia.com/gpu": "8"})]}, {"nvidia.com/gpu": 8}),
        ({"containers": [_container(limits={"cpu": "4"}, requests={"cpu": "2"})]}, {"cpu": 2000}),
        (
            {
                "initContainers": [_container(requests={"cpu": "3"})],
                "containers": [_container(requests={"cpu": "1", "memory": "1Gi"})],
            },
            {"cpu": 3000, "memory": GIB},
        ),
        (
            {
                "initContainers": [
                    _container(requests={"cpu": "1"}) | {"restartPolicy": "Always"},
                    _container(requests={"cpu": "2"}),
                ],
                "containers": [_container(requests={"cpu": "1"})],
            },
            {"cpu": 3000},
        ),
        (
            {"containers": [_container(requests={"cpu": "1"})], "overhead": {"cpu": "250m"}},
            {"cpu": 1250},
        ),
        (
            {"resources": {"requests": {"cpu": "5"}}, "containers": [_container(requests={"cpu": "1"})]},
            {"cpu": 5000},
        ),
        (
            {"resources": {"requests": {"cpu": "5", "nvidia.com/gpu": "1"}}, "containers": [_container()]},
            {"cpu": 5000},
        ),
    ],
    ids=[
        "containers add up",
        "limits stand in for requests",
        "requests win over limits",
        "the largest init container counts",
        "sidecars run beside everything after them",
        "overhead comes on top",
        "requests at pod level win",
        "a pod asks for no devices by itself",
    ],
)
def test_a_pod_asks_for_what_the_kubernetes_scheduler_counts(pod: dict[str, Any], requests: dict[str, int]) -> None:
    assert pod_requests(pod) == requests


@pytest.mark.parametrize("cohort", ["cohort", "cohortName"], ids=["v1beta1", "v1beta2"])
def test_a_cluster_queue_is_read_in_both_versions(cohort: str) -> None:
    queue = reading.read_cluster_queue(
        {
            "kind": "ClusterQueue",
            "metadata": {"name": "team-a"},
            "spec": {
                cohort: "shared-pool",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}},
                "fairSharing": {"weight": "2500m"},
                "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
                "preemption": {
                    "withinClusterQueue": "LowerPriority",
                    "reclaimWithinCohort": "Any",
                    "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
                },
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu", "memory"],
                        "flavors": [
                            {
                                "name": "ml.g5.8xlarge",
                                "resources": [
                                    {"name": "cpu", "nominalQuota": 48, "borrowingLimit": "24"},
                                    {"name": "memory", "nominalQuota": "192Gi", "lendingLimit": "0"},
                                ],
                            },
                        ],
                    },
                ],
            },
        },
    )
    assert queue.cohort == "shared-pool"
    assert queue.weight == 2.5
    assert queue.namespace_selector == Selector((Requirement("kubernetes.io/metadata.name", "In", ("a",)),))
    assert queue.fungibility == Fungibility("MayStopSearch", "MayStopSearch")
    assert queue.preemption == Preemption("LowerPriority", "Any", BorrowWithinCohort("LowerPriority", 100))
    assert queue.quotas == {
        "ml.g5.8xlarge/cpu": Quota(48_000, 24_000, None),
        "ml.g5.8xlarge/memory": Quota(192 * GIB, None, 0),
    }


def test_what_a_cluster_queue_does_not_say_is_the_default_of_the_crd() -> None:
    queue = reading.read_cluster_queue({"metadata": {"name": "q"}})
    assert queue.strategy == "BestEffortFIFO"
    assert queue.preemption == Preemption("Never", "Never", None)
    assert queue.fungibility == Fungibility("MayStopSearch", "TryNextFlavor", "BorrowingOverPreemption")
    assert (queue.weight, queue.stop_policy, queue.namespace_selector) == (1.0, "None", None)


def test_queues_with_equal_quotas_share_what_was_read() -> None:
    gpus = {"name": "nvidia.com/gpu", "nominalQuota": "8", "borrowingLimit": "4"}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "f", "resources": [gpus]}]}
    first, second = (
        reading.read_cluster_queue({"metadata": {"name": name}, "spec": {"resourceGroups": [group]}}) for name in "ab"
    )
    assert first.quotas == {"f/nvidia.com/gpu": Quota(8, 4)}
    assert first.quotas["f/nvidia.com/gpu"] is second.quotas["f/nvidia.com/gpu"]


@pytest.mark.parametrize("parent", ["parent", "parentName"], ids=["v1beta1", "v1beta2"])
def test_a_cohort_is_read_in_both_versions(parent: str) -> None:
    assert reading.read_cohort({"metadata": {"name": "c"}, "spec": {parent: "root"}}).parent == "root"


@pytest.mark.parametrize(
    "spec",
    [
        {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}},
        {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"},
    ],
    ids=["v1beta2", "v1beta1"],
)
def test_the_workload_priority_class_gives_the_priority(spec: dict[str, Any]) -> None:
    job = a_job("j", "q", priority=3)
    job["spec"] |= spec
    assert reading.read_workload(job, {"high": 90}).priority == 90
    assert reading.read_workload(job, {}).priority == 3


def test_node_affinity_is_read_only_where_it_is_required() -> None:
    job = a_job("j", "q")
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    job["spec"]["podSets"][0]["template"]["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}],
        },
    }
    (pod_set,) = reading.read_workload(job, {}).pod_sets
    assert pod_set.affinity == ((Requirement("zone", "In", ("a",)),),)


def test_a_requeue_moment_keeps_a_workload_out_only_while_it_is_not_requeued() -> None:
    out = a_condition("Requeued", status="False")
    state = {"count": 2, "requeueAt": "2026-11-20T10:00:00Z"}
    assert status_reading.read_requeue_state({"requeueState": state, "conditions": [out]}) == (
        2,
        instant("2026-11-20T10:00:00Z"),
    )
    assert status_reading.read_requeue_state({"requeueState": state, "conditions": [a_condition("Requeued")]}) == (
        2,
        None,
    )
    assert status_reading.read_requeue_state({"conditions": [out]}) == (0, NEVER_AGAIN)
    assert status_reading.read_requeue_state({}) == (0, None)


def test_an_object_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ClusterQueue without metadata\.name"):
        reading.name_of({"kind": "ClusterQueue", "metadata": {}})
