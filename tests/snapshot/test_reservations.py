"""When a training plan or a Capacity Block takes its machines back, and from which nodes."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from taskgov.snapshot.leaving import Reserved, has_left, marked
from taskgov.snapshot.memory import NodeMemory, NodeRecord, remember_nodes
from taskgov.snapshot.model import InstanceGroup, Node
from taskgov.snapshot.reservations import CAPACITY_BLOCK, TRAINING_PLAN, Period, Reservation
from tests.allocation.world import G5, NOW, P5

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"


def hours(number: float) -> datetime:
    return NOW + timedelta(hours=number)


def plan(*periods: tuple[float, float], status: str = "Active", **fields: str) -> Reservation:
    found = tuple(Period(hours(start), hours(end), **fields) for start, end in periods)
    return Reservation(PLAN, TRAINING_PLAN, status, found)


@pytest.mark.parametrize(
    ("periods", "end"),
    [
        (((-10, 5),), 5),
        (((-10, -1),), -1),
        (((-10, -1), (-2, 6)), 6),
        (((-10, 2), (2, 8)), 8),
        (((2, 8), (-10, 2)), 8),
        (((-10, 2), (3, 8)), 2),
        (((-10, -2), (3, 8)), -2),
        (((-10, -2), (0, 8)), 8),
        (((3, 8), (9, 12)), 8),
        (((-10, -5), (-4, -2)), -2),
    ],
    ids=[
        *("one", "over", "overlap", "extended", "unordered", "gap", "in the gap", "at a start", "before all"),
        "all over",
    ],
)
def test_the_end_is_that_of_the_running_time_with_its_extensions(
    periods: tuple[tuple[float, float], ...], end: float
) -> None:
    assert plan(*periods).leaves_at(P5, NOW) == hours(end - 0.5)


def test_a_machine_that_is_listed_beyond_its_period_has_left_until_the_next_begins() -> None:
    both = plan((-10, 0.25), (3, 8))
    assert [both.leaves_at(P5, hours(at)) for at in (0, 0.25, 2.9)] == [hours(-0.25)] * 3
    assert both.leaves_at(P5, hours(3)) == hours(7.5)


def test_a_loss_in_a_gap_is_of_the_period_that_is_over() -> None:
    both = Reserved((plan((-10, 0.25), (3, 8)),))
    memory, lingering = NodeMemory(), [Node("a", P5, "i-1", "bought")]
    for at in (0, 0.26):
        memory, _ = remember_nodes(memory, marked(lingering, both, GROUPS, hours(at), memory), hours(at))
    memory, _ = remember_nodes(memory, [], hours(0.4))
    assert [has_left(node, hours(0.4)) for node in memory.gone] == [True]


def test_periods_of_other_instance_types_say_nothing() -> None:
    assert plan((-10, 5), instance_type=G5).leaves_at(P5, NOW) is None
    assert plan((-10, 5), instance_type=P5).leaves_at(P5, NOW) == hours(4.5)


@pytest.mark.parametrize("status", ["Failed", "failed", "cancelled", "payment-failed"])
def test_what_was_never_delivered_ends_nothing(status: str) -> None:
    assert plan((-10, 5), status=status).leaves_at(P5, NOW) is None


@pytest.mark.parametrize("status", ["Active", "Scheduled", "Pending", "Expired", "a status of tomorrow"])
def test_the_clock_decides_and_not_the_status(status: str) -> None:
    assert plan((-10, 5), status=status).leaves_at(P5, NOW) == hours(4.5)


@pytest.mark.parametrize("instance_type", ["ml.p6e-gb200.36xlarge", "p6e-gb300.36xlarge", "trn2u.48xlarge"])
def test_ultraservers_are_taken_back_an_hour_before(instance_type: str) -> None:
    assert plan((-10, 5)).leaves_at(instance_type, NOW) == hours(4)


def test_moments_of_other_time_zones_are_the_same_moments() -> None:
    seoul = timezone(timedelta(hours=9))
    period = Period(hours(-10).astimezone(seoul), hours(5).astimezone(seoul))
    assert Reservation(PLAN, TRAINING_PLAN, "Active", (period,)).leaves_at(P5, NOW) == hours(4.5)


def test_nodes_of_groups_with_the_plan_leave_and_others_stay() -> None:
    nodes = [Node("a", P5, instance_group="bought"), Node("b", P5, instance_group="own"), Node("c", P5)]
    groups = (InstanceGroup("bought", training_plan=PLAN), InstanceGroup("own"))
    found = marked(nodes, Reserved((plan((-10, 5)),)), groups, NOW, NodeMemory())
    assert [(node.reservation, node.leaves_at) for node in found] == [(PLAN, hours(4.5)), (None, None), (None, None)]


def test_several_groups_may_be_of_one_plan() -> None:
    nodes = [Node("a", P5, instance_group="east"), Node("b", P5, instance_group="west")]
    groups = (InstanceGroup("east", training_plan=PLAN), InstanceGroup("west", training_plan=PLAN))
    found = marked(nodes, Reserved((plan((-10, 5)),)), groups, NOW, NodeMemory())
    assert [node.leaves_at for node in found] == [hours(4.5)] * 2


def test_machines_of_a_capacity_block_are_known_by_their_instance() -> None:
    block = Reservation("cr-1", CAPACITY_BLOCK, "active", (Period(hours(-1), hours(24)),))
    nodes = [Node("a", "p5.48xlarge", "i-1"), Node("b", "p5.48xlarge", "i-2")]
    found = marked(nodes, Reserved((block,), {"i-1": "cr-1"}), (), NOW, NodeMemory())
    assert [node.leaves_at for node in found] == [hours(23.5), None]


GROUPS = (InstanceGroup("bought", training_plan=PLAN),)
SILENT = Reservation.silent(PLAN, TRAINING_PLAN, "AccessDeniedException")


def test_a_plan_that_could_never_be_read_gives_no_node_an_end() -> None:
    [node] = marked([Node("a", P5, instance_group="bought")], Reserved((SILENT,)), GROUPS, NOW, NodeMemory())
    assert (node.reservation, node.leaves_at) == (PLAN, None)


def test_a_node_that_comes_while_its_plan_cannot_be_read_leaves_with_the_others() -> None:
    both = (InstanceGroup("bought", training_plan=PLAN), InstanceGroup("later", training_plan=f"{PLAN}-2"))
    seen = marked([Node("a", P5, "i-1", "bought")], Reserved((plan((-10, 5)),)), GROUPS, NOW, NodeMemory())
    memory, _ = remember_nodes(NodeMemory(), seen, NOW)
    nodes = [Node("b", P5, "i-2", "bought"), Node("c", G5, "i-3", "bought"), Node("a", P5, "i-1", "later")]
    other = Reservation.silent(f"{PLAN}-2", TRAINING_PLAN, "throttled")
    found = marked(nodes, Reserved((SILENT, other)), both, NOW, memory)
    assert [node.leaves_at for node in found] == [hours(4.5), None, None]


@pytest.mark.parametrize(
    "silent",
    [Reserved((SILENT,)), Reserved((Reservation.silent("", CAPACITY_BLOCK, "throttled"),), {})],
    ids=["a plan", "all blocks"],
)
def test_what_cannot_be_read_now_is_as_it_was_at_the_look_before(silent: Reserved) -> None:
    nodes = [Node("a", P5, "i-1", "bought"), Node("b", P5, "i-2")]
    seen = marked(nodes, Reserved((plan((-10, 5)),)), GROUPS, NOW, NodeMemory())
    memory, _ = remember_nodes(NodeMemory(), seen, NOW)
    kept = NodeMemory.from_json(memory.to_json())
    found = marked(nodes, silent, GROUPS, NOW, kept)
    assert [(node.reservation, node.leaves_at) for node in found] == [(PLAN, hours(4.5)), (None, None)]


def test_a_machine_that_is_gone_is_still_of_its_reservation() -> None:
    seen = marked([Node("a", P5, "i-1", "bought")], Reserved((plan((-10, 5)),)), GROUPS, NOW, NodeMemory())
    memory, _ = remember_nodes(NodeMemory(), seen, NOW)
    memory, _ = remember_nodes(NodeMemory.from_json(memory.to_json()), [], hours(5))
    [gone] = memory.gone
    assert (gone.reservation, gone.leaves_at) == (PLAN, hours(4.5))


def test_blocks_of_other_clusters_are_not_of_this_one() -> None:
    blocks = tuple(Reservation(its_id, CAPACITY_BLOCK, "active") for its_id in ("cr-1", "cr-2"))
    reserved = Reserved(blocks, {"i-1": "cr-1", "i-2": "cr-2"})
    assert [found.id for found in reserved.of([Node("a", P5, "i-2"), Node("b", P5)])] == ["cr-2"]


def test_that_blocks_cannot_be_read_concerns_every_cluster() -> None:
    silent = Reservation.silent("", CAPACITY_BLOCK, "throttled")
    assert Reserved((silent,), {}).of([Node("a", P5, "i-1")]) == (silent,)


def test_the_end_of_a_plan_that_cannot_be_read_is_that_of_the_nodes_that_were_listed_last() -> None:
    ended, listed = (NodeRecord(True, instance_type=P5, reservation=PLAN, leaves_at=hours(at)) for at in (1, 9))
    memory = NodeMemory(nodes={"a": replace(ended, gone=True), "b": listed, "c": replace(ended, gone=True)})
    [node] = marked([Node("d", P5, instance_group="bought")], Reserved((SILENT,)), GROUPS, NOW, memory)
    assert node.leaves_at == hours(9)


def test_a_node_has_left_from_the_moment_on() -> None:
    node = Node("a", P5, leaves_at=NOW)
    assert [has_left(node, NOW + timedelta(seconds=second)) for second in (-1, 0, 1)] == [False, True, True]
