"""What would end a preemption loop: proposed only where the model comes to rest with it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from taskgov.scheduling import Budget, KueueModel, loops, settle
from taskgov.scheduling.loops import (
    OutOfStepsError,
    PreemptionLoop,
    QueueSetting,
    Remedy,
    Setting,
    loop_of,
    set_queues,
)
from tests.scheduling.builders import HYPERPOD_PREEMPTION, NOW, a_job, a_queue, a_world
from tests.scheduling.looping_worlds import mixed_sizes, weight_zero

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov.scheduling.instants import Now

STEPS = 20_000


def predicted_loop(world: KueueModel, now: Now, budget: Budget) -> PreemptionLoop | None:
    """Return the loop that the model would get into if nothing else happened."""
    turning = world.copy()
    return loop_of((world, turning), settle(turning, now, budget=budget), now, budget)


def loop_in(world: KueueModel, steps: int = STEPS) -> PreemptionLoop:
    loop = predicted_loop(world, NOW, Budget(steps))
    assert loop is not None
    return loop


def test_mixed_sizes_come_to_rest_when_the_team_preempts_none_of_its_own() -> None:
    loop = loop_in(mixed_sizes())
    assert loop.workloads == loop.preemptors == ("default/big", "default/own", "default/rich")
    assert loop.queues == ("a", "b")
    never, limit = loop.remedies
    assert never == Remedy((QueueSetting("a", Setting.WITHIN_QUEUE, "Never"),), ("default/big", "default/rich"))
    assert limit == Remedy((QueueSetting("a", Setting.BORROWING_LIMIT, "100"),), ("default/big", "default/rich"))
    assert loop.searched


def test_without_a_weight_the_simplest_remedy_is_the_weight_of_the_others() -> None:
    loop = loop_in(weight_zero())
    assert loop.workloads == ("default/home", "default/late")
    assert loop.preemptors == ("default/big", "default/huge")
    weight, limit = loop.remedies
    assert weight == Remedy((QueueSetting("a", Setting.WEIGHT, "10"),), ("default/big", "default/huge"))
    assert limit.settings == (QueueSetting("a", Setting.BORROWING_LIMIT, "50"),)
    assert limit.waiting == ("default/big", "default/huge", "default/late")


@pytest.mark.parametrize("build", [mixed_sizes, weight_zero])
def test_each_remedy_ends_the_loop_before_it_begins_and_in_its_midst(build: Callable[[], KueueModel]) -> None:
    turning = build()
    assert settle(turning, NOW).loop
    for remedy in loop_in(build()).remedies:
        for model in (build(), turning.copy()):
            set_queues(model, remedy.settings)
            assert settle(model, NOW).settled


def test_the_search_leaves_the_model_as_it_is_and_gives_the_same_answer_again() -> None:
    world = weight_zero()
    before = world.signature()
    first = loop_in(world)
    assert world.signature() == before
    assert loop_in(world) == first


def test_a_cluster_that_comes_to_rest_has_no_loop() -> None:
    world = a_world(a_queue("q", cpu="1"), a_job("one", "q"), a_job("two", "q"))
    assert predicted_loop(world, NOW, Budget(STEPS)) is None


def test_a_budget_that_ends_before_the_queues_are_at_rest_is_no_answer() -> None:
    with pytest.raises(OutOfStepsError):
        predicted_loop(mixed_sizes(), NOW, Budget(2))


def test_a_budget_that_is_just_enough_is_an_answer() -> None:
    def world() -> KueueModel:
        return a_world(a_queue("q", cpu="1"), a_job("one", "q"), a_job("two", "q"))

    spent = Budget(STEPS)
    settle(world(), NOW, budget=spent)
    enough = STEPS - spent.left
    assert predicted_loop(world(), NOW, Budget(enough)) is None
    with pytest.raises(OutOfStepsError):
        predicted_loop(world(), NOW, Budget(enough - 1))


def test_a_budget_that_ends_in_the_search_says_that_not_all_was_tried() -> None:
    spent = Budget(STEPS)
    settle(mixed_sizes(), NOW, budget=spent)
    loop = loop_in(mixed_sizes(), STEPS - spent.left)
    assert (loop.remedies, loop.trials, loop.searched) == ((), 0, False)


def test_no_more_remedies_are_tried_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_TRIALS", 1)
    loop = loop_in(mixed_sizes())
    assert (len(loop.remedies), loop.trials, loop.searched) == (1, 1, False)


def test_settings_of_several_sorts_are_put_together_where_none_ends_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:

    def settles_with_two_sorts(model: KueueModel, now: str, *, budget: Budget) -> object:
        rest = settle(model, now, budget=budget)
        never = model.queue_spec("a").preemption.within_cluster_queue == "Never"
        lent = model.queue_spec("a").quotas["gpu/cpu"].borrowing_limit == 0
        return rest if never and lent else replace(rest, settled=False, loop=("default/big",))

    monkeypatch.setattr(loops, "settle", settles_with_two_sorts)
    (both,) = loop_in(mixed_sizes()).remedies
    assert {setting.setting for setting in both.settings} == {Setting.WITHIN_QUEUE, Setting.BORROWING_LIMIT}


def test_a_queue_outside_a_cohort_is_given_no_borrowing_limit() -> None:
    spec = a_world(a_queue("alone", cpu="4")).queue_spec("alone")
    assert loops.applied(spec, Setting.BORROWING_LIMIT, "0") == spec


def random_world(seed: int) -> KueueModel:
    dice = random.Random(seed)  # noqa: S311 - a seeded sequence, no secret
    fair = dice.random() < 0.5
    names = "abc"[: dice.randint(2, 3)]
    queues = [
        a_queue(
            name,
            cohort="pool",
            cpu=str(dice.randint(1, 5)),
            preemption=HYPERPOD_PREEMPTION,
            fairSharing={"weight": str(dice.choice([0, 1, 10]))},
        )
        for name in names
    ]
    world = a_world(*queues, fair_sharing=fair)
    for number in range(dice.randint(4, 8)):
        name, cpu = dice.choice(names), str(dice.randint(1, 7))
        world.load([a_job(f"j{number}", name, cpu=cpu, priority=dice.randint(0, 2), second=number)])
        if dice.random() < 0.4:
            settle(world, NOW, max_cycles=60)
    return world


def test_loops_of_random_clusters_have_remedies_that_hold() -> None:
    found = 0
    for seed in range(200):
        world = random_world(seed)
        loop = predicted_loop(world, NOW, Budget(STEPS))
        if loop is None:
            continue
        found += 1
        assert loop.remedies, seed
        for remedy in loop.remedies:
            twin = world.copy()
            set_queues(twin, remedy.settings)
            assert settle(twin, NOW).settled, seed
    assert found == 5
