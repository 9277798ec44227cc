"""What is written on a workload when something happens to it."""

from __future__ import annotations

import pytest

from taskgov.scheduling import PodSet, RequeueBackoff, Workload, lifecycle
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import Admission, PodSetAdmission
from taskgov.scheduling.state import Record


def _running() -> Record:
    record = Record(Workload("a", "w", "q", (PodSet("main", 1, (("cpu", 1000),)),), uid="u"))
    lifecycle.admit(record, Admission("q", (PodSetAdmission("main", 1, {"cpu": "f"}, {"cpu": 1000}),)), 5)
    return record


def test_an_admitted_workload_holds_what_its_admission_says() -> None:
    assert _running().usage == {"f/cpu": 1000}


def test_leaving_gives_back_everything_and_forgets_how_far_the_search_was() -> None:
    record = _running()
    lifecycle.tell_to_leave(record, "Preempted", "somebody needs it", 6, preempted="InClusterQueue")
    assert record.evicted
    assert record.usage
    lifecycle.leave(record, "Pending", RequeueBackoff(), 7, explicit=False)
    assert (record.admission, record.usage, record.scan) == (None, {}, None)
    assert record.conditions["Requeued"].message == "somebody needs it"


def test_who_was_not_evicted_does_not_leave() -> None:
    with pytest.raises(ValueError, match="a/w is not evicted"):
        lifecycle.leave(_running(), "Pending", RequeueBackoff(), 7, explicit=False)


def test_an_eviction_for_another_reason_says_that_it_does_not_come_back_by_itself() -> None:
    """Step 6, handle eviction, in `pkg/controller/jobframework/reconciler.go` of Kueue."""
    record = _running()
    lifecycle.tell_to_leave(record, "ClusterQueueStopped", "The ClusterQueue is stopped", 6)
    lifecycle.leave(record, "Pending", RequeueBackoff(), 7, explicit=False)
    requeued = record.conditions["Requeued"]
    said = (requeued.status, requeued.reason, requeued.message)
    assert said == (False, "ClusterQueueStopped", "The ClusterQueue is stopped")
    assert "Preempted" not in record.conditions


@pytest.mark.parametrize(("earlier", "seconds"), [(0, 60), (1, 120), (3, 480), (9, 3600)])
def test_the_pause_doubles_up_to_an_hour(earlier: int, seconds: int) -> None:
    record = _running()
    record.requeue_count = earlier
    lifecycle.tell_to_leave(record, "PodsReadyTimeout", "late", 0)
    lifecycle.leave(record, "Pending", RequeueBackoff(), 0, explicit=False)
    assert (record.requeue_at, record.requeue_count) == (seconds * SECOND, earlier + 1)
    assert record.queued_since == 0


def test_an_eviction_for_pods_that_are_not_ready_sends_to_the_back_of_the_queue() -> None:
    record = Record(Workload("a", "w", "q", (), created=100))
    assert record.queued_since == 100
    lifecycle.tell_to_leave(record, "PodsReadyTimeout", "late", 900)
    assert record.queued_since == 900
    lifecycle.end_backoff(record, 950)
    assert record.queued_since == 900
    preempted = Record(Workload("a", "w", "q", (), created=100))
    lifecycle.tell_to_leave(preempted, "Preempted", "needed", 900)
    assert preempted.queued_since == 100
