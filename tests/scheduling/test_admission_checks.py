"""Admission checks: quota is reserved, and the workload waits until every check of its queue agrees.

Rules: `pkg/workload/admissionchecks.go`, `reconcileCheckBasedEviction` in
`pkg/controller/core/workload_controller.go` and `pkg/workload/evict` of Kueue.
"""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.scheduling import KueueModel, events, settle
from tests.scheduling.builders import (
    NOW,
    Object,
    a_condition,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    a_world,
    conditions,
    names,
)

LATER = "2026-11-20T09:05:00Z"


def _asking(*checks: Object, cpu: str = "4", **spec: Any) -> Object:
    return a_queue("q", cpu=cpu, admissionChecksStrategy={"admissionChecks": list(checks)}, **spec)


def _checks(world: KueueModel, name: str = "j") -> list[tuple[str, str]]:
    return [(c["name"], c["state"]) for c in world.workload(f"default/{name}")["status"].get("admissionChecks", ())]


def _waiting(*objects: Object, **options: Any) -> KueueModel:
    """Build a world with a job that holds quota and waits for the checks `a` and `b`."""
    world = a_world(_asking({"name": "b"}, {"name": "a"}), *objects, a_job("j", "q"), **options)
    world.cycle(NOW)
    return world


def test_quota_is_reserved_and_the_workload_is_admitted_when_the_last_check_agrees() -> None:
    world = a_world(_asking({"name": "b"}, {"name": "a"}), a_job("j", "q"))
    result = world.cycle(NOW)
    assert result.admitted[0].waits_for == ("a", "b")
    assert [event.reason for event in events(result)] == ["QuotaReserved"]
    assert conditions(world, "j")["QuotaReserved"]["status"] == "True"
    assert "Admitted" not in conditions(world, "j")
    assert _checks(world) == [("a", "Pending"), ("b", "Pending")]
    world.answer("default/j", "a", "Ready", LATER)
    assert "Admitted" not in conditions(world, "j")
    world.answer("default/j", "b", "Ready", LATER, message="there are nodes")
    admitted = conditions(world, "j")["Admitted"]
    assert (admitted["status"], admitted["lastTransitionTime"]) == ("True", LATER)
    assert world.evict_stopped(LATER) == []
    status = world.cluster_queue("q")["status"]
    assert (status["reservingWorkloads"], status["admittedWorkloads"]) == (1, 1)


def test_what_waits_for_checks_holds_its_quota_and_may_be_preempted() -> None:
    rules = {"withinClusterQueue": "LowerPriority"}
    world = a_world(_asking({"name": "a"}, cpu="1", preemption=rules), a_job("j", "q"))
    world.cycle(NOW)
    world.apply(a_job("next", "q", priority=1))
    assert names(world.cycle(LATER))[1] == ["j"]
    assert _checks(world) == [("a", "Pending")]


def test_granular_reasons_say_that_checks_are_open() -> None:
    world = _waiting(gates={"UnadmittedWorkloadsObservability": True})
    said = conditions(world, "j")["Admitted"]
    assert (said["status"], said["reason"]) == ("False", "UnsatisfiedAdmissionChecks")
    assert said["message"] == "The workload has not all checks ready"


def test_checks_of_a_flavor_are_asked_of_those_that_get_it() -> None:
    queue = a_queue("q", flavors={"a": {"cpu": "1"}, "b": {"cpu": "9"}})
    strategy = {"admissionChecks": [{"name": "all"}, {"name": "only-a", "onFlavors": ["a"]}]}
    world = a_world(
        a_flavor("a"), a_flavor("b"), queue | {"spec": {**queue["spec"], "admissionChecksStrategy": strategy}}
    )
    world.load([a_job("small", "q"), a_job("big", "q", cpu="5", second=1)])
    world.evict_stopped(NOW)
    assert _checks(world, "small") == [("all", "Pending")]  # before it has a flavor, those of all flavors
    settle(world, NOW)
    assert _checks(world, "small") == [("all", "Pending"), ("only-a", "Pending")]
    assert _checks(world, "big") == [("all", "Pending")]


