"""What the model does not follow is found and said."""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig, NotModelled
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
