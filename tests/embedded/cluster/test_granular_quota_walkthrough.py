"""Granular quotas: parts of instances, quotas beyond capacity, jobs without a class.

The examples of the announcement of fine-grained allocation.
"""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.hyperpod.names import PRIORITY_CLASS_LABEL, QUEUE_NAME_LABEL
from tests.embedded.cluster.support import Lab, policy, quota

G6 = "ml.g6.12xlarge"


def govern(lab: Lab, *resources: dict[str, Any], limit: int = 50, weight: int = 10) -> Lab:
    lab.cluster.govern([quota("onlygputeam", *resources, limit=limit, weight=weight)], policy({"high": 90, "low": 10}))
    return lab


def test_the_queue_is_as_printed() -> None:
    lab = govern(Lab(), {"InstanceType": G6, "Accelerators": 2, "VCpu": 48})
    queue = lab.cluster.store.get("clusterqueues", "hyperpod-ns-onlygputeam-clusterqueue")
    assert queue["metadata"]["labels"] == {
        "sagemaker.amazonaws.com/quota-allocation-id": "onlygputeam",
        "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
    }
    assert queue["spec"]["cohortName"] == "shared-pool"
    assert queue["spec"]["fairSharing"] == {"weight": "10"}
    assert queue["spec"]["resourceGroups"][0]["coveredResources"] == list(lab.quotas_of("onlygputeam"))
    assert lab.quotas_of("onlygputeam") == {
        "nvidia.com/gpu": {"nominalQuota": "2", "borrowingLimit": "1"},
        "aws.amazon.com/neurondevice": {"nominalQuota": "0", "borrowingLimit": "0"},
        "cpu": {"nominalQuota": "48", "borrowingLimit": "24"},
        "memory": {"nominalQuota": "192Gi", "borrowingLimit": "96Gi"},
        "vpc.amazonaws.com/efa": {"nominalQuota": "1", "borrowingLimit": "0"},
    }
    local = lab.cluster.store.get("localqueues", "hyperpod-ns-onlygputeam-localqueue", "hyperpod-ns-onlygputeam")
    assert local["spec"] == {"clusterQueue": "hyperpod-ns-onlygputeam-clusterqueue", "stopPolicy": "None"}
    assert local["status"]["admittedWorkloads"] == 0


def test_ten_percent_of_two_gpus_is_nothing_to_borrow() -> None:
    lab = govern(Lab(), {"InstanceType": G6, "Accelerators": 2}, limit=10)
    assert lab.quotas_of("onlygputeam")["nvidia.com/gpu"] == {"nominalQuota": "2", "borrowingLimit": "0"}


def test_a_mixed_quota_has_a_flavor_for_each_type() -> None:
    lab = govern(
        Lab(),
        {"InstanceType": G6, "Accelerators": 2},
        {"InstanceType": "ml.p5.48xlarge", "Count": 3},
        {"InstanceType": "ml.c5.2xlarge", "VCpu": 2},
        limit=10,
    )
    store = lab.cluster.store
    flavors = store.get("clusterqueues", "hyperpod-ns-onlygputeam-clusterqueue")["spec"]["resourceGroups"][0]["flavors"]
    names = [flavor["name"] for flavor in flavors]
    assert sorted(names) == ["ml.c5.2xlarge", G6, "ml.p5.48xlarge"]
    p5, c5 = names.index("ml.p5.48xlarge"), names.index("ml.c5.2xlarge")
    assert lab.quotas_of("onlygputeam", p5)["nvidia.com/gpu"]["nominalQuota"] == "24"
    assert lab.quotas_of("onlygputeam", c5)["cpu"]["nominalQuota"] == "2"
    assert [flavor["metadata"]["name"] for flavor in store.list("resourceflavors")] == sorted(names)


