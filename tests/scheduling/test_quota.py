"""The arithmetic of the quota tree."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.quantities import UNLIMITED
from taskgov.scheduling.objects import Quota
from taskgov.scheduling.quota import (
    QuotaNode,
    add_usage,
    available,
    link,
    lowest_subtree_that_fits,
    remove_usage,
    settle_limits,
    within_nominal,
)
from tests.scheduling.builders import a_cohort, a_group, a_queue, a_running_job, a_world

FR = "gpu/cpu"


def test_a_flat_cohort_shares_what_nobody_uses() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="10"),
        a_queue("b", cohort="pool", cpu="20"),
        a_running_job("one", "a", cpu="12"),
    )
    assert world.quota("a").available[FR] == 18_000
    assert world.quota("b").available[FR] == 18_000
    assert world.quota("pool", cohort=True).usage[FR] == 12_000


@pytest.mark.parametrize(
    ("limits", "potential"),
    [
        (("10", None, None), 30_000),
        (("10", "5", None), 15_000),
        (("10", "0", None), 10_000),
        (("10", None, "0"), 30_000),
        (("10", "5", "0"), 15_000),
    ],
    ids=["no limit", "may borrow 5", "may not borrow", "lends nothing", "borrows 5 and lends nothing"],
)
def test_limits_bound_what_a_queue_could_ever_use(limits: tuple[str, str | None, str | None], potential: int) -> None:
    world = a_world(a_queue("a", cohort="pool", cpu=limits), a_queue("b", cohort="pool", cpu="20"))
    assert world.quota("a").potential[FR] == potential


def test_what_is_not_lent_is_invisible_to_the_others() -> None:
    world = a_world(a_queue("a", cohort="pool", cpu=("10", None, "4")), a_queue("b", cohort="pool", cpu="1"))
    assert world.quota("b").available[FR] == 5_000


def test_usage_spills_into_the_cohort_only_beyond_the_local_quota() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu=("10", None, "4")),
        a_queue("b", cohort="pool", cpu="1"),
        a_running_job("one", "a", cpu="7"),
    )
    assert world.quota("pool", cohort=True).usage[FR] == 1_000
    assert world.quota("b").available[FR] == 4_000


def test_cohorts_stand_on_one_another() -> None:
    world = a_world(
        a_cohort("root", resourceGroups=[a_group({"gpu": {"cpu": "5"}})]),
        a_cohort("left", "root"),
        a_cohort("right", "root", resourceGroups=[a_group({"gpu": {"cpu": ("3", "2", None)}})]),
        a_queue("a", cohort="left", cpu="10"),
        a_queue("b", cohort="right", cpu="1"),
    )
    assert world.quota("a").potential[FR] == 19_000
    assert world.quota("b").potential[FR] == 6_000
    assert world.trees == {"Cohort/root"}


def test_more_running_than_quota_is_negative_not_hidden() -> None:
    world = a_world(a_queue("a", cpu="1"), a_running_job("one", "a", cpu="4"))
    assert world.quota("a").available[FR] == -3_000


def test_unlimited_stays_unlimited_up_the_tree() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="9223372036854775807"),
        a_queue("b", cohort="pool", cpu=("1", None, None)),
    )
    assert world.quota("b").potential[FR] == UNLIMITED


@pytest.mark.parametrize(
    ("amount", "answer"),
    [(4_000, (0, True)), (9_000, (1, True)), (17_000, (2, False)), (99_000, (2, False))],
    ids=["own quota", "with its cohort", "with the whole tree", "nowhere"],
)
def test_borrowing_reaches_as_far_up_as_it_must(amount: int, answer: tuple[int, bool]) -> None:
    root, cohort = _node("root", 0, queue=False), _node("cohort", 0, queue=False)
    queue, sibling, cousin = _node("queue", 5_000), _node("sibling", 5_000), _node("cousin", 10_000)
    link(cohort, root)
    link(cousin, root)
    link(queue, cohort)
    link(sibling, cohort)
    settle_limits(root)
    assert lowest_subtree_that_fits(queue, FR, amount) == answer


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), max_size=12),
    st.lists(st.one_of(st.none(), st.integers(0, 12)), min_size=3, max_size=3),
)
def test_removing_usage_undoes_adding_it_in_any_order(
    steps: list[tuple[int, int]],
    lending: list[int | None],
) -> None:
    root = _node("root", 3, queue=False)
    queues = [_node(f"q{i}", 10, limit=limit) for i, limit in enumerate(lending)]
    for queue in queues:
        link(queue, root)
    settle_limits(root)
    for index, amount in steps:
        add_usage(queues[index], {FR: amount})
    assert root.usage.get(FR, 0) == sum(max(0, q.usage.get(FR, 0) - q.local.get(FR, 0)) for q in queues)
    for index, amount in steps:
        remove_usage(queues[index], {FR: amount})
    assert all(node.usage.get(FR, 0) == 0 for node in (root, *queues))


def test_within_nominal_counts_every_flavor_that_is_asked_for() -> None:
    queue = _node("a", 5)
    settle_limits(queue)
    add_usage(queue, {FR: 5, "other/cpu": 1})
    assert within_nominal(queue, [FR])
    assert not within_nominal(queue, [FR, "other/cpu"])
    assert available(queue, FR) == 0


def _node(name: str, nominal: int, *, queue: bool = True, limit: int | None = None) -> QuotaNode:
    return QuotaNode(name, {FR: Quota(nominal, None, limit)}, 1.0, is_queue=queue)


def test_what_exceeds_the_quota_is_kept_up_to_date() -> None:
    top = QuotaNode("top", {FR: Quota(1000)}, 1.0, is_queue=False)
    queues = [QuotaNode(name, {FR: Quota(2000, lending_limit=1000)}, 1.0, is_queue=True) for name in ("a", "b")]
    for queue in queues:
        link(queue, top)
    settle_limits(top)
    draw = random.Random(7)  # noqa: S311 - a test that plays the same every time
    held: list[tuple[QuotaNode, dict[str, int]]] = []
    for _ in range(200):
        if held and draw.random() < 0.5:
            remove_usage(*held.pop())
        else:
            held.append((draw.choice(queues), {FR: draw.randrange(1, 3000), "other/cpu": 1}))
            add_usage(*held[-1])
        for node in (*queues, top):
            over = {fr: used - node.subtree.get(fr, 0) for fr, used in node.usage.items()}
            assert node.over == {fr: amount for fr, amount in over.items() if amount > 0}
