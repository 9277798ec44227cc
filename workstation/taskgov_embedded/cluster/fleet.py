"""Which machines does the cluster have? Groups and their targets, instances that come, fail, recover and go.

This is the side that SageMaker sees (`cluster_port.ClusterPort`), and it keeps the Node objects that Kubernetes sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from taskgov_embedded.cluster.nodes import (
    PENDING_REPLACEMENT,
    SCHEDULABLE,
    Machine,
    estimated_allocatable,
    node_object,
)
from taskgov_embedded.sagemaker.cluster_port import GroupFact, NodeFact, instance_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov_embedded.cluster.objects import ObjectStore
    from taskgov_embedded.sagemaker.cluster_port import NodeStatus

DEFAULT_FAULT: Final = "NvidiaGPUXidError"
"""The fault that a node shows when none is named."""


@dataclass(frozen=True, slots=True)
class _Instance:
    fact: NodeFact
    joins_at: datetime
    machine: Machine | None = None


class Fleet:
    """The instances of one cluster. `allocatable` overrides the estimate for an instance type, in base units."""

    def __init__(
        self,
        store: ObjectStore,
        cluster_name: str,
        now: Callable[[], datetime],
        types: InstanceTypeTable,
        *,
        join_seconds: int = 0,
        allocatable: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        self._store = store
        self._cluster_name = cluster_name
        self._now = now
        self._types = types
        self._join_after = timedelta(seconds=join_seconds)
        self._allocatable = allocatable or {}
        self._groups: dict[str, GroupFact] = {}
        self._instances: dict[str, _Instance] = {}
        self._launched: dict[str, int] = {}

    def nodes(self) -> Sequence[NodeFact]:
        """Return every instance, those that are still to join among them, in the order of their launch."""
        return tuple(instance.fact for instance in self._instances.values())

    def groups(self) -> Sequence[GroupFact]:
        """Return every instance group, oldest first."""
        return tuple(self._groups.values())

    def set_target(self, group: GroupFact) -> None:
        """Take a group's target: missing instances are launched and join later, surplus ones, latest first, go."""
        self._groups[group.name] = group
        own = [node_id for node_id, instance in self._instances.items() if instance.fact.group == group.name]
        for node_id in own[group.target_count :]:
            self._terminate(node_id)
        for _ in range(group.target_count - len(own)):
            self._launch(group)
        self.join_due()

    def delete_nodes(self, instance_ids: Sequence[str]) -> None:
        """Remove these instances and lower their groups' targets."""
        for node_id in instance_ids:
            group = self._groups[self._terminate(node_id).fact.group]
            self._groups[group.name] = replace(group, target_count=group.target_count - 1)

    def join_due(self) -> None:
        """Let every instance whose time has come become a node."""
        for node_id, instance in list(self._instances.items()):
            if instance.machine is None and instance.joins_at <= self._now():
                fact = replace(instance.fact, status="Running")
                self._instances[node_id] = replace(instance, fact=fact)
                self._show(node_id, self._machine(fact))

    def next_due(self) -> datetime | None:
        """Return when the next instance joins."""
        return min(
            (instance.joins_at for instance in self._instances.values() if instance.machine is None), default=None
        )

    def fail(
        self,
        node: str,
        *,
        health: str = PENDING_REPLACEMENT,
        fault: str = DEFAULT_FAULT,
        ready: bool = False,
        status: NodeStatus = "Running",
    ) -> None:
        """Let a node fail: the health-monitoring agent labels and taints it; `ready=False` also loses its kubelet.

        `status` is what ListClusterNodes says; HyperPod may well still call the instance Running.
        """
        node_id = self._id_of(node)
        fact = replace(self._instances[node_id].fact, status=status, message=fault)
        self._instances[node_id] = replace(self._instances[node_id], fact=fact)
        self._change(node_id, health=health, fault=fault, ready=ready)

    def recover(self, node: str) -> None:
        """Let a failed node be well again (after a reboot, say)."""
        node_id = self._id_of(node)
        self._instances[node_id] = replace(
            self._instances[node_id], fact=replace(self._instances[node_id].fact, status="Running", message=None)
        )
        self._change(node_id, health=SCHEDULABLE, fault=None, ready=True)

    def replace_node(self, node: str) -> str:
        """Terminate a node and launch another one in its group; return the new instance id."""
        group = self._groups[self._terminate(self._id_of(node)).fact.group]
        node_id = self._launch(group)
        self.join_due()
        return node_id

    def take_back(self, node: str) -> None:
        """Terminate a node and launch none in its place, as AWS does at the end of a reservation."""
        self._terminate(self._id_of(node))

    def cordon(self, node: str, *, cordoned: bool = True) -> None:
        """Cordon a node, or let pods onto it again."""
        self._change(self._id_of(node), cordoned=cordoned)

    def taint(self, node: str, *taints: Mapping[str, str]) -> None:
        """Give a node exactly these taints, beside the one of its health."""
        self._change(self._id_of(node), taints=taints)

    def label(self, node: str, labels: Mapping[str, str]) -> None:
        """Give a node further labels."""
        node_id = self._id_of(node)
        machine = self._instances[node_id].machine
        self._change(node_id, labels={**(machine.labels if machine else {}), **labels})

    def _launch(self, group: GroupFact) -> str:
        ordinal = self._launched.get(group.name, 0)
        self._launched[group.name] = ordinal + 1
        node_id = instance_id(group.name, ordinal)
        fact = NodeFact(node_id, group.instance_type, group.name, "Pending", self._now())
        self._instances[node_id] = _Instance(fact, self._now() + self._join_after)
        return node_id

    def _terminate(self, node_id: str) -> _Instance:
        instance = self._instances.pop(node_id)
        if instance.machine is not None:
            self._store.delete("nodes", instance.machine.node_name)
        return instance

    def _machine(self, fact: NodeFact) -> Machine:
        capacity = self._capacity(fact)
        offered = self._allocatable.get(fact.instance_type) or estimated_allocatable(capacity)
        return Machine(fact.instance_id, fact.instance_type, fact.group, self._now(), capacity, offered)

    def _capacity(self, fact: NodeFact) -> dict[str, int]:
        """Return what the type has, at the threads per core of its group; what it has none of is not shown."""
        numbers = self._types.require(fact.instance_type).at_threads(self._groups[fact.group].threads_per_core)
        return {name: amount for name, amount in numbers.real_amounts().items() if amount}

    def _change(self, node_id: str, **fields: object) -> None:
        machine = self._instances[node_id].machine
        if machine is None:
            raise ValueError(f"{node_id} has not joined the cluster yet")
        changed = replace(machine, **fields)  # type: ignore[arg-type]
        if changed.ready != machine.ready:
            changed = replace(changed, ready_since=self._now())
        self._show(node_id, changed)

    def _show(self, node_id: str, machine: Machine) -> None:
        self._instances[node_id] = replace(self._instances[node_id], machine=machine)
        self._store.apply(node_object(machine, self._cluster_name))

    def _id_of(self, node: str) -> str:
        """Take a node's name or an instance id. Raises KeyError when there is none such."""
        node_id = node.removeprefix("hyperpod-")
        if node_id not in self._instances:
            raise KeyError(f"no node {node}")
        return node_id
