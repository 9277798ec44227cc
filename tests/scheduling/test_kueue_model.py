"""A world over its life: objects come, change and go; workloads run, leave and return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskgov import scheduling
from taskgov.scheduling import KueueModel, ManagerConfig, RequeueBackoff
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    NOW,
    Object,
    a_cohort,
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

if TYPE_CHECKING:
    from collections.abc import Callable

LATER = "2026-11-20T10:00:00Z"


def test_objects_may_come_in_any_order() -> None:
    objects = [a_job("j", "q"), a_door("q"), a_queue("q", cpu="1"), a_flavor()]
    world = KueueModel()
    for obj in objects:
        world.apply(obj)
    assert names(world.cycle(NOW))[0] == ["j"]


def test_a_dump_of_lists_is_loaded_as_it_is() -> None:
    world = KueueModel()
    world.load([{"kind": "List", "items": [a_job("j", "q"), a_door("q")]}, a_queue("q", cpu="1"), a_flavor()])
    assert names(world.cycle(NOW))[0] == ["j"]


def test_an_object_kueue_does_not_schedule_by_is_refused() -> None:
    with pytest.raises(ValueError, match="Deployment"):
        KueueModel().apply({"kind": "Deployment", "metadata": {"name": "d"}})
    with pytest.raises(KeyError):
        KueueModel().delete("Deployment", "d")


def test_a_raised_quota_gives_inadmissible_workloads_another_look() -> None:
    world = a_world(a_queue("q", cpu="1"), a_job("j", "q", cpu="2"))
    world.cycle(NOW)
    assert world.pending("q") == ([], ["default/j"])
    world.apply(a_queue("q", cpu="2"))
    assert world.notified == {"ClusterQueue/q"}
    assert world.requeue_inadmissible() == 1
    assert names(world.cycle(NOW))[0] == ["j"]


def test_a_neighbour_with_new_quota_helps_the_whole_tree() -> None:
    world = a_world(a_cohort("left", "root"), a_queue("a", cohort="left", cpu="1"), a_job("j", "a", cpu="2"))
    world.cycle(NOW)
    world.apply(a_queue("b", cohort="root", cpu="1"))
    world.apply(a_cohort("left", "root", fairSharing={"weight": "2"}))
    assert world.notified == {"Cohort/root"}
    world.requeue_inadmissible()
    assert names(world.cycle(NOW))[0] == ["j"]


MANAGER = "pkg/cache/queue/manager.go"


@pytest.mark.parametrize(
    ("happens", "looks"),
    [
        (lambda world: world.finish("default/done", NOW), True),
        (lambda world: world.finish("default/small", NOW), True),
        (lambda world: world.delete("Workload", "small", "default"), True),
        (lambda world: world.apply(a_queue("other", cohort="c", cpu="3")), True),
        (lambda world: world.apply(a_queue("other", cohort="elsewhere", cpu="2")), False),
        (lambda world: world.delete("ClusterQueue", "other"), False),
    ],
    ids=[
        f"QueueAssociatedInadmissibleWorkloadsAfter ({MANAGER}): one that ran is done",
        f"QueueAssociatedInadmissibleWorkloadsAfter ({MANAGER}): one that waited is done",
        f"QueueAssociatedInadmissibleWorkloadsAfter ({MANAGER}): one that waited is deleted",
        f"UpdateClusterQueue ({MANAGER}): a neighbour has another quota",
        f"UpdateClusterQueue ({MANAGER}): a neighbour has gone to another cohort; only that is notified",
        f"DeleteClusterQueue ({MANAGER}): a neighbour is gone; nobody is notified",
    ],
)
def test_who_waits_gets_another_look_when_kueue_says_so(happens: Callable[[KueueModel], None], looks: bool) -> None:
    queues = a_queue("q", cohort="c", cpu="1"), a_queue("other", cohort="c", cpu="2")
    jobs = a_job("big", "q", cpu="9"), a_job("small", "other", cpu="4"), a_running_job("done", "other", cpu="1")
    world = a_world(*queues, *jobs)
    world.cycle(NOW)
    world.requeue_inadmissible()
    world.cycle(NOW)
    happens(world)
    world.requeue_inadmissible()
    assert (world.pending("q")[0] == ["default/big"]) is looks


def test_a_queue_that_moves_to_another_cohort_takes_its_usage_along() -> None:
    world = a_world(
        a_queue("a", cohort="old", cpu="4"),
        a_queue("b", cohort="new", cpu="1"),
        a_running_job("r", "a", cpu="3"),
    )
    world.apply(a_queue("a", cohort="new", cpu="4"))
    assert world.quota("b").available["gpu/cpu"] == 2_000
    assert world.trees == {"Cohort/new"}


def test_finishing_frees_quota_and_the_workload_stays_readable() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"), a_job("j", "q"))
    world.finish("default/r", LATER)
    assert conditions(world, "r")["Finished"] == {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "Job finished successfully",
        "lastTransitionTime": LATER,
    }
    assert names(world.cycle(LATER))[0] == ["j"]
    with pytest.raises(ValueError, match="holds no quota"):
        world.evict("default/r", LATER, reason="Test", message="")


def test_deleting_a_running_workload_frees_quota_and_deleting_a_pending_one_its_place() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"), a_job("j", "q"), a_job("k", "q", second=1))
    world.delete("Workload", "r", "default")
    world.delete("Workload", "j", "default")
    assert names(world.cycle(NOW))[0] == ["k"]
    assert list(world.workloads()) == ["default/k"]


def test_a_preempted_workload_comes_back_as_old_as_it_was() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="0"),
        a_running_job("guest", "b", cpu="4", second=1),
        a_job("younger", "b", cpu="4", second=2),
        a_job("owner", "a", cpu="4"),
    )
    world.cycle(NOW)
    world.finish_eviction("default/guest", LATER)
    found = conditions(world, "guest")
    assert (found["Evicted"]["status"], found["Evicted"]["reason"]) == ("True", "Preempted")
    assert (found["Preempted"]["status"], found["Preempted"]["reason"]) == ("True", "InCohortReclamation")
    assert (found["Requeued"]["status"], found["Requeued"]["reason"]) == ("True", "Preempted")
    assert (found["QuotaReserved"]["status"], found["QuotaReserved"]["reason"]) == ("False", "Pending")
    assert found["QuotaReserved"]["message"] == found["Evicted"]["message"]
    assert (found["Admitted"]["status"], found["Admitted"]["reason"]) == ("False", "NoReservation")
    assert world.admission("default/guest") is None
    world.cycle(LATER)
    world.finish("default/owner", LATER)
    world.requeue_inadmissible()
    assert names(world.cycle(LATER))[0] == ["guest"]
    again = conditions(world, "guest")
    assert (again["Evicted"]["status"], again["Evicted"]["reason"]) == ("False", "QuotaReserved")
    assert again["Preempted"]["message"].startswith("Previously: Preempted to accommodate")


def test_an_eviction_is_finished_only_after_it_was_ordered() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"))
    with pytest.raises(ValueError, match="is not evicted"):
        world.finish_eviction("default/r", NOW)


def _not_ready(world: KueueModel, now: str) -> None:
    world.evict("default/r", now, reason="PodsReadyTimeout", message="Exceeded the PodsReady timeout default/r")
    world.finish_eviction("default/r", now)


def test_pods_that_are_not_ready_in_time_cost_a_pause_that_doubles() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"))
    _not_ready(world, "2026-11-20T09:00:00Z")
    assert world.workload("default/r")["status"]["requeueState"] == {"count": 1, "requeueAt": "2026-11-20T09:01:00Z"}
    assert conditions(world, "r")["Requeued"]["status"] == "False"
    assert not world.has_heads()
    assert names(world.cycle("2026-11-20T09:00:59Z"))[0] == []
    assert names(world.cycle("2026-11-20T09:01:00Z"))[0] == ["r"]
    assert conditions(world, "r")["Requeued"]["reason"] == "BackoffFinished"
    _not_ready(world, "2026-11-20T09:02:00Z")
    assert world.workload("default/r")["status"]["requeueState"]["requeueAt"] == "2026-11-20T09:04:00Z"


def test_after_the_last_allowed_pause_a_workload_is_deactivated() -> None:
    world = KueueModel(ManagerConfig(backoff=RequeueBackoff(limit=0)))
    world.load([a_flavor(), a_queue("q", cpu="1"), a_door("q"), a_running_job("r", "q")])
    _not_ready(world, NOW)
    assert world.workload("default/r")["spec"]["active"] is False
    assert names(world.cycle(LATER))[0] == []


def test_a_pause_in_the_input_is_kept() -> None:
    job = a_job("r", "q")
    job["status"] = {
        "requeueState": {"count": 3, "requeueAt": "2026-11-20T09:30:00Z"},
        "conditions": [a_condition("Requeued", status="False")],
    }
    world = a_world(a_queue("q", cpu="1"), job)
    assert names(world.cycle(NOW))[0] == []
    assert names(world.cycle(LATER))[0] == ["r"]


def test_pauses_so_far_in_the_input_are_counted_on() -> None:
    runs = a_running_job("r", "q")
    runs["status"]["requeueState"] = {"count": 3}
    world = KueueModel(ManagerConfig(backoff=RequeueBackoff(limit=10)))
    world.load([a_flavor(), a_queue("q", cpu="1"), a_door("q"), runs])
    _not_ready(world, NOW)
    assert world.workload("default/r")["status"]["requeueState"]["count"] == 4


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_stopped_queue_admits_nobody(policy: str) -> None:
    world = a_world(a_queue("q", cpu="4", stopPolicy=policy), a_running_job("r", "q"), a_job("j", "q"))
    assert not world.has_heads()
    assert world.evict_stopped(NOW) == (["default/r"] if policy == "HoldAndDrain" else [])
    world.apply(a_queue("q", cpu="4"))
    assert names(world.cycle(NOW))[0] == ["j"]


def test_a_stopped_door_keeps_its_workloads_out_and_may_drain() -> None:
    world = a_world(a_queue("q", cpu="4"), a_running_job("r", "q"), a_job("j", "q"))
    stopped = a_door("q")
    stopped["spec"]["stopPolicy"] = "HoldAndDrain"
    world.apply(stopped)
    assert (world.has_heads(), world.evict_stopped(NOW)) == (False, ["default/r"])
    assert conditions(world, "r")["Evicted"]["reason"] == "LocalQueueStopped"
    assert world.evict_stopped(NOW) == []
    world.apply(a_door("q"))
    assert names(world.cycle(NOW))[0] == ["j"]


def test_who_left_a_stopped_queue_or_door_comes_back_when_it_runs_again_and_says_so() -> None:
    """`isDisabledRequeuedByClusterQueueStopped` and its like in `pkg/controller/core/workload_controller.go`."""
    drained = a_door("q")
    drained["spec"]["stopPolicy"] = "HoldAndDrain"
    cases = (
        ("ClusterQueue", a_queue("q", cpu="4", stopPolicy="HoldAndDrain"), a_queue("q", cpu="4")),
        ("LocalQueue", drained, a_door("q")),
    )
    for kind, stopped, runs in cases:
        world = a_world(a_queue("q", cpu="4"), a_running_job("r", "q"))
        world.apply(stopped)
        assert world.evict_stopped(NOW) == ["default/r"]
        world.finish_eviction("default/r", NOW)
        read = KueueModel()
        read.load([a_flavor(), runs if kind == "ClusterQueue" else a_queue("q", cpu="4"), a_door("q")])
        read.apply(world.workload("default/r"))
        requeued = conditions(world, "r")["Requeued"]
        assert (requeued["status"], requeued["reason"]) == ("False", f"{kind}Stopped")
        world.apply(runs)
        for other in (world, read):
            assert names(other.cycle(NOW))[0] == ["r"]
            requeued = conditions(other, "r")["Requeued"]
            told = f"The {kind} was restarted after being stopped"
            assert (requeued["status"], requeued["reason"], requeued["message"]) == ("True", f"{kind}Restarted", told)


def test_reclaimable_pods_give_another_look_even_where_the_workload_holds_no_less() -> None:
    """`Update` in `pkg/controller/core/workload_controller.go`: whenever they change of one that is admitted."""
    running = a_job("r", "q", count=3, minCount=1)
    world = a_world(a_queue("q", cpu="1"), running)
    assert names(world.cycle(NOW))[0] == ["r"]  # with one pod of three
    world.apply(a_job("j", "q"))
    assert names(world.cycle(NOW))[2] == ["j"]
    assert not world.has_notified
    world.apply({**running, "status": {"reclaimablePods": [{"name": "main", "count": 1}]}})
    assert (world.quota("q").usage, world.has_notified) == ({"gpu/cpu": 1000}, True)
    assert world.requeue_inadmissible() == 1


def test_an_inactive_workload_is_not_queued_and_leaves_when_it_runs() -> None:
    world = a_world(a_queue("q", cpu="4"), a_job("j", "q"), a_running_job("r", "q"))
    for job in (a_job("j", "q"), a_running_job("r", "q")):
        job["spec"]["active"] = False
        world.apply(job)
    assert (world.has_heads(), world.evict_stopped(NOW)) == (False, ["default/r"])
    assert conditions(world, "r")["Evicted"]["reason"] == "Deactivated"


def test_a_queue_with_a_missing_flavor_is_inactive_until_the_flavor_comes() -> None:
    world = KueueModel()
    world.load([a_queue("q", cpu="4"), a_door("q"), a_job("j", "q")])
    assert not world.has_heads()
    active = world.cluster_queue("q")["status"]["conditions"][0]
    assert (active["status"], active["reason"]) == ("False", "FlavorNotFound")
    world.apply(a_flavor())
    assert names(world.cycle(NOW))[0] == ["j"]
    world.delete("ResourceFlavor", "gpu")
    assert world.cluster_queue("q")["status"]["conditions"][0]["reason"] == "FlavorNotFound"


def test_cohorts_in_a_circle_stop_their_queues() -> None:
    world = a_world(a_cohort("a", "b"), a_cohort("b", "a"), a_queue("q", cohort="a", cpu="1"), a_job("j", "q"))
    assert not world.has_heads()
    assert world.cluster_queue("q")["status"]["conditions"][0]["reason"] == "CohortCycleDetected"
    world.delete("Cohort", "b")
    assert names(world.cycle(NOW))[0] == ["j"]


def test_a_deleted_queue_gives_its_workloads_back_when_it_returns() -> None:
    world = a_world(a_queue("q", cpu="2"), a_running_job("r", "q"), a_job("j", "q"))
    world.delete("ClusterQueue", "q")
    assert not world.has_heads()
    world.apply(a_queue("q", cpu="2"))
    assert world.quota("q").usage == {"gpu/cpu": 1_000}
    assert names(world.cycle(NOW))[0] == ["j"]
    world.delete("LocalQueue", "q", "default")
    world.delete("ClusterQueue", "q")
    world.finish("default/r", NOW)
    world.delete("Workload", "j", "default")


def test_a_changed_priority_class_reorders_its_workloads() -> None:
    def of_class(job: Object) -> Object:
        job["spec"]["priorityClassRef"] = {"kind": "WorkloadPriorityClass", "name": "high"}
        return job

    world = a_world(
        {"kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": -1},
        a_queue("q", cpu="1"),
        a_job("plain", "q"),
        of_class(a_job("classy", "q", second=5)),
    )
    world.apply({"kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 10})
    assert names(world.cycle(NOW))[0] == ["classy"]
    assert world.workload("default/classy")["spec"]["priority"] == 10
    world.delete("WorkloadPriorityClass", "high")


def test_reclaimable_pods_free_their_quota_while_the_rest_runs() -> None:
    running = a_running_job("r", "q", cpu="1", count=4)
    running["status"]["admission"]["podSetAssignments"][0] |= {"count": 4, "resourceUsage": {"cpu": "4"}}
    world = a_world(a_queue("q", cpu="4"), running, a_job("j", "q", cpu="3"))
    world.cycle(NOW)
    running = {**running, "status": {**running["status"], "reclaimablePods": [{"name": "main", "count": 3}]}}
    world.apply(running)
    assert world.quota("q").usage == {"gpu/cpu": 1_000}
    world.requeue_inadmissible()
    assert names(world.cycle(NOW))[0] == ["j"]


def test_an_update_without_consequence_disturbs_nobody() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("r", "q"), a_job("j", "q"))
    world.cycle(NOW)
    world.apply(a_running_job("r", "q", priority=7))
    world.apply(a_queue("q", cpu="1"))
    world.apply(a_flavor())
    assert not world.has_notified
    assert world.pending("q") == ([], ["default/j"])


def test_a_copy_goes_its_own_way() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="0"),
        a_running_job("guest", "b", cpu="4"),
        a_job("owner", "a", cpu="4"),
        a_job("waiting", "b", cpu="9"),
    )
    world.cycle(NOW)
    twin = world.copy()
    assert twin.signature() == world.signature()
    twin.finish_eviction("default/guest", NOW)
    twin.requeue_inadmissible()
    assert names(twin.cycle(NOW))[0] == ["owner"]
    assert world.admission("default/owner") is None
    assert world.quota("b").usage == {"gpu/cpu": 4_000}
    assert names(world.cycle(NOW)) == ([], [], ["owner"])


def test_every_public_name_is_found_when_it_is_asked_for_and_no_other() -> None:
    assert [name for name in scheduling.__all__ if getattr(scheduling, name, None) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'Wrld'"):
        scheduling.Wrld  # noqa: B018 asking is the test


def test_what_one_cycle_reserves_may_have_two_moments_and_the_later_one_is_reclaimed_first() -> None:
    later = "2026-11-20T09:00:01Z"

    def reclaimed(reserved_at: Callable[[str], str | None]) -> list[str]:
        reclaims = {"reclaimWithinCohort": "Any"}
        amounts = {"a": "0", "b": "0", "c": "2"}
        queues = [a_queue(name, cohort="all", cpu=cpu, preemption=reclaims) for name, cpu in amounts.items()]
        world = a_world(a_cohort("all"), *queues, a_job("first", "a"), a_job("second", "b"))
        assert names(world.cycle(NOW, reserved_at=reserved_at))[0] == ["first", "second"]
        world.apply(a_job("own", "c", second=30))
        return names(world.cycle(LATER))[1]

    assert reclaimed({"default/first": later}.get) == ["first"]
    assert reclaimed({"default/second": later}.get) == ["second"]
