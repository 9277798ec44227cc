"""The arithmetic of the quota tree."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.quantities import UNLIMITED
from taskgov.scheduling import workload_store
from taskgov.scheduling.limits import requote, settle_limits
from taskgov.scheduling.objects import Quota
from taskgov.scheduling.quota import (
    QuotaNode,
    add_usage,
    available,
    link,
    lowest_subtree_that_fits,
    remove_usage,
    within_nominal,
)
from tests.scheduling.builders import a_cohort, a_group, a_queue, a_running_job, a_world

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


OTHER = "gpu/memory"
_AMOUNTS = st.tuples(
    st.integers(0, 9), st.one_of(st.none(), st.integers(0, 9)), st.one_of(st.none(), st.integers(0, 9))
)
_QUOTAS = st.tuples(_AMOUNTS, _AMOUNTS)


def _tree(quotas: Sequence[Mapping[str, Quota]], used: Sequence[int]) -> list[QuotaNode]:
    """Build a root with a cohort, two queues below the cohort and one below the root, all in use."""
    names = ("root", "cohort", "a", "b", "c")
    nodes = [QuotaNode(name, own, 1.0, is_queue=len(name) == 1) for name, own in zip(names, quotas, strict=True)]
    root, cohort, first, second, third = nodes
    for child, parent in ((cohort, root), (first, cohort), (second, cohort), (third, root)):
        link(child, parent)
    for queue, amount in zip(nodes[2:], used, strict=True):
        queue.usage = {FR: amount, OTHER: amount // 2}
    settle_limits(root)
    return nodes


def _derived(nodes: Sequence[QuotaNode]) -> list[tuple[dict[str, int], ...]]:
    return [(n.subtree, n.usage, n.local, n.borrow_room, n.over, n.potential, n.lendable) for n in nodes]


@given(
    st.lists(_QUOTAS, min_size=5, max_size=5),
    st.lists(st.integers(0, 12), min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(2, 4), _QUOTAS), min_size=1, max_size=4),
)
def test_a_queue_with_other_amounts_leaves_its_tree_as_if_it_was_built_with_them(
    start: list[Any], used: list[int], changes: list[tuple[int, Any]]
) -> None:
    quotas = [{FR: Quota(*one), OTHER: Quota(*other)} for one, other in start]
    nodes = _tree(quotas, used)
    _derived(nodes)
    for index, (one, other) in changes:
        quotas[index] = {FR: Quota(*one), OTHER: Quota(*other)}
        assert requote(nodes[index], quotas[index], 1.0)
        assert _derived(nodes) == _derived(_tree(quotas, used))


def test_a_queue_with_other_flavors_or_amounts_without_end_leaves_its_tree_to_be_built_again() -> None:
    root, _, queue, *_ = _tree([{FR: Quota(4)}] * 5, [1, 1, 1])
    before = dict(root.subtree)
    for quotas in ({FR: Quota(4), OTHER: Quota(1)}, {OTHER: Quota(4)}, {FR: Quota(UNLIMITED)}):
        assert not requote(queue, quotas, 1.0)
    assert (root.subtree, queue.quotas) == (before, {FR: Quota(4)})


def test_a_tree_is_not_built_again_because_a_queue_has_other_amounts(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world(a_queue("a", cohort="pool", cpu="10"), a_queue("b", cohort="pool", cpu="20"))
    world.quota("a")
    monkeypatch.setattr(workload_store, "build_forest", None)
    world.apply(a_queue("b", cohort="pool", cpu="5"))
    assert world.quota("a").potential[FR] == 15_000
