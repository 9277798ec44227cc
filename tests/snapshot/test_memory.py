from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.snapshot.memory import MAX_TURNS, NodeMemory, NodeRecord
from taskgov.snapshot.model import Node
from taskgov.snapshot.nodes import remember_nodes

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def look(memory: NodeMemory, minute: int, **healthy: bool) -> tuple[NodeMemory, dict[str, Node]]:
    seen = [Node(name=name, instance_type="t", cordoned=not fine) for name, fine in healthy.items()]
    after, nodes = remember_nodes(memory, seen, NOW + timedelta(minutes=minute))
    return after, {node.name: node for node in nodes}


def at(minute: int) -> datetime:
    return NOW + timedelta(minutes=minute)


def test_at_the_first_look_nodes_are_taken_as_they_are() -> None:
    _, nodes = look(NodeMemory(), 0, fine=True, sick=False)
    assert (nodes["fine"].found_healthy, nodes["fine"].healthy_since) == (True, None)
    assert (nodes["sick"].found_healthy, nodes["sick"].unhealthy_since) == (False, None)


def test_a_node_that_joins_later_is_healthy_since_it_was_seen_so() -> None:
    memory, _ = look(NodeMemory(), 0)
    memory, nodes = look(memory, 5, new=True)
    assert (nodes["new"].healthy_since, nodes["new"].found_healthy) == (at(5), False)
    _, nodes = look(memory, 9, new=True)
    assert nodes["new"].healthy_since == at(5)


def test_a_node_that_joins_sick_was_never_healthy() -> None:
    memory, _ = look(NodeMemory(), 0)
    memory, nodes = look(memory, 5, new=False)
    assert (nodes["new"].healthy_since, nodes["new"].unhealthy_since) == (None, None)
    _, nodes = look(memory, 6, new=True)
    assert nodes["new"].turns == (at(6),)


def test_every_turn_is_recorded() -> None:
    memory, _ = look(NodeMemory(), 0, node=True)
    memory, nodes = look(memory, 1, node=False)
    assert (nodes["node"].healthy_since, nodes["node"].unhealthy_since) == (None, at(1))
    memory, nodes = look(memory, 2, node=True)
    assert (nodes["node"].healthy_since, nodes["node"].unhealthy_since) == (at(2), None)
    assert nodes["node"].turns == (at(1), at(2))


def test_a_node_that_disappears_is_kept_as_gone_until_its_past_does_not_matter() -> None:
    memory, _ = look(NodeMemory(), 0, node=True)
    memory, nodes = look(memory, 1)
    [gone] = memory.gone
    assert (nodes, gone.name, gone.instance_type, gone.in_kubernetes) == ({}, "node", "t", False)
    assert (gone.unhealthy_since, gone.looked_before) == (at(1), (at(0),))
    back, nodes = look(memory, 2, node=True)
    assert (back.gone, nodes["node"].turns, nodes["node"].found_healthy) == ((), (at(1), at(2)), True)
    forgotten = memory.without({"node"})
    assert forgotten.nodes == {}
    _, nodes = look(forgotten, 2, node=True)
    assert (nodes["node"].healthy_since, nodes["node"].found_healthy) == (at(2), False)


def test_a_node_that_was_never_healthy_is_forgotten_when_it_disappears() -> None:
    memory, _ = look(NodeMemory(), 0)
    memory, _ = look(memory, 1, node=False)
    memory, _ = look(memory, 2)
    assert memory.nodes == {}


def test_a_node_without_its_past_counts_from_its_last_turn_on() -> None:
    memory, _ = look(NodeMemory(), 0, back=True, sick=True)
    memory, _ = look(memory, 1, back=False, sick=False)
    memory, _ = look(memory, 2, back=True, sick=False)
    _, nodes = look(memory.without({"back", "sick"}), 3, back=True, sick=False)
    assert (nodes["back"].turns, nodes["back"].found_healthy) == ((at(2),), False)
    assert (nodes["sick"].turns, nodes["sick"].found_healthy) == ((), False)


def test_a_node_that_runs_and_is_not_in_kubernetes_at_the_first_look_is_marked() -> None:
    missed = Node(name="n", instance_type="t", in_kubernetes=False, ready=False, instance_status="Running")
    starts = replace(missed, name="starts", instance_status="Pending")
    _, nodes = remember_nodes(NodeMemory(), [missed, starts], NOW)
    assert [node.first_look for node in nodes] == [NOW, None]
    _, later = remember_nodes(NodeMemory(looked=True), [missed], NOW)
    assert [node.first_look for node in later] == [None]


def test_turns_are_forgotten_in_pairs_so_that_the_rest_keeps_its_meaning() -> None:
    memory, nodes = look(NodeMemory(), 0, node=True)
    for minute in range(1, 40):
        memory, nodes = look(memory, minute, node=minute % 2 == 0)
    assert len(nodes["node"].turns) <= MAX_TURNS
    assert nodes["node"].unhealthy_since == at(39)
    assert (len(nodes["node"].turns) % 2 == 1) == nodes["node"].found_healthy


def test_a_look_at_the_same_nodes_at_the_same_moment_changes_no_byte() -> None:
    memory, _ = look(NodeMemory(), 0, a=True, b=False)
    again, _ = look(memory, 0, a=True, b=False)
    assert again.to_json() == memory.to_json()


moments = st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - as hypothesis takes it
records = st.builds(
    NodeRecord,
    st.booleans(),
    st.booleans(),
    st.lists(moments, max_size=3).map(tuple),
    st.lists(st.none() | moments, max_size=3).map(tuple),
    st.none() | moments,
    st.sampled_from(["", "ml.g5.8xlarge"]),
    st.none() | st.just("workers"),
    st.none() | st.just("i-0"),
    st.booleans(),
)


@given(st.dictionaries(st.text(min_size=1), records), st.booleans())
def test_the_memory_survives_its_bytes(nodes: dict[str, NodeRecord], looked: bool) -> None:
    memory = NodeMemory(nodes, looked)
    assert NodeMemory.from_json(memory.to_json()) == memory
    assert NodeMemory.from_json(memory.to_json()).to_json() == memory.to_json()


def test_nothing_kept_is_an_empty_memory() -> None:
    assert NodeMemory.from_json(None) == NodeMemory()


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"version":2}', b"no json"])
def test_what_is_no_memory_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"version 1|Expecting value"):
        NodeMemory.from_json(text)