@pytest.mark.parametrize(
    ("resource", "cpu", "memory"),
    [
        ({"InstanceType": "ml.p5.48xlarge", "Accelerators": 2}, "48", "512Gi"),
        ({"InstanceType": "ml.g5.2xlarge", "Accelerators": 2}, "16", "64Gi"),
        ({"InstanceType": "ml.g5.2xlarge", "Accelerators": 2, "VCpu": 10, "MemoryInGiB": 20}, "10", "20Gi"),
    ],
    ids=["a quarter of a p5", "two whole g5", "given values win"],
)
def test_what_is_not_given_is_in_proportion(resource: dict[str, Any], cpu: str, memory: str) -> None:
    quotas = govern(Lab(), resource).quotas_of("onlygputeam")
    assert quotas["nvidia.com/gpu"]["nominalQuota"] == "2"
    assert (quotas["cpu"]["nominalQuota"], quotas["memory"]["nominalQuota"]) == (cpu, memory)


def test_a_job_within_a_quota_beyond_capacity_waits_for_nodes_until_they_come() -> None:
    lab = govern(Lab().nodes(G6, 1), {"InstanceType": G6, "Count": 3})
    lab.submit("onlygputeam", "wide", pods=2, gpu=4)
    assert lab.states() == {"wide": "Admitted, waiting for nodes"}
    assert sorted(lab.pods("onlygputeam").values()) == ["Pending", "Running"]
    lab.nodes(G6, 2)
    assert lab.states() == {"wide": "Running"}


def test_a_job_without_a_class_is_below_every_class() -> None:
    lab = govern(Lab().nodes(G6, 1), {"InstanceType": G6, "Count": 1})
    lab.submit("onlygputeam", "running", pods=1, gpu=4, priority="high")
    lab.submit("onlygputeam", "plain", gpu=4)
    lab.submit("onlygputeam", "ranked", gpu=4, priority="low")
    assert lab.workload("onlygputeam", "plain")["spec"]["priority"] == 0
    assert lab.workload("onlygputeam", "ranked")["spec"]["priority"] == 10
    assert "priorityClassRef" not in lab.workload("onlygputeam", "plain")["spec"]
    lab.delete("onlygputeam", "running")
    assert lab.states() == {"plain": "Suspended", "ranked": "Running"}


def printed_job(**metadata: Any) -> dict[str, Any]:
    """The Job as the post prints it: its labels are on the pod template."""
    queue = {QUEUE_NAME_LABEL: "hyperpod-ns-onlygputeam-localqueue", PRIORITY_CLASS_LABEL: "high-priority"}
    requests = {"nvidia.com/gpu": 1, "cpu": "4", "memory": "1Gi"}
    container = {"name": "training-container", "resources": {"requests": requests, "limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "gpu-training-job", "namespace": "hyperpod-ns-onlygputeam", **metadata},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "suspend": True,
            "template": {
                "metadata": {"labels": queue},
                "spec": {"containers": [container], "restartPolicy": "Never"},
            },
        },
    }


def test_the_printed_job_is_governed_because_the_api_server_copies_its_labels() -> None:
    lab = govern(Lab().nodes(G6, 1), {"InstanceType": G6, "Count": 1})
    lab.cluster.submit(printed_job())
    assert lab.not_governed() == []
    assert lab.states() == {"gpu-training-job": "Running"}


def test_with_a_label_of_its_own_the_same_job_is_not_governed_and_that_is_reported() -> None:
    lab = govern(Lab().nodes(G6, 1), {"InstanceType": G6, "Count": 1})
    lab.cluster.submit(printed_job(labels={"app": "training"}))
    assert lab.not_governed() == ["hyperpod-ns-onlygputeam/gpu-training-job"]
    assert lab.cluster.store.list("workloads") == []
    assert lab.states() == {"gpu-training-job": "Suspended"}


def test_the_same_labels_on_the_job_govern_it() -> None:
    lab = govern(Lab().nodes(G6, 1), {"InstanceType": G6, "Count": 1})
    job = printed_job()
    lab.cluster.submit(printed_job(labels=job["spec"]["template"]["metadata"]["labels"]))
    assert lab.not_governed() == []
    assert lab.states() == {"gpu-training-job": "Running"}
    assert lab.workload("onlygputeam", "gpu-training-job")["spec"]["priority"] == 90
    assert lab.used("onlygputeam") == ("1", "0")
