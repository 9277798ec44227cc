"""A wrong type in any field of an object: it is left out and reported, or no decision reads the field."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from taskgov.snapshot.forms import fault_of
from taskgov.snapshot.nodes import nodes_from_kubernetes
from taskgov.snapshot.readable import KINDS, readable_groups, readable_nodes, readable_summaries
from tests.support.memory import CLUSTER_ARN
from tests.support.whole_objects import GROUP, NODE, SUMMARY, whole_world

Way = tuple[str | int, ...]
ODD: tuple[Any, ...] = (
    None,
    7,
    -1,
    "",
    "x",
    [],
    {},
    [7],
    [{}],
    {"a": 7},
    True,
    1e300,
    "9999-12-31T23:59:59+14:00",
    "0001-01-01T00:00:00+14:00",
)
SAMPLE = 15
"""Damaged objects of each kind that are measured, planned with and audited."""


def places(value: Any, way: Way = ()) -> Iterator[Way]:
    """Return each place in an object."""
    if way:
        yield way
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from places(inner, (*way, step))


def damaged(sample: Any, way: Way, value: Any) -> Any:
    """Return a copy of a sample with another value at a place."""
    changed = json.loads(json.dumps(sample))
    holder = changed
    for step in way[:-1]:
        holder = holder[step]
    holder[way[-1]] = value
    return changed


def every(sample: Any) -> list[tuple[Way, Any]]:
    return [(way, value) for way in places(sample) for value in ODD]


def test_what_is_said_of_an_object_of_another_form_names_no_class_of_the_code() -> None:
    queue = {"metadata": {"name": "a"}, "spec": {"resourceGroups": [7]}}
    assert fault_of("ClusterQueue", queue) == "spec.resourceGroups.0: Input should be a valid dictionary"


def test_an_odd_field_of_a_node_that_sagemaker_does_not_list_takes_nothing_else_down() -> None:
    for way, value in every(NODE):
        good, odd = readable_nodes([damaged(NODE, way, value), NODE])
        assert len(good) + len(odd) == 2, (way, value)
        assert nodes_from_kubernetes(good, (), odd), (way, value)


@pytest.mark.parametrize("value", [7, [], {}, True])
def test_a_node_whose_machine_is_no_text_is_left_out_and_reported(value: object) -> None:
    good, odd = readable_nodes([damaged(NODE, ("spec", "providerID"), value)])
    assert (good, [entry.because for entry in odd]) == ((), ["spec.providerID: Input should be a valid string"])


def test_an_odd_field_of_what_sagemaker_lists_takes_nothing_else_down() -> None:
    for way, value in every(SUMMARY):
        good, odd = readable_summaries([damaged(SUMMARY, way, value)])
        assert len(good) + len(odd) == 1
        assert len(nodes_from_kubernetes([NODE], good, ())) in {1, 2}, (way, value)
    for way, value in every(GROUP):
        good, odd = readable_groups([damaged(GROUP, way, value)])
        assert len(good) + len(odd) == 1


def test_the_whole_objects_are_readable() -> None:
    world = whole_world()
    assert world.take(CLUSTER_ARN).unreadable_objects == ()
    assert {kind for kind, items in world.kueue.items() if items} == KINDS.keys()


@pytest.mark.parametrize("kind", ["nodes", *KINDS])
def test_a_cluster_with_an_odd_field_is_planned_measured_and_audited(kind: str) -> None:
    world = whole_world()
    items = world.nodes if kind == "nodes" else world.kueue[kind]
    draw = Random(kind)  # noqa: S311 - cases that are always the same
    for number, (way, value) in enumerate(draw.sample(every(items[-1]), SAMPLE)):
        spoiled = damaged(items[-1], way, value)
        world.play(kind, spoiled, audit=number % 5 == 0)


READ = {
    "Workload": [
        ("metadata", "ownerReferences", 0, "name"),
        ("metadata", "ownerReferences", 0, "kind"),
        ("metadata", "annotations", "owner"),
        ("spec", "podSets", 0, "template", "spec", "runtimeClassName"),
        ("status", "accumulatedPastExecutionTimeSeconds"),
        ("status", "schedulingStats", "evictions", 0, "count"),
        ("status", "admissionChecks", 0, "state"),
    ],
    "ClusterQueue": [
        ("metadata", "annotations", "owner"),
        ("metadata", "generation"),
        ("spec", "admissionChecks", 0),
        ("spec", "admissionChecksStrategy", "admissionChecks", 0, "name"),
        ("spec", "admissionChecksStrategy", "admissionChecks", 0, "onFlavors"),
    ],
}


@pytest.mark.parametrize(("kind", "way"), [(kind, way) for kind, ways in READ.items() for way in ways])
def test_what_is_read_of_workloads_and_queues_has_its_type(kind: str, way: Way) -> None:
    field = {name: field for field, name in KINDS.items()}[kind]
    whole = whole_world().kueue[field][-1]
    assert fault_of(kind, whole) is None
    assert fault_of(kind, damaged(whole, way, {"a": 7})) is not None
