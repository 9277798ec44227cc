"""Kubernetes objects out."""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.scheduling import PodSet, Workload
from tests.scheduling.builders import NOW, a_job, a_queue, a_running_job, a_world, conditions


def test_an_admitted_workload_reads_as_kueue_writes_it() -> None:
    world = a_world(a_queue("q", cpu="4"), a_job("j", "q", cpu="1500m", count=2))
    world.cycle(NOW)
    workload = world.workload("default/j")
    assert workload["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert workload["metadata"]["uid"] == "uid-j"
    assert workload["status"]["admission"] == {
        "clusterQueue": "q",
        "podSetAssignments": [{"name": "main", "flavors": {"cpu": "gpu"}, "resourceUsage": {"cpu": "3"}, "count": 2}],
    }
    assert workload["status"]["conditions"] == [
        {
            "type": "QuotaReserved",
            "status": "True",
            "reason": "QuotaReserved",
            "message": "Quota reserved in ClusterQueue q",
            "lastTransitionTime": NOW,
        },
        {
            "type": "Admitted",
            "status": "True",
            "reason": "Admitted",
            "message": "The workload is admitted",
            "lastTransitionTime": NOW,
        },
    ]


def test_the_transition_time_moves_only_when_the_status_does() -> None:
    world = a_world(a_queue("q", cpu="1", queueingStrategy="StrictFIFO"), a_job("j", "q", cpu="2"))
    world.cycle(NOW)
    world.cycle("2026-11-20T09:30:00Z")
    found = conditions(world, "j")
    assert found["QuotaReserved"]["lastTransitionTime"] == NOW
    assert "Admitted" not in found


NO_RESERVATION = ("False", "NoReservation", "The workload has no reservation")


@pytest.mark.parametrize(
    ("gate", "was_admitted", "wanted"),
    [(False, False, None), (False, True, NO_RESERVATION), (True, False, NO_RESERVATION), (True, True, NO_RESERVATION)],
    ids=[
        "SyncAdmittedCondition (pkg/workload/admissionchecks.go): never admitted, as v0.19.2 is by default",
        "SyncAdmittedCondition: admitted before, as v0.19.2 is by default",
        "SyncAdmittedCondition: never admitted, UnadmittedWorkloadsObservability",
        "SyncAdmittedCondition: admitted before, UnadmittedWorkloadsObservability",
    ],
)
def test_only_who_was_admitted_is_said_not_to_be(
    gate: bool, was_admitted: bool, wanted: tuple[str, str, str] | None
) -> None:
    job = a_job("j", "q", cpu="1" if was_admitted else "2")
    world = a_world(a_queue("q", cpu="1"), job, gates={"UnadmittedWorkloadsObservability": gate})
    world.cycle(NOW)
    if was_admitted:
        world.evict("default/j", NOW, reason="Preempted", message="somebody needs it")
        world.finish_eviction("default/j", NOW)
    found = conditions(world, "j").get("Admitted")
    assert (found and (found["status"], found["reason"], found["message"])) == wanted


BETA1 = {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}
BETA2 = {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}


@pytest.mark.parametrize("given", [BETA1, BETA2], ids=["from v1beta1", "from v1beta2"])
@pytest.mark.parametrize(("version", "wanted"), [("v1beta1", BETA1), ("v1beta2", BETA2)])
def test_the_priority_class_is_named_as_the_version_does(
    given: dict[str, Any], version: str, wanted: dict[str, Any]
) -> None:
    job = a_job("j", "q")
    job["spec"] |= given
    spec = a_world(job).workload("default/j", version)["spec"]
    assert {key: value for key, value in spec.items() if key.startswith("priorityClass")} == wanted


def test_what_came_in_is_not_changed() -> None:
    job = a_job("j", "q")
    del job["spec"]["priority"]
    world = a_world(a_queue("q", cpu="1"), job)
    world.cycle(NOW)
    world.workload("default/j")
    assert "status" not in job
    assert "priority" not in job["spec"]


def test_a_workload_given_as_a_value_can_be_read_as_an_object() -> None:
    world = a_world(a_queue("q", cpu="1"))
    world.submit(Workload("default", "v", "q", (PodSet("main", 1, (("cpu", 500),)),), created=0, uid="u"))
    written = world.workload("default/v")
    assert written["metadata"]["creationTimestamp"] == "1970-01-01T00:00:00Z"
    (pod_set,) = written["spec"]["podSets"]
    assert pod_set["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m"}}


def test_a_cluster_queue_reports_what_it_uses_and_borrows() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="2"),
        a_queue("b", cohort="pool", cpu="4"),
        a_running_job("r", "a", cpu="3500m"),
        a_job("in-line", "a"),
        a_job("too-big", "a", cpu="99", second=1),
    )
    status = world.cluster_queue("a")["status"]
    usage = [{"name": "gpu", "resources": [{"name": "cpu", "total": "3500m", "borrowed": "1500m"}]}]
    assert (status["flavorsUsage"], status["flavorsReservation"]) == (usage, usage)
    assert (status["pendingWorkloads"], status["admittedWorkloads"], status["reservingWorkloads"]) == (2, 1, 1)
    assert status["fairSharing"] == {"weightedShare": 250}
    assert status["conditions"][0]["message"] == "Can admit new workloads"
    assert world.local_queue("default", "a")["status"] == {
        "pendingWorkloads": 2,
        "reservingWorkloads": 1,
        "admittedWorkloads": 1,
    }


def test_quota_without_a_cohort_is_never_borrowed() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q", cpu="3"))
    (flavor,) = world.cluster_queue("q")["status"]["flavorsUsage"]
    assert flavor["resources"] == [{"name": "cpu", "total": "3", "borrowed": "0"}]
