"""One workload after the other: `waitForPodsReadyIfNeeded` in `pkg/scheduler/scheduler.go` of Kueue 0.19.2.

The cases are those of `test/integration/singlecluster/scheduler/podsready` ("WaitForPodsReady with blockAdmission").
"""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig, events, settle
from taskgov_explain.simulation import Simulation
from tests.scheduling.builders import (
    NOW,
    Object,
    a_condition,
    a_door,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    conditions,
    names,
)

LATER = "2026-11-20T09:00:01Z"
TEN_MINUTES_LATER = "2026-11-20T09:10:00Z"
MESSAGE = "waiting for all admitted workloads to be in PodsReady condition"


def a_blocking_world(*objects: Object, fair_sharing: bool = False, **gates: bool) -> KueueModel:
    config = ManagerConfig(fair_sharing=fair_sharing, gates=gates, wait_for_pods_ready_block_admission=True)
    world = KueueModel(config)
    doors = [a_door(o["metadata"]["name"]) for o in objects if o["kind"] == "ClusterQueue"]
    world.load([a_flavor(), *doors, *objects])
    return world


def two_queues(**spec: Any) -> tuple[Object, Object]:
    return a_queue("a", cohort="all", cpu=("4", "0", None), **spec), a_queue("b", cohort="all", cpu="4", **spec)


@pytest.mark.parametrize("fair_sharing", [False, True], ids=["classical", "fair sharing"])
def test_a_head_waits_until_the_pods_of_the_one_before_are_ready(*, fair_sharing: bool) -> None:
    world = a_blocking_world(
        *two_queues(), a_job("first", "a"), a_job("second", "b", second=1), fair_sharing=fair_sharing
    )
    result = world.cycle(NOW)
    assert names(result) == (["first"], [], ["second"])
    assert (result.waiting[0].reason, result.waiting[0].message, result.waiting[0].in_line) == (
        "Waiting",
        MESSAGE,
        True,
    )
    assert conditions(world, "second")["QuotaReserved"]["message"] == MESSAGE
    assert not world.has_heads()
    assert names(world.cycle(NOW)) == ([], [], [])
    world.pods_ready("default/first", LATER)
    assert world.has_heads()
    assert names(world.cycle(LATER)) == (["second"], [], [])


def test_who_holds_up_the_cycle_may_also_leave() -> None:
    world = a_blocking_world(*two_queues(), a_job("first", "a"), a_job("second", "b", second=1))
    world.cycle(NOW)
    world.evict("default/first", LATER, reason="PodsReadyTimeout", message="too slow")
    assert not world.has_heads()
    world.finish_eviction("default/first", LATER)
    assert names(world.cycle(LATER))[0] == ["second"]
    assert conditions(world, "first")["QuotaReserved"]["status"] == "False"


def test_a_workload_that_ran_before_holds_it_up_too_unless_its_pods_are_ready() -> None:
    running = a_running_job("runs", "a")
    assert names(a_blocking_world(*two_queues(), running, a_job("job", "b")).cycle(NOW)) == ([], [], ["job"])
    running["status"]["conditions"].append(a_condition("PodsReady"))
    assert names(a_blocking_world(*two_queues(), running, a_job("job", "b")).cycle(NOW))[0] == ["job"]


def test_the_cycle_continues_with_the_heads_it_had_before_others() -> None:
    """`first` makes room in line for a workload of higher priority, which is no head of this cycle."""
    world = a_blocking_world(
        *two_queues(), a_job("first", "a", cpu="4"), a_job("second", "b", second=1), a_job("third", "a", second=2)
    )
    world.cycle(NOW)
    world.apply(a_job("urgent", "b", priority=9))
    assert world.pending("b")[0] == ["default/second", "default/urgent"]
    world.pods_ready("default/first", LATER)
    assert names(world.cycle(LATER))[0] == ["second"]
    world.pods_ready("default/second", LATER)
    assert names(world.cycle(LATER)) == (["urgent"], [], ["third"])


def test_preemptions_do_not_wait() -> None:
    """Only who would be admitted waits; victims are told to leave before."""
    takes = {"withinClusterQueue": "LowerPriority"}
    world = a_blocking_world(
        *two_queues(preemption=takes), a_running_job("runs", "a", cpu="4"), a_job("urgent", "a", cpu="4", priority=9)
    )
    assert names(world.cycle(NOW)) == ([], ["runs"], ["urgent"])