def test_the_old_list_of_checks_is_for_all_flavors() -> None:
    world = a_world(a_queue("q", cpu="1", admissionChecks=["a"]), a_job("j", "q"))
    assert world.cycle(NOW).admitted[0].waits_for == ("a",)


def test_a_check_that_wants_another_try_sends_the_workload_back_until_then() -> None:
    world = _waiting()
    world.answer("default/j", "a", "Retry", LATER, message="no capacity", requeue_after=60)
    assert world.evict_stopped(LATER) == ["default/j"]
    told = conditions(world, "j")["Evicted"]
    assert (told["reason"], told["message"]) == (
        "AdmissionCheck",
        'Evicted due to AdmissionCheck in Retry state: "a" (no capacity)',
    )
    check = world.workload("default/j")["status"]["admissionChecks"][0]
    assert (check["state"], check["message"]) == ("Pending", "Reset to Pending after eviction. Previously: Retry")
    assert check["retryCount"] == 1
    world.finish_eviction("default/j", LATER)
    assert not world.has_heads()
    requeued = conditions(world, "j")["Requeued"]
    assert (requeued["status"], requeued["reason"]) == ("False", "AdmissionCheck")
    assert world.workload("default/j")["status"]["requeueState"] == {"requeueAt": "2026-11-20T09:06:00Z"}
    assert settle(world.copy(), "2026-11-20T09:05:30Z").admitted == ()
    world.release_backoffs("2026-11-20T09:06:00Z")
    assert conditions(world, "j")["Requeued"]["reason"] == "BackoffFinished"
    assert names(world.cycle("2026-11-20T09:06:00Z"))[0] == ["j"]


def test_a_retry_without_a_moment_comes_back_at_once_behind_those_that_were_before() -> None:
    world = _waiting(a_job("other", "q", cpu="4", second=9))
    world.answer("default/j", "b", "Retry", LATER)
    settled = settle(world, LATER)
    assert [a.workload for a in settled.admitted] == ["default/other"]  # evicted by a check: ordered by that moment
    assert conditions(world, "j")["Requeued"]["reason"] == "BackoffFinished"


def test_a_check_that_rejects_deactivates_the_workload() -> None:
    world = _waiting()
    world.answer("default/j", "a", "Rejected", LATER, message="never")
    world.answer("default/j", "b", "Rejected", LATER)
    assert world.evict_stopped(LATER) == ["default/j"]
    told = conditions(world, "j")["Evicted"]
    assert (told["reason"], told["message"]) == (
        "DeactivatedDueToAdmissionCheck",
        'The workload is deactivated due to AdmissionChecks in Rejected state: "a" (never); "b"',
    )
    assert world.workload("default/j")["spec"]["active"] is False
    world.finish_eviction("default/j", LATER)
    assert not world.has_heads()
    assert world.evict_stopped(LATER) == []
    assert conditions(world, "j")["Requeued"]["reason"] == "DeactivatedDueToAdmissionCheck"


def test_an_admitted_workload_is_sent_back_by_its_checks_too() -> None:
    world = _waiting()
    for check in ("a", "b"):
        world.answer("default/j", check, "Ready", NOW)
    world.answer("default/j", "a", "Retry", LATER)
    assert conditions(world, "j")["Admitted"]["status"] == "True"
    assert world.evict_stopped(LATER) == ["default/j"]
    world.finish_eviction("default/j", LATER)
    said = conditions(world, "j")["Admitted"]
    assert (said["reason"], said["message"]) == (
        "NoReservationUnsatisfiedChecks",
        "The workload has no reservation and not all checks ready",
    )


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_reservation_is_lost_at_once_where_the_queue_is_stopped(policy: str) -> None:
    world = _waiting()
    world.apply(_asking({"name": "a"}, {"name": "b"}, stopPolicy=policy))
    assert world.evict_stopped(LATER) == []
    said = conditions(world, "j")["QuotaReserved"]
    assert (said["status"], said["reason"], said["message"]) == ("False", "Inadmissible", "ClusterQueue q is stopped")
    assert world.admission("default/j") is None
    door = {"kind": "LocalQueue", "metadata": {"name": "q", "namespace": "default"}}
    world = _waiting()
    world.apply(door | {"spec": {"clusterQueue": "q", "stopPolicy": policy}})
    world.evict_stopped(LATER)
    assert conditions(world, "j")["QuotaReserved"]["message"] == "LocalQueue q is stopped"
    world = _waiting()
    world.delete("LocalQueue", "q", "default")
    world.evict_stopped(LATER)
    assert conditions(world, "j")["QuotaReserved"]["message"] == "LocalQueue q is terminating or missing"


