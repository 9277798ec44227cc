"""Who may not queue, whatever quota there is: closed gates, jobs on hold, pods to be replaced.

Rules: `IsAdmissible` in `pkg/workload/workload.go` and `mayUpdateConditionForAdmissionGatedBy` in
`pkg/controller/core/workload_controller.go` of Kueue.
"""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.scheduling import settle
from taskgov.scheduling.objects import Condition
from tests.scheduling.builders import (
    NOW,
    Object,
    a_condition,
    a_job,
    a_queue,
    a_running_job,
    a_world,
    conditions,
    names,
)

LATER = "2026-11-20T09:05:00Z"


def _gated(gates: str) -> Object:
    job = a_job("j", "q")
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/admission-gated-by": gates}
    return job


def _said(world: Any, name: str = "j") -> tuple[str, str, str]:
    condition = conditions(world, name)["QuotaReserved"]
    return condition["status"], condition["reason"], condition["message"]


def test_a_closed_gate_keeps_a_workload_out_of_its_queue_and_says_so() -> None:
    world = a_world(a_queue("q", cpu="4"), _gated("budget,security"))
    assert not world.has_heads()
    assert settle(world, NOW).settled
    assert _said(world) == ("False", "AdmissionGated", "Admission is gated by: budget,security")
    assert world.pending("q") == ([], [])


def test_one_gate_less_is_still_a_gate_and_none_lets_the_workload_queue() -> None:
    world = a_world(a_queue("q", cpu="4"), _gated("budget,security"))
    settle(world, NOW)
    world.apply(_gated("security"))
    settle(world, LATER)
    assert _said(world)[2] == "Admission is gated by: budget,security"  # Kueue writes it once
    world.apply(_gated(""))
    world.evict_stopped(LATER)
    assert _said(world) == ("False", "Pending", "AdmissionGatedBy cleared, waiting for quota reservation")
    assert names(world.cycle(LATER))[0] == ["j"]


def test_granular_reasons_follow_the_gates() -> None:
    world = a_world(a_queue("q", cpu="4"), _gated("a,b"), gates={"UnadmittedWorkloadsObservability": True})
    world.evict_stopped(NOW)
    assert conditions(world, "j")["Admitted"]["reason"] == "NoReservation"
    world.apply(_gated("b"))
    world.evict_stopped(NOW)
    assert _said(world)[2] == "Admission is gated by: b"
    world.apply(_gated(""))
    world.evict_stopped(NOW)
    assert _said(world)[1] == "PendingEvaluation"


def test_without_the_feature_gate_the_annotation_is_nothing() -> None:
    world = a_world(a_queue("q", cpu="4"), _gated("budget"), gates={"AdmissionGatedBy": False})
    assert names(world.cycle(NOW))[0] == ["j"]
    assert not world.not_modelled


def test_a_job_on_hold_gives_its_quota_to_others_and_queues_again_when_it_is_let() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"), a_job("j", "q"))
    assert names(world.cycle(NOW))[0] == []
    world.hold("default/r", LATER, "StatefulSet scaled to zero; workload on hold")
    assert _said(world, "r") == ("False", "OnHold", "StatefulSet scaled to zero; workload on hold")
    assert conditions(world, "r")["Admitted"]["status"] == "False"
    assert [a.workload for a in settle(world, LATER).admitted] == ["default/j"]
    world.release("default/r", LATER)
    assert _said(world, "r") == ("False", "Pending", "Workload no longer on hold; waiting for quota reservation")
    assert world.pending("q") == (["default/r"], [])
    with pytest.raises(ValueError, match="default/r is not on hold"):
        world.release("default/r", LATER)


def test_a_pending_workload_on_hold_is_out_of_the_queue() -> None:
    world = a_world(a_queue("q", cpu="1"), a_job("j", "q"))
    world.hold("default/j", NOW)
    assert _said(world) == ("False", "OnHold", "Job is on hold")
    assert not world.has_heads()


def _with(job: Object, *told: Object) -> Object:
    return job | {"status": {"conditions": list(told)}}


def test_a_hold_is_read_from_the_status_when_the_workload_is_new_and_when_it_changes() -> None:
    held = a_condition("QuotaReserved", status="False", reason="OnHold", message="Job is on hold")
    let = a_condition("QuotaReserved", LATER, status="False", reason="Pending", message="no longer on hold")
    world = a_world(a_queue("q", cpu="1"), _with(a_job("j", "q"), held))
    assert not world.has_heads()
    assert not world.not_modelled
    world.apply(_with(a_job("j", "q"), let))
    assert world.has_heads()
    world.apply(_with(a_job("j", "q"), held))
    assert not world.has_heads()
    assert not world.restarted(world.config).has_heads()


def test_a_workload_that_waits_for_pods_is_not_queued_until_they_are_there() -> None:
    waits = a_condition("WaitingForReplacementPods", reason="PodsFailed", message="Some Failed pods need replacement")
    there = a_condition("WaitingForReplacementPods", LATER, status="False", reason="PodsReady")
    world = a_world(a_queue("q", cpu="1"), _with(a_job("j", "q"), waits))
    assert not world.has_heads()
    world.apply(_with(a_job("j", "q"), there))
    assert names(world.cycle(NOW))[0] == ["j"]


def test_a_workload_in_line_is_looked_at_once_more_after_pods_are_missing() -> None:
    """Kueue leaves it in the queue and does not take it back: `RequeueWorkload` in `pkg/cache/queue/manager.go`."""
    waits = a_condition("WaitingForReplacementPods")
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"), a_job("j", "q"))
    world.apply(_with(a_job("j", "q"), waits))
    assert names(world.copy().cycle(NOW))[2] == ["j"]
    world.cycle(NOW)
    assert world.pending("q") == ([], [])
    world.finish("default/r", LATER)
    assert not settle(world, LATER).admitted
    world.apply(_with(a_job("j", "q"), waits | {"status": "False"}))
    assert names(world.cycle(LATER))[0] == ["j"]


def test_an_evicted_workload_that_waits_for_pods_does_not_come_back_before() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"))
    world.evict("default/r", NOW, reason="Preempted", message="gone")
    world.apply(a_running_job("r", "q") | {"status": {"conditions": [a_condition("WaitingForReplacementPods")]}})
    world.finish_eviction("default/r", NOW)
    assert not world.has_heads()
    record = world._record("default/r")
    assert isinstance(record.conditions["WaitingForReplacementPods"], Condition)
