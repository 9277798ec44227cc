"""Machines that come, fail, recover and go, as SageMaker and Kubernetes see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.names import NODE_HEALTH
from taskgov.quantities import GIBIBYTE
from taskgov_embedded.cluster.fleet import Fleet
from taskgov_embedded.cluster.nodes import estimated_allocatable
from taskgov_embedded.cluster.objects import ObjectStore
from taskgov_embedded.sagemaker.cluster_port import GroupFact


@dataclass
class World:
    moment: datetime = datetime(2026, 11, 20, 9, tzinfo=UTC)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = ObjectStore(lambda: self.moment)
        self.fleet = Fleet(self.store, "ml-cluster", lambda: self.moment, InstanceTypeTable(), **self.options)

    def pass_seconds(self, seconds: int) -> None:
        self.moment += timedelta(seconds=seconds)
        self.fleet.join_due()

    def node(self, index: int = 0) -> dict[str, Any]:
        return self.store.list("nodes")[index]


def workers(count: int, **fields: Any) -> GroupFact:
    return GroupFact("workers", "ml.g5.12xlarge", count, **fields)


def test_a_node_carries_hyperpods_labels_and_amounts() -> None:
    world = World()
    world.fleet.set_target(workers(1))
    node, [fact] = world.node(), world.fleet.nodes()
    assert node["metadata"]["name"] == f"hyperpod-{fact.instance_id}"
    assert node["metadata"]["labels"] | {"extra": "allowed"} == {
        "kubernetes.io/hostname": f"hyperpod-{fact.instance_id}",
        "node.kubernetes.io/instance-type": "ml.g5.12xlarge",
        "sagemaker.amazonaws.com/compute-type": "hyperpod",
        "sagemaker.amazonaws.com/cluster-name": "ml-cluster",
        "sagemaker.amazonaws.com/instance-group-name": "workers",
        "sagemaker.amazonaws.com/node-health-status": "Schedulable",
        "extra": "allowed",
    }
    assert node["status"]["capacity"] == {
        "cpu": "48",
        "memory": "192Gi",
        "nvidia.com/gpu": "4",
        "pods": "110",
        "vpc.amazonaws.com/efa": "1",
    }
    assert node["status"]["allocatable"]["cpu"] == "44610m"
    assert node["status"]["conditions"][0]["status"] == "True"
    assert fact.status == "Running"


@pytest.mark.parametrize(
    ("vcpu", "gib", "cpu_milli", "memory_gib"),
    [(1, 4, 600, 2.3), (2, 4, 1450, 2.3), (4, 16, 3250, 11.7), (48, 192, 44610, 164.18), (96, 2048, 89730, 1890.26)],
)
def test_the_estimate_is_the_clis(vcpu: int, gib: int, cpu_milli: int, memory_gib: float) -> None:
    offered = estimated_allocatable({"cpu": vcpu * 1000, "memory": gib * GIBIBYTE})
    assert offered["cpu"] == cpu_milli
    assert round(offered["memory"] / GIBIBYTE, 2) == memory_gib


def test_own_numbers_win_over_the_estimate() -> None:
    own = {"cpu": 40_000, "memory": 160 * GIBIBYTE, "nvidia.com/gpu": 4}
    world = World(options={"allocatable": {"ml.g5.12xlarge": own}})
    world.fleet.set_target(workers(1))
    assert world.node()["status"]["allocatable"]["cpu"] == "40"
    assert world.node()["status"]["capacity"]["cpu"] == "48"


def test_one_thread_a_core_halves_the_cpus() -> None:
    world = World()
    world.fleet.set_target(workers(1, threads_per_core=1))
    assert world.node()["status"]["capacity"]["cpu"] == "24"


def test_new_instances_are_pending_until_they_join() -> None:
    world = World(options={"join_seconds": 180})
    world.fleet.set_target(workers(2))
    assert [fact.status for fact in world.fleet.nodes()] == ["Pending", "Pending"]
    assert world.store.list("nodes") == []
    assert world.fleet.next_due() == datetime(2026, 11, 20, 9, 3, tzinfo=UTC)
    world.pass_seconds(180)
    assert [fact.status for fact in world.fleet.nodes()] == ["Running", "Running"]
    assert len(world.store.list("nodes")) == 2
    assert world.fleet.next_due() is None


def test_a_lower_target_terminates_the_latest() -> None:
    world = World()
    world.fleet.set_target(workers(3))
    before = [fact.instance_id for fact in world.fleet.nodes()]
    world.fleet.set_target(workers(1))
    assert [fact.instance_id for fact in world.fleet.nodes()] == before[:1]
    assert len(world.store.list("nodes")) == 1


def test_deleted_nodes_lower_the_target() -> None:
    world = World()
    world.fleet.set_target(workers(3))
    world.fleet.delete_nodes([world.fleet.nodes()[0].instance_id])
    assert world.fleet.groups()[0].target_count == 2
    assert len(world.store.list("nodes")) == 2


def test_a_failed_node_is_labelled_and_tainted_and_no_longer_ready() -> None:
    world = World()
    world.fleet.set_target(workers(1))
    world.pass_seconds(60)
    world.fleet.fail(world.node()["metadata"]["name"])
    node = world.node()
    assert node["metadata"]["labels"][NODE_HEALTH] == "UnschedulablePendingReplacement"
    assert node["metadata"]["labels"]["sagemaker.amazonaws.com/fault-types"] == "NvidiaGPUXidError"
    assert node["spec"]["taints"] == [{"key": NODE_HEALTH, "value": "Unschedulable", "effect": "NoSchedule"}]
    assert node["status"]["conditions"][0] == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": "2026-11-20T09:01:00Z",
    }


def test_a_recovered_node_is_as_before() -> None:
    world = World()
    world.fleet.set_target(workers(1))
    healthy = world.node()
    world.fleet.fail(healthy["metadata"]["name"], status="Failure")
    assert world.fleet.nodes()[0].status == "Failure"
    world.fleet.recover(healthy["metadata"]["name"])
    assert world.node()["metadata"]["labels"] == healthy["metadata"]["labels"]
    assert world.node()["spec"] == healthy["spec"]
    assert world.fleet.nodes()[0].status == "Running"


def test_a_replaced_node_is_another_instance() -> None:
    world = World()
    world.fleet.set_target(workers(2))
    first = world.fleet.nodes()[0].instance_id
    new = world.fleet.replace_node(first)
    assert first not in [fact.instance_id for fact in world.fleet.nodes()]
    assert new in [fact.instance_id for fact in world.fleet.nodes()]
    assert len(world.store.list("nodes")) == 2


def test_cordon_taint_and_label_show_on_the_node() -> None:
    world = World()
    world.fleet.set_target(workers(1))
    name = world.node()["metadata"]["name"]
    world.fleet.cordon(name)
    world.fleet.taint(name, {"key": "maintenance", "value": "", "effect": "NoSchedule"})
    world.fleet.label(name, {"rack": "7"})
    node = world.node()
    assert node["spec"]["unschedulable"] is True
    assert node["spec"]["taints"][0]["key"] == "maintenance"
    assert node["metadata"]["labels"]["rack"] == "7"
    world.fleet.cordon(name, cordoned=False)
    assert "unschedulable" not in world.node()["spec"]


def test_an_unknown_node_is_an_error() -> None:
    with pytest.raises(KeyError, match="no node hyperpod-i-0"):
        World().fleet.cordon("hyperpod-i-0")


def test_an_instance_that_has_not_joined_cannot_fail() -> None:
    world = World(options={"join_seconds": 60})
    world.fleet.set_target(workers(1))
    with pytest.raises(ValueError, match="has not joined"):
        world.fleet.fail(world.fleet.nodes()[0].instance_id)
