"""Classical preemption: whom, why, in which order, how few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    NOW,
    Object,
    a_cohort,
    a_condition,
    a_job,
    a_queue,
    a_running_job,
    a_world,
)

if TYPE_CHECKING:
    from taskgov.scheduling import KueueModel

OWN = {"withinClusterQueue": "LowerPriority"}


def _victims(world: KueueModel, job: Object, queue: str) -> list[tuple[str, str]]:
    return [(v.workload.removeprefix("default/"), v.reason) for v in world.victims(job, queue)]


def _alone(*running: Object, **preemption: str) -> KueueModel:
    return a_world(a_queue("q", cpu="4", preemption=preemption or OWN), *running)


def test_the_lowest_priority_of_the_own_queue_goes_first() -> None:
    world = _alone(
        a_running_job("low", "q", cpu="2", priority=1),
        a_running_job("mid", "q", cpu="2", priority=2),
    )
    assert _victims(world, a_job("j", "q", cpu="2", priority=3), "q") == [("low", "InClusterQueue")]


def test_equals_are_safe_unless_the_policy_takes_newer_ones() -> None:
    running = a_running_job("same", "q", cpu="4", second=30)
    job = a_job("j", "q", cpu="2", second=10)
    assert _victims(_alone(running), job, "q") == []
    assert _victims(_alone(running, withinClusterQueue="LowerOrNewerEqualPriority"), job, "q") == [
        ("same", "InClusterQueue"),
    ]
    older = a_job("j", "q", cpu="2", second=50)
    assert _victims(_alone(running, withinClusterQueue="LowerOrNewerEqualPriority"), older, "q") == []


def test_of_equal_priority_the_latest_reservation_goes_first_then_the_smaller_uid() -> None:
    world = _alone(
        a_running_job("b", "q", cpu="1", since="2026-11-20T08:30:00Z"),
        a_running_job("c", "q", cpu="1", since="2026-11-20T08:45:00Z"),
        a_running_job("a", "q", cpu="1", since="2026-11-20T08:30:00Z"),
        a_running_job("d", "q", cpu="1", since="2026-11-20T08:00:00Z"),
    )
    assert world.candidates("q") == ["default/c", "default/a", "default/b", "default/d"]


def test_victims_the_preemptor_can_do_without_are_given_back() -> None:
    world = _alone(
        a_running_job("small", "q", cpu="1", priority=1),
        a_running_job("big", "q", cpu="3", priority=2),
    )
    assert _victims(world, a_job("j", "q", cpu="3", priority=9), "q") == [("big", "InClusterQueue")]


def test_without_enough_candidates_nobody_is_preempted() -> None:
    world = _alone(a_running_job("low", "q", cpu="2"), a_running_job("high", "q", cpu="2", priority=9))
    assert _victims(world, a_job("j", "q", cpu="3", priority=5), "q") == []


def _pool(*running: Object, **spec: Any) -> KueueModel:
    rules = {"preemption": HYPERPOD_PREEMPTION} | spec
    return a_world(
        a_queue("a", cohort="pool", cpu="4", **rules),
        a_queue("b", cohort="pool", cpu="4", **rules),
        a_queue("c", cohort="pool", cpu="0", **rules),
        *running,
    )


def test_lent_quota_is_reclaimed_whatever_the_priority() -> None:
    world = _pool(a_running_job("guest", "b", cpu="8", priority=100))
    assert _victims(world, a_job("j", "a", cpu="4"), "a") == [("guest", "InCohortReclamation")]


def test_who_is_within_its_nominal_quota_is_never_a_victim_of_another_team() -> None:
    world = _pool(
        a_running_job("home", "b", cpu="4"),
        a_running_job("mine", "a", cpu="4", priority=50),
    )
    assert _victims(world, a_job("j", "a", cpu="4", priority=9), "a") == []


def test_only_as_much_is_taken_from_a_queue_as_it_borrows() -> None:
    world = _pool(*(a_running_job(f"g{i}", "b", cpu="2", priority=i) for i in range(4)))
    assert _victims(world, a_job("j", "a", cpu="4", priority=9), "a") == [
        ("g0", "InCohortReclamation"),
        ("g1", "InCohortReclamation"),
    ]


def test_a_borrower_may_take_lower_priorities_that_borrow_too() -> None:
    world = _pool(a_running_job("guest", "c", cpu="8"))
    assert _victims(world, a_job("j", "a", cpu="6", priority=9), "a") == [("guest", "InCohortReclaimWhileBorrowing")]
    assert _victims(world, a_job("j", "a", cpu="6"), "a") == []


def test_a_threshold_shields_priorities_above_it_from_borrowers() -> None:
    rules = HYPERPOD_PREEMPTION | {"borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 5}}
    world = _pool(a_running_job("guest", "c", cpu="8", priority=6), preemption=rules)
    assert _victims(world, a_job("j", "a", cpu="6", priority=9), "a") == []


def test_without_borrow_within_cohort_a_borrower_takes_nobody_of_others() -> None:
    world = _pool(
        a_running_job("guest", "c", cpu="8"),
        preemption={"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"},
    )
    assert _victims(world, a_job("j", "a", cpu="6", priority=9), "a") == []
    assert _victims(world, a_job("j", "a", cpu="4", priority=9), "a") == [("guest", "InCohortReclamation")]


def test_those_already_evicted_are_counted_first() -> None:
    leaving = a_running_job("leaving", "b", cpu="4", priority=50)
    leaving["status"]["conditions"].append(a_condition("Evicted"))
    world = _pool(leaving, a_running_job("guest", "b", cpu="4"))
    assert _victims(world, a_job("j", "a", cpu="4"), "a") == [("leaving", "InCohortReclamation")]


def test_the_message_names_both_paths_and_why() -> None:
    world = a_world(
        a_cohort("left", "root"),
        a_cohort("right", "root"),
        a_queue("a", cohort="left", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="right", cpu="0"),
        a_running_job("guest", "b", cpu="4", since=NOW),
    )
    (victim,) = world.victims(a_job("j", "a", cpu="4"), "a")
    assert victim.message == (
        "Preempted to accommodate a workload (UID: uid-j, JobUID: job-j) due to reclamation within the cohort; "
        "preemptor path: /root/left/a; preemptee path: /root/right/b"
    )


def test_a_cohort_within_its_quota_keeps_what_its_queues_lend_one_another() -> None:
    world = a_world(
        a_cohort("left", "root"),
        a_cohort("right", "root"),
        a_queue("a", cohort="left", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="right", cpu="0"),
        a_queue("c", cohort="right", cpu="4"),
        a_running_job("guest", "b", cpu="4"),
        a_running_job("mine", "a", cpu="4", priority=50),
    )
    assert _victims(world, a_job("j", "a", cpu="4", priority=9), "a") == []


def test_asking_changes_nothing() -> None:
    world = _pool(a_running_job("guest", "b", cpu="8"))
    before = world.quota("b").usage, world.quota("pool", cohort=True).usage
    world.victims(a_job("j", "a", cpu="4"), "a")
    world.victims(a_job("j", "a", cpu="99"), "a")
    assert (world.quota("b").usage, world.quota("pool", cohort=True).usage) == before
