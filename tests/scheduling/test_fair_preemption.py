"""Preemption under fair sharing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig, Strategy, fair_preemption, fair_targets, shares
from taskgov.scheduling.shares import Share, SharesOfQueues, dominant_share
from tests.scheduling.builders import Object, a_cohort, a_door, a_flavor, a_job, a_queue, a_running_job, a_world

if TYPE_CHECKING:
    from taskgov.scheduling.quota import QuotaNode
    from taskgov.scheduling.state import Record

RULES = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}


def _pool(*running: Object, weights: dict[str, str] | None = None, **settings: Any) -> KueueModel:
    queues = [
        a_queue(
            name,
            cohort="pool",
            cpu="3",
            preemption=RULES,
            fairSharing={"weight": (weights or {}).get(name, "1")},
        )
        for name in ("a", "b", "c")
    ]
    world = KueueModel(ManagerConfig(fair_sharing=True, **settings))
    world.load([a_flavor(), *queues, *(a_door(name) for name in ("a", "b", "c")), *running])
    return world


def _ones(queue: str, count: int) -> list[Object]:
    return [a_running_job(f"{queue}{i}", queue, cpu="1", since=f"2026-11-20T08:00:{i:02d}Z") for i in range(count)]


def _victims(world: KueueModel, queue: str, cpu: str = "1", **job: Any) -> list[tuple[str, str]]:
    victims = world.victims(a_job("j", queue, cpu=cpu, **job), queue)
    return [(v.workload.removeprefix("default/"), v.reason) for v in victims]


def test_a_workload_within_nominal_quota_reclaims_from_the_largest_borrower() -> None:
    world = _pool(*_ones("b", 5), *_ones("c", 4))
    assert _victims(world, "a") == [("b4", "InCohortReclamation")]


def test_a_borrower_takes_from_one_that_borrows_more() -> None:
    world = _pool(*_ones("a", 3), *_ones("b", 6))
    assert _victims(world, "a") == [("b5", "InCohortFairSharing")]


def test_nobody_is_preempted_only_to_turn_the_inequality_round() -> None:
    world = _pool(*_ones("a", 4), *_ones("b", 5))
    assert _victims(world, "a") == []


def test_the_second_strategy_compares_with_the_share_before() -> None:
    big = a_running_job("big", "b", cpu="6")
    both = _pool(*_ones("a", 3), big)
    assert _victims(both, "a") == [("big", "InCohortFairSharing")]
    first_only = _pool(*_ones("a", 3), big, strategies=(Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,))
    assert _victims(first_only, "a") == []


def test_the_second_strategy_compares_with_the_shares_that_cohorts_have_after_each_preemption() -> None:
    nominal = {"p0": 0, "p1": 1, "q0": 0, "s0": 3, "s1": 0, "s2": 0}
    queues = [a_queue(name, cohort=name[0], cpu=str(cpu), preemption=RULES) for name, cpu in nominal.items()]
    cohorts = [a_cohort(name, parent="root") for name in "pqs"]
    since = "2026-11-20T08:00:{}Z".format
    running = [
        a_running_job("p1-0", "p1", cpu="1", since=since("01")),
        a_running_job("p1-1", "p1", cpu="3", since=since("49")),
        a_running_job("p1-2", "p1", cpu="3", since=since("14")),
        a_running_job("s0-0", "s0", cpu="4", since=since("21")),
        a_running_job("s2-0", "s2", cpu="3", since=since("18")),
    ]
    world = KueueModel(ManagerConfig(fair_sharing=True))
    world.load([a_flavor(), *cohorts, *queues, *map(a_door, nominal), *running])
    assert [name for name, _ in _victims(world, "p0")] == ["p1-1", "p1-0", "s2-0", "s0-0"]


def test_weights_say_how_much_more_a_queue_may_borrow() -> None:
    running = [*_ones("a", 4), *_ones("b", 5)]
    assert _victims(_pool(*running, weights={"a": "2"}), "a") == [("b4", "InCohortFairSharing")]
    assert _victims(_pool(*running, weights={"b": "2"}), "a") == []


def test_a_queue_without_weight_gives_way_as_soon_as_it_borrows() -> None:
    running = [*_ones("a", 5), *_ones("b", 4)]
    assert _victims(_pool(*running, weights={"b": "0"}), "a") == [("b3", "InCohortFairSharing")]


def test_all_who_may_be_taken_are_taken_where_they_are_just_enough() -> None:
    world = KueueModel(ManagerConfig(fair_sharing=True))
    lender, guest = (a_queue(name, cohort="pool", cpu=cpu, preemption=RULES) for name, cpu in (("a", "2"), ("b", "0")))
    world.load([a_flavor(), lender, guest, a_door("a"), a_door("b"), *_ones("b", 2)])
    assert _victims(world, "a", cpu="2") == [("b1", "InCohortReclamation"), ("b0", "InCohortReclamation")]


def test_priorities_of_other_queues_do_not_matter_but_those_of_the_own_do() -> None:
    guests = [a_running_job(f"b{i}", "b", cpu="1", priority=100) for i in range(6)]
    assert [reason for _, reason in _victims(_pool(*guests, *_ones("a", 3)), "a")] == ["InCohortFairSharing"]
    alone = _pool(*[a_running_job(f"a{i}", "a", cpu="3", priority=i) for i in range(3)])
    assert _victims(alone, "a", cpu="3", priority=1) == [("a0", "InClusterQueue")]


def test_a_queue_without_cohort_looks_only_at_itself() -> None:
    world = a_world(a_queue("q", cpu="2", preemption=RULES), a_running_job("low", "q", cpu="2"), fair_sharing=True)
    assert _victims(world, "q", priority=5) == [("low", "InClusterQueue")]


def test_without_the_gate_reclaiming_is_put_to_the_test_of_shares_too() -> None:
    world = _pool(*_ones("b", 9), gates={"FairSharingPreemptWithinNominal": False})
    assert _victims(world, "a") == [("b8", "InCohortFairSharing")]


def test_asking_changes_nothing() -> None:
    world = _pool(*_ones("a", 3), *_ones("b", 6))
    before = [world.quota(name).usage for name in "abc"]
    world.victims(a_job("j", "a", cpu="2"), "a")
    world.victims(a_job("j", "a", cpu="6"), "a")
    assert [world.quota(name).usage for name in "abc"] == before


@pytest.mark.parametrize(
    ("running", "cpu", "found"),
    [
        ([*_ones("b", 5), *_ones("c", 4)], "3", True),
        ([*_ones("a", 5), *_ones("b", 4)], "1", False),  # b has a smaller share
        ([*_ones("b", 6), *_ones("c", 3)], "7", False),  # c borrows nothing
        ([a_running_job("low", "a", cpu="3", priority=-1), *_ones("b", 6)], "4", True),
        ([a_running_job("low", "a", cpu="2", priority=-1), *_ones("b", 4), *_ones("c", 3)], "7", False),
    ],
)
def test_nobody_is_tried_where_all_who_may_be_taken_are_not_enough(
    monkeypatch: pytest.MonkeyPatch, running: list[Object], cpu: str, *, found: bool
) -> None:
    tried: list[str] = []

    class Watched(fair_preemption._FairSearch):
        def _first_pass(self, own: list[Record], *, within: bool) -> bool:
            tried.append(self.node.name)
            return super()._first_pass(own, within=within)

    monkeypatch.setattr(fair_preemption, "_FairSearch", Watched)
    assert bool(_victims(_pool(*running, weights={"a": "2"}), "a", cpu=cpu)) is found
    assert bool(tried) is found


class Counting(fair_preemption._FairSearch):
    """A search that counts what the preemptor requests as used, and tries every candidate, as Kueue does."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.flat = False

    def _allows_nobody(self, target: QuotaNode) -> bool:
        return False