def test_what_is_kept_for_a_preemptor_stays_kept_while_the_cycle_is_held_up() -> None:
    takes = {"withinClusterQueue": "LowerPriority"}
    running = a_running_job("runs", "a", cpu="4")
    world = a_blocking_world(
        *two_queues(preemption=takes),
        a_queue("c", cohort="all", cpu="0"),
        running,
        a_job("preemptor", "a", cpu="4", priority=9),
        a_job("borrower", "c", cpu="4", second=1),
        a_job("owner", "b", cpu="4", second=2),
    )
    result = world.cycle(NOW)
    assert names(result) == ([], ["runs"], ["preemptor", "owner"])
    world.finish_eviction("default/runs", LATER)
    assert names(world.cycle(LATER)) == (["owner"], [], ["borrower"])
    assert world.pending("c")[0] == ["default/borrower"]


def test_a_workload_that_is_deleted_meanwhile_is_passed_over() -> None:
    world = a_blocking_world(
        *two_queues(),
        a_queue("c", cpu="1"),
        a_job("first", "a"),
        a_job("second", "b", second=1),
        a_job("third", "c", second=2),
    )
    world.cycle(NOW)
    world.delete("Workload", "second", "default")
    world.pods_ready("default/first", LATER)
    assert names(world.copy().cycle(LATER))[0] == ["third"]


def test_a_copy_is_held_up_as_its_original_is_and_a_restarted_manager_begins_anew() -> None:
    world = a_blocking_world(*two_queues(), a_job("first", "a"), a_job("second", "b", second=1))
    world.cycle(NOW)
    twin, again = world.copy(), world.restarted(world.config)
    assert twin.signature() == world.signature()
    for model in (world, twin, again):
        model.pods_ready("default/first", LATER)
        assert names(model.cycle(LATER))[0] == ["second"]


def test_the_reason_is_granular_where_reasons_are_and_there_is_no_event() -> None:
    world = a_blocking_world(
        *two_queues(), a_job("first", "a"), a_job("second", "b", second=1), UnadmittedWorkloadsObservability=True
    )
    result = world.cycle(NOW)
    assert result.waiting[0].reason == "WaitingForPodsReady"
    assert {event.workload for event in events(result)} == {"default/first"}


def test_predictions_suppose_that_starting_takes_no_time() -> None:
    def world() -> KueueModel:
        return a_blocking_world(*two_queues(), a_job("first", "a"), a_job("second", "b", second=1))

    assert [a.workload for a in settle(world(), NOW).admitted] == ["default/first", "default/second"]
    assert settle(world(), NOW).settled
    simulation = Simulation(world())
    simulation.arrive(a_job("third", "a"), NOW, 1_000_000)
    assert [h.kind for h in simulation.run().happenings] == ["admitted"] * 3


def test_without_the_setting_nobody_waits() -> None:
    world = a_blocking_world(*two_queues(), a_job("first", "a"), a_job("second", "b", second=1))
    assert names(world.restarted(ManagerConfig()).cycle(NOW))[0] == ["first", "second"]


def test_the_condition_says_whether_pods_start_run_or_come_back() -> None:
    """`generatePodsReadyCondition` in `pkg/controller/jobframework/reconciler.go`."""
    world = a_blocking_world(*two_queues(), a_job("job", "a"))
    world.cycle(NOW)

    def told(*, ready: bool) -> tuple[str, str]:
        world.pods_ready("default/job", TEN_MINUTES_LATER, ready=ready)
        condition = conditions(world, "job")["PodsReady"]
        return condition["status"], condition["reason"]

    assert told(ready=False) == ("False", "WaitForStart")
    assert told(ready=True) == ("True", "Started")
    assert told(ready=False) == told(ready=False) == ("False", "WaitForRecovery")
    assert told(ready=True) == told(ready=True) == ("True", "Recovered")
    world.evict("default/job", TEN_MINUTES_LATER, reason="PodsReadyTimeout", message="too slow")
    world.finish_eviction("default/job", TEN_MINUTES_LATER)
    assert conditions(world, "job")["PodsReady"]["reason"] == "WaitForStart"
    assert conditions(world, "job")["Requeued"]["status"] == "False"


def test_nobody_waits_for_a_workload_that_is_deactivated() -> None:
    """`HasActiveQuotaReservation` in `addOrUpdateWorkload`, `pkg/cache/scheduler/cache.go`."""
    job = a_job("first", "a")
    world = a_blocking_world(*two_queues(), job, a_job("second", "b", second=1))
    world.cycle(NOW)
    world.apply(job | {"spec": {**job["spec"], "active": False}})
    assert names(world.cycle(LATER))[0] == ["second"]
