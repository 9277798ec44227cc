"""What a cycle reports."""

from __future__ import annotations

from taskgov.scheduling import events
from tests.scheduling.builders import HYPERPOD_PREEMPTION, NOW, a_job, a_queue, a_running_job, a_world


def test_an_admission_is_reported_with_waiting_time_and_the_flavors_passed_over() -> None:
    flavors = {"one": {"cpu": "1"}, "gpu": {"cpu": "4"}}
    one = {"kind": "ResourceFlavor", "metadata": {"name": "one"}}
    world = a_world(one, a_queue("q", flavors=flavors), a_job("j", "q", cpu="2"))
    reserved, admitted = events(world.cycle("2026-11-20T08:00:30Z"))
    assert reserved.message == (
        "Quota reserved in ClusterQueue q, wait time since queued was 30s; Flavors considered: main: "
        "one(preemptionMode=NoFit;insufficient quota for cpu in flavor one, previously considered podsets requests (0) "
        "+ current podset request (2) > maximum capacity (1))"
    )
    assert (admitted.type, admitted.reason) == ("Normal", "Admitted")


def test_a_preemption_is_reported_to_both_sides() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="0"),
        a_running_job("guest", "b", cpu="4"),
        a_job("owner", "a", cpu="4"),
    )
    result = world.cycle(NOW)
    told = [(e.workload, e.type, e.reason) for e in events(result)]
    assert told == [
        ("default/guest", "Normal", "EvictedDueToPreempted"),
        ("default/guest", "Normal", "Preempted"),
        ("default/owner", "Normal", "PreemptedWorkload"),
        ("default/owner", "Warning", "Pending"),
    ]
    assert not result.idle
