"""A world with a clock."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

from taskgov.scheduling import KueueModel, ManagerConfig, PodSet, Workload, instant
from taskgov_explain.simulation import Simulation
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    NOW,
    a_door,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    a_world,
)

if TYPE_CHECKING:
    from taskgov_explain.timeline import Timeline

SECOND = 1_000_000


def _job(name: str, queue: str, cpu: int, *, priority: int = 0, created: int = 0) -> Workload:
    pod_sets = (PodSet("main", 1, (("cpu", cpu * 1000),)),)
    return Workload("default", name, queue, pod_sets, priority=priority, created=created, uid=name)


def _told(timeline: Timeline) -> list[tuple[float, str, str]]:
    return [(h.at / SECOND, h.kind, h.workload.removeprefix("default/")) for h in timeline.happenings]


def test_a_workload_runs_for_its_time_and_makes_room_for_the_next() -> None:
    simulation = Simulation(a_world(a_queue("q", cpu="1")), requeue_batch=0)
    simulation.arrive(_job("one", "q", 1), 0, 10 * SECOND)
    simulation.arrive(_job("two", "q", 1, created=1), SECOND, 10 * SECOND)
    timeline = simulation.run()
    assert _told(timeline) == [(0.0, "admitted", "one"), (10.0, "admitted", "two")]
    assert (timeline.end, timeline.unfinished, timeline.loop) == (20 * SECOND, (), None)


def test_capacity_is_noticed_once_a_second_as_in_production() -> None:
    simulation = Simulation(a_world(a_queue("q", cpu="2")))
    simulation.arrive(_job("long", "q", 1), 0, 30 * SECOND)
    simulation.arrive(_job("short", "q", 1, created=1), 0, 10 * SECOND)
    simulation.arrive(_job("next", "q", 2, created=2), 0, SECOND)
    assert _told(simulation.run())[-1] == (31.0, "admitted", "next")


def test_a_preempted_workload_starts_again_from_the_beginning() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="1", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="0"),
    )
    simulation = Simulation(world, requeue_batch=0)
    simulation.arrive(_job("guest", "b", 1), 0, 10 * SECOND)
    simulation.arrive(_job("owner", "a", 1), 6 * SECOND, 3 * SECOND)
    timeline = simulation.run()
    assert _told(timeline) == [
        (0.0, "admitted", "guest"),
        (6.0, "preempted", "guest"),
        (6.0, "admitted", "owner"),
        (9.0, "admitted", "guest"),
    ]
    assert timeline.end == 19 * SECOND


def test_quota_changes_happen_at_their_time_and_nobody_is_evicted_by_a_smaller_quota() -> None:
    simulation = Simulation(a_world(a_queue("q", cpu="1")), requeue_batch=0)
    simulation.arrive(_job("big", "q", 2), 0, 10 * SECOND)
    simulation.change(a_queue("q", cpu="2"), 5 * SECOND)
    simulation.change(a_queue("q", cpu="0"), 6 * SECOND)
    timeline = simulation.run()
    assert _told(timeline) == [(5.0, "admitted", "big")]
    assert timeline.end == 15 * SECOND


def test_what_runs_already_and_what_is_removed_take_part() -> None:
    world = a_world(a_queue("q", cpu="1"), a_running_job("old", "q"))
    simulation = Simulation(world, requeue_batch=0, keep_finished=False)
    simulation.running("default/old", 4 * SECOND, 0)
    simulation.arrive(a_job("young", "q"), 0, SECOND)
    simulation.arrive(_job("gone", "ghost", 1), 0, SECOND)
    simulation.remove("Workload", "gone", 2 * SECOND, "default")
    timeline = simulation.run()
    assert _told(timeline) == [(4.0, "admitted", "young")]
    assert timeline.unfinished == ("default/gone",)
    assert list(world.workloads()) == []


def test_an_eviction_from_outside_costs_a_pause() -> None:
    simulation = Simulation(a_world(a_queue("q", cpu="1")), requeue_batch=0)
    simulation.arrive(_job("slow", "q", 1), 0, 100 * SECOND)
    simulation.evict("default/slow", 30 * SECOND, reason="PodsReadyTimeout", message="not ready")
    simulation.evict("default/nobody", 30 * SECOND, reason="PodsReadyTimeout", message="not ready")
    timeline = simulation.run()
    assert _told(timeline) == [(0.0, "admitted", "slow"), (30.0, "evicted", "slow"), (90.0, "admitted", "slow")]
    assert timeline.end == 190 * SECOND


def test_time_can_be_stopped_and_started() -> None:
    simulation = Simulation(a_world(a_queue("q", cpu="1")), requeue_batch=0)
    simulation.arrive(_job("one", "q", 1), 0, 10 * SECOND)
    simulation.arrive(_job("two", "q", 1, created=1), 0, 10 * SECOND)
    assert simulation.run(until=5 * SECOND).unfinished == ("default/one", "default/two")
    assert simulation.run().end == 20 * SECOND


def test_the_same_input_gives_the_same_timeline() -> None:
    def once() -> Timeline:
        simulation = Simulation(_looping_world(), requeue_batch=0)
        for i in range(6):
            simulation.arrive(_job(f"w{i}", "ab"[i % 2], 1 + i % 3, created=i), i * SECOND, 4 * SECOND)
        return simulation.run(until=60 * SECOND)

    assert once() == once()


def _looping_world() -> KueueModel:
    """Two queues that may each preempt the other's equals: beyond both quotas they push one another out forever.

    Under fair sharing with the second strategy alone, moving one big workload turns the order of the shares round.
    """
    rules = {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}
    world = KueueModel(ManagerConfig(fair_sharing=True))
    world.load(
        [
            a_flavor(),
            a_queue("a", cohort="pool", cpu="0", preemption=rules),
            a_queue("b", cohort="pool", cpu="0", preemption=rules),
            a_queue("lender", cohort="pool", cpu="4"),
            a_door("a"),
            a_door("b"),
        ],
    )
    return world


def test_a_workload_runs_once_its_checks_agree_and_comes_back_when_one_says_so() -> None:
    queue = a_queue("q", cpu="1", admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})
    simulation = Simulation(a_world(queue))
    simulation.arrive(a_job("j", "q"), at=NOW, run_time=10 * SECOND)
    simulation.answer("default/j", "c", "Retry", at="2026-11-20T09:00:10Z")
    simulation.answer("default/j", "c", "Ready", at="2026-11-20T09:00:30Z")
    timeline = simulation.run()
    assert [h.kind for h in timeline.happenings] == ["evicted", "admitted"]
    assert (timeline.end, timeline.unfinished) == (instant("2026-11-20T09:00:40Z"), ())


def test_a_workload_whose_check_never_answers_does_not_finish() -> None:
    queue = a_queue("q", cpu="1", admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})
    simulation = Simulation(a_world(queue))
    simulation.arrive(a_job("j", "q"), at=NOW, run_time=10 * SECOND)
    assert simulation.run().unfinished == ("default/j",)
    assert simulation.world.admission("default/j") is not None


def test_a_slice_ends_the_run_of_the_one_before_it() -> None:
    simulation = Simulation(a_world(a_queue("q", cpu="3")))
    simulation.arrive(a_job("old", "q", count=2), at=NOW, run_time=60 * SECOND)
    new = a_job("new", "q", count=3)
    new["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "default/old"}
    simulation.arrive(new, at="2026-11-20T09:00:10Z", run_time=60 * SECOND)
    timeline = simulation.run()
    assert (timeline.end, timeline.unfinished) == (instant("2026-11-20T09:01:10Z"), ())


def test_a_search_that_goes_round_for_ever_lets_time_pass() -> None:
    """Of two pod sets one has its flavor while the other looks on: each cycle they change places, and nothing fits."""
    quotas = {"one": {"cpu": "4"}, "two": {"cpu": "2"}}
    on = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
    preemption = {"withinClusterQueue": "LowerPriority"}
    queue = a_queue("q", flavors=quotas, flavorFungibility=on, preemption=preemption)
    simulation = Simulation(a_world(a_flavor("one"), a_flavor("two"), queue))
    simulation.arrive(_job("long", "q", 3), 0, 20 * SECOND)
    simulation.arrive(_job("short", "q", 2, created=1), 0, 10 * SECOND)
    both = tuple(PodSet(name, 1, (("cpu", 1000),)) for name in ("left", "right"))
    simulation.arrive(Workload("default", "both", "q", both, created=2, uid="both"), SECOND, 10 * SECOND)
    timeline = simulation.run()
    assert _told(timeline) == [(0.0, "admitted", "long"), (0.0, "admitted", "short"), (10.0, "admitted", "both")]
    assert timeline.idle_cycles >= 2


def test_a_planned_arrival_takes_little_memory() -> None:
    """A trace is planned as a whole: tens of thousands of arrivals wait in the agenda."""
    simulation, number = Simulation(KueueModel()), 1_000
    jobs = [_job(f"job-{n}", "q", 1) for n in range(number)]
    tracemalloc.start()
    for n, job in enumerate(jobs):
        simulation.arrive(job, n * SECOND, SECOND)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken <= 500 * number
