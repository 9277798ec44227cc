"""Three instances with two of one's own: borrow, reclaim, preempt (the task governance workshop's example).

4 x ml.g5.8xlarge, two teams with two each, borrow limit 50 %, weight 0, fair sharing, ranked priority classes.
"""

from __future__ import annotations

import pytest

from tests.embedded.cluster.support import RANKS, Lab, policy, quota

TWO = {"InstanceType": "ml.g5.8xlarge", "Count": 2}


@pytest.fixture
def lab() -> Lab:
    lab = Lab().nodes("ml.g5.8xlarge", 4)
    lab.cluster.govern([quota("team-a", TWO), quota("team-b", TWO)], policy(RANKS))
    return lab


def borrow(lab: Lab) -> None:
    lab.submit("team-a", "etcd-gpu", kind="Deployment")
    lab.submit("team-a", "imagenet-gpu-team-a-1", pods=3, gpu=1)


def reclaim(lab: Lab) -> None:
    lab.submit("team-b", "hyperpod-cli-mnist-team-b", pods=2, gpu=1)


def preempt(lab: Lab) -> None:
    lab.submit("team-b", "etcd-gpu", kind="Deployment")
    lab.submit("team-b", "imagenet-gpu-team-b-2", pods=2, gpu=1, priority="inference")


def test_a_job_of_three_instances_runs_by_borrowing_one(lab: Lab) -> None:
    borrow(lab)
    assert lab.states() == {"imagenet-gpu-team-a-1": "Running"}
    assert lab.used("team-a") == ("3", "1")
    names = list(lab.pods("team-a"))
    assert names[0].startswith("etcd-gpu-")
    assert names[1:] == [f"imagenet-gpu-team-a-1-worker-{index}" for index in range(3)]
    assert set(lab.pods("team-a").values()) == {"Running"}


def test_the_lender_reclaims_and_the_borrowers_job_is_suspended(lab: Lab) -> None:
    borrow(lab)
    reclaim(lab)
    assert lab.states() == {"hyperpod-cli-mnist-team-b": "Running", "imagenet-gpu-team-a-1": "Suspended"}
    assert lab.preemptions() == [("pytorchjob-imagenet-gpu-team-a-1", "InCohortReclamation")]
    assert list(lab.pods("team-b").values()) == ["Running", "Running"]
    assert not [name for name in lab.pods("team-a") if "worker" in name]


def test_a_higher_priority_preempts_within_the_queue(lab: Lab) -> None:
    for step in (borrow, reclaim, preempt):
        step(lab)
    assert lab.states() == {
        "hyperpod-cli-mnist-team-b": "Suspended",
        "imagenet-gpu-team-a-1": "Suspended",
        "imagenet-gpu-team-b-2": "Running",
    }
    assert lab.preemptions()[-1] == ("pytorchjob-hyperpod-cli-mnist-team-b", "InClusterQueue")


def test_the_table_of_workloads_is_kubectls(lab: Lab) -> None:
    for step in (borrow, reclaim, preempt):
        step(lab)
    header, *rows = lab.views.workloads("hyperpod-ns-team-b").splitlines()
    queue, reserved = "hyperpod-ns-team-b-localqueue", "hyperpod-ns-team-b-clusterqueue"
    assert header == (
        "NAME                                         QUEUE                           "
        "RESERVED IN                       ADMITTED   FINISHED   AGE"
    )
    assert [row.split() for row in rows] == [
        [rows[0].split()[0], queue, reserved, "True", "20s"],
        [rows[1].split()[0], queue, "False", "30s"],
        [rows[2].split()[0], queue, reserved, "True", "10s"],
    ]
    assert [row.split()[0].rpartition("-")[0].rpartition("-")[0] for row in rows][1:] == [
        "pytorchjob-hyperpod-cli-mnist-team",
        "pytorchjob-imagenet-gpu-team-b",
    ]
    assert rows[0].startswith("pod-etcd-gpu-")
    assert len(rows[1]) == len(rows[0]) == len(rows[2]) == len(header)
    assert rows[1][header.index("RESERVED IN") : header.index("ADMITTED")].strip() == ""


def test_the_preempted_workload_says_why_as_kueue_0_19_does(lab: Lab) -> None:
    for step in (borrow, reclaim, preempt):
        step(lab)
    preemptor = lab.workload("team-b", "imagenet-gpu-team-b-2")
    uid, job_uid = preemptor["metadata"]["uid"], preemptor["metadata"]["labels"]["kueue.x-k8s.io/job-uid"]
    path = "/shared-pool/hyperpod-ns-team-b-clusterqueue"
    preempted = (
        f"Preempted to accommodate a workload (UID: {uid}, JobUID: {job_uid}) "
        f"due to prioritization in the ClusterQueue; preemptor path: {path}; preemptee path: {path}"
    )
    waits = (
        "couldn't assign flavors to pod set worker: "
        "insufficient unused quota for nvidia.com/gpu in flavor ml.g5.8xlarge, 1 more needed"
    )
    found = lab.workload("team-b", "mnist")["status"]["conditions"]
    assert {(one["type"], one["status"], one["reason"], one["message"]) for one in found} == {
        ("QuotaReserved", "False", "Pending", waits),
        ("Evicted", "True", "Preempted", preempted),
        ("Admitted", "False", "NoReservation", "The workload has no reservation"),
        ("Preempted", "True", "InClusterQueue", preempted),
        ("Requeued", "True", "Preempted", preempted),
    }
