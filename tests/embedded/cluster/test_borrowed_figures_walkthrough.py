"""Borrowed figures: two ml.g5.12xlarge, one each, pods of 44 cpu, 164Gi and 4 GPUs.

The HyperPod CLI's end-to-end walkthrough, with the figures that it prints.
"""

from __future__ import annotations

import pytest

from tests.embedded.cluster.support import RANKS, Lab, policy, quota

ONE = {"InstanceType": "ml.g5.12xlarge", "Count": 1}
A_JOB, B_JOB, B_URGENT = "team-a-qwen3-training-prio", "team-b-qwen3-training-prio", "team-b-qwen3-experimentation-prio"


@pytest.fixture
def lab() -> Lab:
    lab = Lab().nodes("ml.g5.12xlarge", 2)
    lab.cluster.govern(
        [quota("team-a", ONE, limit=100, weight=100), quota("team-b", ONE, limit=100, weight=100)], policy(RANKS)
    )
    return lab


def run(lab: Lab, team: str, name: str, pods: int, priority: str = "training") -> None:
    lab.submit(team, name, kind="HyperPodPyTorchJob", pods=pods, priority=priority, cpu=44, memory="164Gi", gpu=4)


def borrow(lab: Lab) -> None:
    run(lab, "team-a", A_JOB, 2)


def reclaim(lab: Lab) -> None:
    run(lab, "team-b", B_JOB, 1)


def preempt(lab: Lab) -> None:
    run(lab, "team-b", B_URGENT, 2, "experimentation")


def test_the_usage_is_the_documents_resource_by_resource(lab: Lab) -> None:
    borrow(lab)
    assert lab.states() == {A_JOB: "Running"}
    queue = lab.cluster.store.get("clusterqueues", "hyperpod-ns-team-a-clusterqueue")
    assert queue["status"]["flavorsUsage"][0] == {
        "name": "ml.g5.12xlarge",
        "resources": [
            {"borrowed": "0", "name": "aws.amazon.com/neurondevice", "total": "0"},
            {"borrowed": "40", "name": "cpu", "total": "88"},
            {"borrowed": "136Gi", "name": "memory", "total": "328Gi"},
            {"borrowed": "4", "name": "nvidia.com/gpu", "total": "8"},
            {"borrowed": "0", "name": "vpc.amazonaws.com/efa", "total": "0"},
        ],
    }


def test_each_node_takes_one_of_the_pods(lab: Lab) -> None:
    borrow(lab)
    pods = lab.cluster.store.list("pods", "hyperpod-ns-team-a")
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    assert pods[0]["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"}


def test_the_lender_reclaims_its_node(lab: Lab) -> None:
    borrow(lab)
    reclaim(lab)
    assert lab.views.jobs("hyperpod-ns-team-a").splitlines()[1].split() == [
        A_JOB,
        "hyperpod-ns-team-a",
        "Suspended",
        "N/A",
    ]
    assert lab.views.jobs("hyperpod-ns-team-b").splitlines()[1].split()[2:] == ["Running", "10s"]
    assert lab.preemptions() == [(f"hyperpodpytorchjob-{A_JOB}", "InCohortReclamation")]


def test_the_urgent_job_of_two_nodes_preempts_its_own_and_borrows_four_gpus(lab: Lab) -> None:
    for step in (borrow, reclaim, preempt):
        step(lab)
    assert lab.states() == {A_JOB: "Suspended", B_JOB: "Suspended", B_URGENT: "Running"}
    assert lab.preemptions()[-1] == (f"hyperpodpytorchjob-{B_JOB}", "InClusterQueue")
    assert lab.used("team-b") == ("8", "4")


def test_what_waits_resumes_in_order_as_jobs_are_deleted(lab: Lab) -> None:
    for step in (borrow, reclaim, preempt):
        step(lab)
    lab.delete("team-b", B_URGENT, "HyperPodPyTorchJob")
    # Both would fit alone; who borrows nothing goes first.
    assert lab.states() == {A_JOB: "Suspended", B_JOB: "Running"}
    lab.delete("team-b", B_JOB, "HyperPodPyTorchJob")
    assert lab.states() == {A_JOB: "Running"}


def test_a_resumed_workload_shows_its_past(lab: Lab) -> None:
    for step in (borrow, reclaim):
        step(lab)
    lab.delete("team-b", B_JOB, "HyperPodPyTorchJob")
    evicted = lab.condition("team-a", A_JOB, "Evicted")
    assert (evicted["status"], evicted["reason"]) == ("False", "QuotaReserved")
    assert evicted["message"].startswith("Previously: Preempted to accommodate a workload (UID: ")
