"""Where Kueue 0.19 decides otherwise than one would expect: each case was found against its own scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.quantities import format_quantity
from taskgov.scheduling import settle
from taskgov_explain.simulation import Simulation
from tests.scheduling.builders import (
    NOW,
    a_condition,
    a_door,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    a_world,
    conditions,
    names,
)

BORROWS = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
LATER = "2026-11-20T09:00:01Z"


def test_an_elastic_job_that_is_partly_finished_and_does_not_fit_waits() -> None:
    job = a_job("elastic", "q", cpu="4", count=2, minCount=1)
    job["status"] = {"reclaimablePods": [{"name": "main", "count": 1}]}
    world = a_world(a_queue("q", cpu="2"), job)
    assert names(world.cycle(NOW)) == ([], [], ["elastic"])


def test_an_elastic_job_shrinks_from_the_counts_of_its_spec() -> None:
    job = a_job("elastic", "q", cpu="1", count=4, minCount=2)
    job["status"] = {"reclaimablePods": [{"name": "main", "count": 1}]}
    world = a_world(a_queue("q", cpu="2"), job)
    [admitted] = world.cycle(NOW).admitted
    assert admitted.admission.pod_sets[0].count == 2


STOPPED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a queue that is held": ({"stopPolicy": "Hold"}, {"gpu": {"cpu": "0"}}),
    "a queue that names a flavor that does not exist": ({}, {"gpu": {"cpu": "0"}, "gone": {"cpu": "0"}}),
}


@pytest.mark.parametrize("fair_sharing", [False, True], ids=["classical", "fair sharing"])
@pytest.mark.parametrize("name", STOPPED)
def test_nobody_is_preempted_in_an_inactive_queue_but_what_it_uses_counts(name: str, *, fair_sharing: bool) -> None:
    spec, flavors = STOPPED[name]
    world = a_world(
        a_queue("stopped", cohort="all", flavors=flavors, **spec),
        a_queue("owner", cohort="all", cpu="4", preemption=BORROWS),
        a_running_job("borrower", "stopped", cpu="4"),
        a_job("waits", "owner", cpu="4", priority=9),
        fair_sharing=fair_sharing,
    )
    assert names(world.cycle(NOW)) == ([], [], ["waits"])


def test_the_pods_of_a_request_are_not_counted_while_victims_are_searched() -> None:
    """One victim seems enough, two pods do not fit then, and nobody is preempted; Kueue 0.20 counts the pods."""
    victims = [_running(name, pods=1) for name in ("first", "second")]
    waits = a_job("waits", "q", cpu="1", count=2, priority=9)
    world = a_world(a_queue("q", flavors={"gpu": {"cpu": "4", "pods": "2"}}, preemption=BORROWS), *victims, waits)
    assert names(world.cycle(NOW)) == ([], [], ["waits"])
    assert conditions(world, "waits")["QuotaReserved"]["message"] == (
        "Workload no longer fits after processing another workload"
    )


def _running(name: str, pods: int) -> dict[str, Any]:
    job = a_running_job(name, "q", cpu="1")
    [assignment] = job["status"]["admission"]["podSetAssignments"]
    assignment["flavors"]["pods"] = "gpu"
    assignment["resourceUsage"]["pods"] = str(pods)
    return job


@pytest.mark.parametrize(("by_priority", "first"), [(True, "preempted"), (False, "other")])
def test_without_priorities_within_the_cohort_who_was_preempted_while_borrowing_comes_after_its_preemptor(
    *, by_priority: bool, first: str
) -> None:
    preempted = a_job("preempted", "a", cpu="4", second=1)
    preempted["status"] = {"conditions": [a_condition("Preempted", NOW, reason="InCohortReclaimWhileBorrowing")]}
    world = a_world(
        a_queue("a", cohort="all", cpu="0"),
        a_queue("b", cohort="all", cpu="0"),
        a_queue("c", cohort="all", cpu="4"),
        preempted,
        a_job("other", "b", cpu="4", second=2),
        gates={"PrioritySortingWithinCohort": by_priority},
    )
    assert names(world.cycle("2026-11-20T10:00:00Z"))[0] == [first]


def test_a_workload_that_ends_in_a_held_local_queue_wakes_nobody() -> None:
    held = {"kind": "LocalQueue", "metadata": {"name": "q", "namespace": "default"}}
    world = a_world(a_queue("q", cpu="4"), a_running_job("runs", "q", cpu="4"), a_job("waits", "q", cpu="4"))
    world.cycle(NOW)
    world.apply(held | {"spec": {"clusterQueue": "q", "stopPolicy": "Hold"}})
    assert world.requeue_inadmissible() == 0
    world.finish("default/runs", LATER)
    assert not world.has_notified


def test_workloads_of_a_started_local_queue_are_looked_at_though_their_equals_wait() -> None:
    """`AddFromLocalQueue` in `pkg/cache/queue/cluster_queue.go` does not ask whether equals are inadmissible."""
    door, other = a_door("q"), a_door("q", "other")
    world = a_world(
        a_queue("q", cpu="4"),
        other,
        a_running_job("runs", "q", cpu="4"),
        a_job("waits", "q", cpu="3"),
        a_job("waits", "q", cpu="3", second=1, namespace="other"),
        a_job("later", "q", cpu="3", second=2, namespace="other"),
    )
    world.cycle(NOW)
    waiting = {"default/waits", "other/later", "other/waits"}
    assert world.pending("q") == ([], sorted(waiting))
    for who in ("default/waits", "other/waits"):
        held = a_door("q", who.partition("/")[0])
        stopped = held | {"spec": {"clusterQueue": "q", "stopPolicy": "Hold"}}
        world.apply(stopped)
        world.apply(held)
        behind = sorted(key for key in waiting if key.startswith(held["metadata"]["namespace"]))
        assert world.pending("q") == (behind, sorted(waiting.difference(behind)))
        assert [one.workload for one in world.cycle(NOW).waiting] == [who]
        assert world.pending("q") == ([], sorted(waiting))  # its equals in line go with it
    world.apply(door | {"spec": {"clusterQueue": "q", "stopPolicy": "Hold"}})
    world.finish("default/runs", LATER)
    world.apply(door)
    assert names(world.copy().cycle(LATER))[0] == ["waits"]
    world.apply(a_queue("q", cpu="5"))
    world.requeue_inadmissible()
    assert world.pending("q") == (sorted(waiting), [])


def test_workloads_of_another_layout_of_containers_are_not_equals() -> None:
    """Kueue moves the equals of a workload that does not fit out of line with it."""
    two = {"containers": [{"resources": {"requests": {"cpu": "4"}}}, {"resources": {"requests": {"cpu": "4"}}}]}
    other = a_job("other", "q", cpu="8", second=2)
    other["spec"]["podSets"][0]["template"]["spec"] = two
    world = a_world(a_queue("q", cpu="4"), a_job("one", "q", cpu="8"), a_job("equal", "q", cpu="8", second=1), other)
    world.cycle(NOW)
    assert world.pending("q") == (["default/other"], ["default/equal", "default/one"])


def test_of_two_groups_with_one_resource_the_first_counts() -> None:
    queue = a_queue("q", flavors={"first": {"cpu": "4"}})
    queue["spec"]["resourceGroups"] += a_queue("", flavors={"second": {"cpu": "4"}})["spec"]["resourceGroups"]
    world = a_world(queue, a_flavor("first"), a_flavor("second"), a_job("job", "q"))
    [admitted] = world.cycle(NOW).admitted
    assert admitted.admission.pod_sets[0].flavors == {"cpu": "first"}


def test_a_resource_that_the_queue_lacks_has_the_reason_that_no_flavor_matches_only_when_none_was_looked_at() -> None:
    gates = {"UnadmittedWorkloadsObservability": True}
    lacks = a_job("lacks", "q", requests={"example.com/none": "1"})
    world = a_world(a_queue("q", cpu="4"), lacks, gates=gates)
    world.cycle(NOW)
    assert conditions(world, "lacks")["QuotaReserved"]["reason"] == "NoMatchingFlavor"


def test_memory_that_is_no_multiple_of_1024_is_spelled_in_powers_of_ten() -> None:
    assert [format_quantity("memory", n) for n in (5 * 10**9, 5 * 2**30, 2000)] == ["5G", "5Gi", "2k"]


DRAINED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a queue that is drained": ({"stopPolicy": "HoldAndDrain"}, {}),
    "a workload that is deactivated": ({}, {"active": False}),
}


@pytest.mark.parametrize("name", DRAINED)
def test_predictions_let_those_leave_that_may_not_run_any_more(name: str) -> None:
    queue, job = DRAINED[name]
    leaves = a_running_job("leaves", "a", cpu="4")
    leaves["spec"] |= job
    objects = [
        a_queue("a", cohort="all", cpu="4", **queue),
        a_queue("b", cohort="all", cpu="0"),
        leaves,
        a_job("waits", "b", cpu="4"),
    ]
    settled = settle(a_world(*objects), LATER)
    assert [admitted.workload for admitted in settled.admitted] == ["default/waits"]


def test_a_simulation_drains_a_queue_from_the_moment_it_is_stopped() -> None:
    queues = [a_queue("a", cohort="all", cpu="4"), a_queue("b", cohort="all", cpu="0")]
    world = a_world(*queues)
    simulation = Simulation(world, requeue_batch=0)
    simulation.arrive(a_job("leaves", "a", cpu="4"), at=NOW, run_time=3_600_000_000)
    simulation.arrive(a_job("waits", "b", cpu="4"), at=NOW, run_time=1_000_000)
    simulation.change(a_queue("a", cohort="all", cpu="4", stopPolicy="HoldAndDrain"), at="2026-11-20T09:10:00Z")
    timeline = simulation.run(until="2026-11-20T09:20:00Z")
    assert [(h.kind, h.workload) for h in timeline.happenings] == [
        ("admitted", "default/leaves"),
        ("evicted", "default/leaves"),
        ("admitted", "default/waits"),
    ]


@pytest.mark.parametrize("preserved", [True, False])
def test_without_the_gate_a_workload_whose_status_changes_starts_its_flavor_search_anew(*, preserved: bool) -> None:
    """The second head loses its flavor to the first one of the cycle; with the gate it goes on behind that flavor."""
    spec: dict[str, Any] = {"flavorFungibility": {"whenCanBorrow": "MayStopSearch"}, "cohort": "all"}
    flavors = {"first": {"cpu": "0"}, "second": {"cpu": "0"}}
    lender = a_queue("lender", cohort="all", flavors={"first": {"cpu": "4"}, "second": {"cpu": "4"}})
    world = a_world(
        a_flavor("first"),
        a_flavor("second"),
        lender,
        *(a_queue(name, flavors=flavors, **spec) for name in ("a", "b")),
        a_job("early", "a", cpu="4", second=1),
        a_job("late", "b", cpu="4", second=2),
        gates={"FlavorFungibilityPreserveScanProgress": preserved},
    )
    assert names(world.cycle(NOW)) == (["early"], [], ["late"])
    [admitted] = world.cycle(LATER).admitted
    assert admitted.admission.pod_sets[0].flavors == {"cpu": "second"}
    looked_at_first = "flavor first" in admitted.considered
    assert looked_at_first is not preserved
