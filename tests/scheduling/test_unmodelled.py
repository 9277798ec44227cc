"""What the model does not follow is found and said."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig, NotModelled
from taskgov.scheduling.fields_in_use import not_modelled
from taskgov.scheduling.kueue_fields import ROWS, Followed, Row
from taskgov.scheduling.shapes import shape_of_pods
from taskgov_explain.simulation import Simulation
from tests.scheduling.builders import NOW, Object, a_flavor, a_job, a_queue, a_world


def _job(**pod_set: Any) -> Object:
    return a_job("j", "q", **pod_set)


def _claiming() -> Object:
    job = _job()
    job["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] = [{"name": "gpu"}]
    return job


def _boosted() -> Object:
    job = _job()
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "1"}
    return job


@pytest.mark.parametrize(
    ("obj", "feature"),
    [
        (a_flavor("f", topologyName="racks"), "TopologyAwareScheduling"),
        (_job(topologyRequest={"required": "rack"}), "TopologyAwareScheduling"),
        (_job() | {"status": {"clusterName": "worker-1"}}, "MultiKueue"),
        ({"kind": "MultiKueueConfig", "metadata": {"name": "m"}}, "MultiKueue"),
        (_claiming(), "DynamicResourceAllocation"),
        (_boosted(), "PriorityBoost"),
    ],
)
def test_a_feature_that_is_not_followed_is_named_with_the_object_that_uses_it(obj: Object, feature: str) -> None:
    world = KueueModel()
    world.apply(obj)
    assert [(n.feature, n.kind) for n in world.not_modelled] == [(feature, obj["kind"])]
    assert world.cycle(NOW).not_modelled == world.not_modelled
    assert Simulation(world.copy()).run().not_modelled == world.not_modelled


def test_what_is_followed_is_not_named() -> None:
    world = a_world(a_queue("q", cpu="1"), _job(topologyRequest={"podSetGroupName": "g"}))
    assert not world.not_modelled


def _with(path: str, value: Any) -> Object:
    """Return an object in which this field has the value; in lists it is of the second item."""
    kind, *steps = re.findall(r"(?<=\{)[^}]+|\[\]|[^.\[\]{}]+", path)
    for step in reversed(steps):
        value = [{}, value] if step == "[]" else {step: value}
    return {"kind": kind, **(value if steps else {})}


@pytest.mark.parametrize("row", [r for r in ROWS if r.followed is Followed.NOT_MODELLED], ids=lambda row: row.path)
def test_each_field_that_is_not_followed_is_found_where_it_is_set_to_something(row: Row) -> None:
    obj = _with(row.path, {"some": "value"})
    assert not_modelled(obj) == not_modelled(MappingProxyType(obj)) == {row.note}
    assert not_modelled(obj, shape_of_pods(obj)) == {row.note}
    if "." in row.path:
        nothing: tuple[Any, ...] = (None, "", [], {})
        assert {not_modelled(_with(row.path, value)) for value in nothing} == {frozenset()}


def test_the_finding_goes_with_its_object() -> None:
    world = a_world(a_queue("q", cpu="1"), _claiming())
    assert list(world.not_modelled) == [NotModelled("DynamicResourceAllocation", "Workload", "default/j")]
    world.apply(_job())
    assert not world.not_modelled
    world.apply({"kind": "Topology", "metadata": {"name": "racks"}})
    world.delete("Topology", "racks")
    assert not world.not_modelled


def test_a_feature_gate_that_is_not_followed_is_named_when_it_is_on() -> None:
    config = ManagerConfig(gates={"PrioritizePreemptorWorkloads": True, "ConcurrentAdmission": False})
    [gate] = KueueModel(config).not_modelled
    assert gate == NotModelled("FeatureGate", "Configuration", "PrioritizePreemptorWorkloads")
