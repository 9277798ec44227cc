"""Quotas above capacity: both options of the workshop, and a variant in which admitted pods find no room on nodes."""

from __future__ import annotations

import pytest

from tests.embedded.cluster.support import RANKS, Lab, policy, quota

A_JOB, B_JOB = "imagenet-gpu-team-a-1", "imagenet-gpu-team-b-2"


def option_1() -> Lab:
    lab = Lab().nodes("ml.g5.8xlarge", 2)
    quotas = [
        quota("team-a", {"InstanceType": "ml.g5.8xlarge", "Count": 1}, limit=100, weight=100),
        quota("team-b", {"InstanceType": "ml.g5.8xlarge", "Count": 2}, limit=100, weight=100),
    ]
    lab.cluster.govern(quotas, policy(RANKS))
    return lab


def option_2() -> Lab:
    lab = Lab().nodes("ml.g5.12xlarge", 2)
    quotas = [
        quota("team-a", {"InstanceType": "ml.g5.12xlarge", "Accelerators": 2}, limit=100, weight=100),
        quota("team-b", {"InstanceType": "ml.g5.12xlarge", "Count": 2}, limit=100, weight=100),
    ]
    lab.cluster.govern(quotas, policy(RANKS))
    return lab


def test_option_1_borrow_reclaim_and_resume() -> None:
    lab = option_1()
    lab.submit("team-a", A_JOB, pods=2, gpu=1)
    assert lab.used("team-a") == ("2", "1")
    lab.submit("team-b", B_JOB, pods=2, gpu=1, priority="training")
    assert lab.states() == {A_JOB: "Suspended", B_JOB: "Running"}
    assert lab.preemptions() == [(f"pytorchjob-{A_JOB}", "InCohortReclamation")]
    lab.delete("team-b", B_JOB)
    assert lab.states() == {A_JOB: "Running"}


@pytest.mark.parametrize("pods", [1, 4])
def test_option_2_borrow_reclaim_and_resume(pods: int) -> None:
    lab = option_2()
    lab.submit("team-a", A_JOB, pods=pods, gpu=4 // pods)
    assert lab.used("team-a") == ("4", "2")
    lab.submit("team-b", B_JOB, pods=2, gpu=4, priority="training")
    assert lab.states() == {A_JOB: "Suspended", B_JOB: "Running"}
    assert lab.preemptions() == [(f"pytorchjob-{A_JOB}", "InCohortReclamation")]
    lab.delete("team-b", B_JOB)
    assert lab.states() == {A_JOB: "Running"}


def test_a_job_within_its_own_quota_is_not_reclaimed_though_pods_then_wait_for_nodes() -> None:
    lab = option_2()
    lab.submit("team-a", A_JOB, pods=1, gpu=2)
    lab.submit("team-b", B_JOB, pods=2, gpu=4, priority="training")
    assert lab.preemptions() == []
    assert lab.states() == {A_JOB: "Running", B_JOB: "Admitted, waiting for nodes"}
    assert lab.condition("team-b", B_JOB, "Admitted")["status"] == "True"
    assert sorted(lab.pods("team-b").values()) == ["Pending", "Running"]
    [waiting] = [pod for pod in lab.cluster.store.list("pods") if pod["status"]["phase"] == "Pending"]
    assert waiting["status"]["conditions"][0]["message"] == ("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    lab.delete("team-a", A_JOB)
    assert lab.states() == {B_JOB: "Running"}