def _check(name: str, *, active: bool) -> Object:
    status = {"conditions": [a_condition("Active", status="True" if active else "False")]}
    return {"kind": "AdmissionCheck", "metadata": {"name": name}, "spec": {"controllerName": "x"}, "status": status}


def test_a_queue_whose_checks_are_missing_or_inactive_admits_nothing() -> None:
    def why(world: KueueModel) -> str:
        return str(world.cluster_queue("q")["status"]["conditions"][0]["reason"])

    world = a_world(_asking({"name": "a"}), a_job("j", "q"))
    assert why(world) == "Ready"  # nothing is known of any check: not every dump has them
    world.apply(_check("other", active=True))
    assert why(world) == "AdmissionCheckNotFound"
    world.apply(_check("a", active=False))
    assert why(world) == "AdmissionCheckInactive"
    assert not world.copy().has_heads()
    world.requeue_inadmissible()
    world.apply(_check("a", active=True))
    assert (why(world), world.has_notified) == ("Ready", True)
    assert names(world.cycle(NOW))[0] == ["j"]
    assert not world.not_modelled
    world.delete("AdmissionCheck", "a")
    assert why(world) == "AdmissionCheckNotFound"
    assert why(world.restarted(world.config)) == "AdmissionCheckNotFound"


def test_states_are_read_from_the_status_and_when_it_changes() -> None:
    job = a_running_job("r", "q")
    job["status"]["conditions"].pop()
    states = [{"name": "a", "state": "Pending", "lastTransitionTime": NOW}]
    job["status"]["admissionChecks"] = states
    world = a_world(_asking({"name": "a"}), job)
    world.evict_stopped(NOW)
    assert "Admitted" not in conditions(world, "r")
    ready = [states[0] | {"state": "Ready"}]
    world.apply(job | {"status": {**job["status"], "admissionChecks": ready}})
    world.evict_stopped(LATER)
    assert conditions(world, "r")["Admitted"]["lastTransitionTime"] == LATER
    assert _checks(world.restarted(world.config), "r") == [("a", "Ready")]


def test_a_pending_workload_that_a_check_refused_is_not_looked_at() -> None:
    job = a_job("j", "q") | {"status": {"admissionChecks": [{"name": "a", "state": "Retry"}]}}
    world = a_world(_asking({"name": "a"}), job)
    result = world.cycle(NOW)
    assert (names(result)[2], result.waiting[0].message) == (["j"], "The workload has failed admission checks")
    assert world.pending("q") == ([], ["default/j"])


def test_a_check_that_a_queue_asks_no_more_is_dropped_and_a_new_one_is_asked() -> None:
    world = _waiting()
    world.apply(_asking({"name": "b"}, {"name": "c"}))
    world.evict_stopped(NOW)
    assert _checks(world) == [("b", "Pending"), ("c", "Pending")]
    with pytest.raises(KeyError):
        world.answer("default/j", "a", "Ready", NOW)
    world.apply(_asking())
    world.evict_stopped(NOW)
    assert (_checks(world), conditions(world, "j")["Admitted"]["status"]) == ([], "True")


def test_a_check_that_is_added_later_does_not_send_away_who_runs() -> None:
    world = a_world(a_queue("q", cpu="1"), a_job("j", "q"))
    world.cycle(NOW)
    world.apply(_asking({"name": "a"}, cpu="1"))
    assert world.evict_stopped(LATER) == []
    assert (_checks(world), conditions(world, "j")["Admitted"]["status"]) == ([("a", "Pending")], "True")
