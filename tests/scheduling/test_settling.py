"""What it comes to when time stands still."""

from __future__ import annotations

from taskgov.scheduling import Budget, settle
from taskgov_explain.simulation import Simulation
from tests.scheduling.builders import HYPERPOD_PREEMPTION, NOW, a_job, a_queue, a_running_job, a_world
from tests.scheduling.looping_worlds import equal_shares, mixed_sizes, weight_zero

SECOND = 1_000_000


def test_everything_that_fits_is_admitted_and_the_rest_said_to_wait() -> None:
    world = a_world(a_queue("q", cpu="2"), *(a_job(f"j{i}", "q", second=i) for i in range(4)))
    settlement = settle(world, NOW)
    assert settlement.settled
    assert [a.workload for a in settlement.admitted] == ["default/j0", "default/j1"]
    assert world.pending("q") == ([], ["default/j2", "default/j3"])


def test_a_blocked_strict_queue_is_settled_too() -> None:
    world = a_world(a_queue("q", cpu="2", queueingStrategy="StrictFIFO"), a_job("big", "q", cpu="3"))
    assert settle(world, NOW).settled


def test_reclaiming_ends_with_everybody_at_home() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        *(a_running_job(f"g{i}", "b") for i in range(4)),
        *(a_job(f"o{i}", "a", second=i) for i in range(3)),
    )
    settlement = settle(world, NOW)
    assert settlement.settled
    assert sorted(a.workload for a in settlement.admitted) == ["default/o0", "default/o1"]
    assert len(settlement.preempted) == 2
    assert settlement[0] is settlement.cycles[0]


def test_who_is_in_line_is_looked_at_before_who_waits_for_another_look() -> None:
    """As Kueue does, which reconsiders inadmissible workloads only once a second."""
    world = a_world(
        a_queue("a", cohort="pool", cpu="0"),
        a_queue("b", cohort="pool", cpu="0"),
        a_queue("lender", cohort="pool", cpu="1"),
        a_running_job("running", "lender"),
        a_job("waiting", "a", second=1),
    )
    settle(world, NOW)
    world.finish("default/running", NOW)
    world.load([a_job("new", "b", second=2)])
    assert [a.workload for a in settle(world, NOW).admitted] == ["default/new"]


def test_workloads_that_preempt_one_another_for_ever_are_named() -> None:
    settlement = settle(weight_zero(), NOW)
    assert not settlement.settled
    assert settlement.loop == ("default/home", "default/late")
    assert len(settlement.cycles) < 40


def test_priorities_and_sizes_alone_can_go_round_without_fair_sharing() -> None:
    assert settle(mixed_sizes(), NOW).loop == ("default/big", "default/own", "default/rich")


def test_jobs_of_one_size_can_go_round_where_another_resource_makes_shares_equal() -> None:
    assert settle(equal_shares(), NOW).loop == ("default/older",)


def test_a_simulation_stops_at_such_a_loop_and_says_so() -> None:
    simulation = Simulation(weight_zero(), requeue_batch=0)
    for name in ("first", "home", "late"):
        simulation.running(f"default/{name}", 10**6 * SECOND, 0)
    simulation.arrive(a_job("tick", "b", cpu="9"), SECOND, SECOND)
    timeline = simulation.run()
    assert timeline.loop is not None
    assert timeline.loop.workloads == ("default/home", "default/late")


def test_too_few_cycles_are_neither_settled_nor_a_loop() -> None:
    settlement = settle(weight_zero(), NOW, max_cycles=2)
    assert (settlement.settled, settlement.loop, len(settlement.cycles)) == (False, (), 2)


def test_a_budget_counts_the_heads_that_cycles_look_at() -> None:
    world = a_world(a_queue("a", cpu="2"), a_queue("b", cpu="2"))
    world.load([a_job("one", "a", cpu="1"), a_job("two", "a", cpu="3"), a_job("three", "b", cpu="1")])
    budget = Budget(10)
    settlement = settle(world, NOW, budget=budget)
    assert settlement.settled
    assert budget.steps - budget.left == 3
    assert [len(cycle.admitted) + len(cycle.waiting) for cycle in settlement.cycles] == [2, 1]


def test_a_budget_that_is_spent_ends_a_settlement_and_what_is_left_continues_elsewhere() -> None:
    world = a_world(a_queue("a", cpu="9"))
    world.load(a_job(f"job-{number}", "a", cpu="1") for number in range(9))
    budget = Budget(4)
    first = settle(world, NOW, budget=budget)
    assert (first.settled, first.loop, len(first.admitted), budget.is_spent) == (False, (), 4, True)
    assert settle(world, NOW, budget=budget).cycles == ()
    assert len(settle(world, NOW, budget=Budget(100)).admitted) == 5


def test_a_budget_that_is_just_enough_is_enough() -> None:
    world = a_world(a_queue("a", cpu="9"))
    world.load(a_job(f"job-{number}", "a", cpu="1") for number in range(3))
    budget = Budget(3)
    assert (settle(world, NOW, budget=budget).settled, budget.left) == (True, 0)
    assert settle(world, NOW, budget=budget).settled


def test_a_loop_within_a_budget_is_named() -> None:
    assert settle(weight_zero(), NOW, budget=Budget(1000)).loop == ("default/home", "default/late")


def test_more_shapes_than_any_limit_of_cycles_settle_within_a_budget() -> None:
    world = a_world(a_queue("a", cpu="1"))
    world.load(a_job(f"job-{number:04}", "a", cpu=str(number + 2)) for number in range(1200))
    budget = Budget(2000)
    settlement = settle(world, NOW, budget=budget)
    assert settlement.settled
    assert budget.steps - budget.left == len(settlement.cycles) == 1200