@pytest.mark.parametrize("seed", range(40))
def test_shares_that_are_kept_during_a_search_are_those_of_the_moment(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    running = [
        a_running_job(f"{queue}{i}", queue, cpu=str(chance.randint(1, 3)), priority=chance.randint(0, 1))
        for queue in "abc"
        for i in range(chance.randint(0, 5))
    ]
    weights = {queue: chance.choice(["0", "500m", "1", "2"]) for queue in "abc"}
    asked = [(queue, str(chance.randint(1, 6)), chance.randint(0, 2)) for queue in "abc" for _ in range(3)]

    def answers() -> list[list[tuple[str, str]]]:
        world = _pool(*running, weights=weights)
        return [_victims(world, queue, cpu, priority=priority) for queue, cpu, priority in asked]

    kept = answers()
    monkeypatch.setattr(SharesOfQueues, "of", lambda _self, node: dominant_share(node))
    monkeypatch.setattr(fair_preemption, "_FairSearch", Counting)
    assert answers() == kept


def test_a_queue_that_is_not_taken_from_has_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    made = shares.dominant_share

    def counting(node: QuotaNode, *extra: Any) -> Share:
        counted.append(node.name)
        return made(node, *extra)

    world = _pool(*_ones("b", 8), *_ones("c", 1))
    for module in (shares, fair_preemption, fair_targets):
        monkeypatch.setattr(module, "dominant_share", counting)
    assert len(_victims(world, "a", "3")) == 3
    assert counted.count("a") == 1
