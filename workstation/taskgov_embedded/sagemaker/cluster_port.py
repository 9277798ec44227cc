"""The interface of the emulated account to the cluster behind a HyperPod cluster.

The SageMaker side (`taskgov_embedded.sagemaker`) answers ListClusterNodes, DescribeCluster and UpdateCluster out of
this port; a simulated cluster implements it. `StaticCluster` is the smallest implementation: nodes that only change
when asked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

NodeStatus = Literal[
    "Running", "Failure", "Pending", "ShuttingDown", "SystemUpdating", "DeepHealthCheckInProgress", "NotFound"
]
GroupStatus = Literal["InService", "Creating", "Updating", "Failed", "Degraded", "SystemUpdating", "Deleting"]


@dataclass(frozen=True, slots=True)
class NodeFact:
    """One instance as HyperPod sees it. `status` is a ClusterInstanceStatus: a faulted node may still be `Running`."""

    instance_id: str
    instance_type: str
    group: str
    status: NodeStatus
    launch_time: datetime
    message: str | None = None
    private_dns_hostname: str | None = None


@dataclass(frozen=True, slots=True)
class GroupFact:
    """One instance group: what was requested (`target_count`) and how it is doing."""

    name: str
    instance_type: str
    target_count: int
    status: GroupStatus = "InService"
    threads_per_core: int = 2
    training_plan: str | None = None
    """ARN of the training plan of its instances."""


class ClusterPort(Protocol):
    """The nodes and instance groups of one cluster, and the two ways SageMaker changes them."""

    def nodes(self) -> Sequence[NodeFact]:
        """Every instance that SageMaker still lists, in any order."""
        ...

    def groups(self) -> Sequence[GroupFact]:
        """Every instance group, in the order in which DescribeCluster shows them."""
        ...

    def set_target(self, group: GroupFact) -> None:
        """Take a group's new target (a new name is a new group); nodes come or go in the cluster's own time."""
        ...

    def delete_nodes(self, instance_ids: Sequence[str]) -> None:
        """Remove these instances and lower their groups' targets; the ids are known to exist."""
        ...


def instance_id(group: str, ordinal: int) -> str:
    """Return a stable id of the form that the API demands (`i-` and 17 hexadecimal digits).

    >>> instance_id("workers", 0)
    'i-0910e82c83729a72d'
    """
    return "i-0" + hashlib.sha256(f"{group}/{ordinal}".encode()).hexdigest()[:16]


class StaticCluster:
    """A cluster whose targets are met at once: enough for tests of everything that is not the cluster."""

    def __init__(self, groups: Iterable[GroupFact], launch_time: datetime) -> None:
        self._groups: dict[str, GroupFact] = {}
        self._nodes: dict[str, NodeFact] = {}
        self._launched: dict[str, int] = {}
        self._launch_time = launch_time
        for group in groups:
            self.set_target(group)

    def nodes(self) -> Sequence[NodeFact]:
        """Every node, by instance id."""
        return tuple(self._nodes.values())

    def groups(self) -> Sequence[GroupFact]:
        """Every group, oldest first."""
        return tuple(self._groups.values())

    def set_target(self, group: GroupFact) -> None:
        """Launch or terminate (the latest first) until the group has its target."""
        self._groups[group.name] = group
        own = [node for node in self._nodes.values() if node.group == group.name]
        for node in own[group.target_count :]:
            del self._nodes[node.instance_id]
        for _ in range(group.target_count - len(own)):
            self._launch(group)

    def delete_nodes(self, instance_ids: Sequence[str]) -> None:
        """Terminate these nodes and lower the targets of their groups by as many."""
        for node_id in instance_ids:
            group = self._groups[self._nodes.pop(node_id).group]
            self._groups[group.name] = replace(group, target_count=group.target_count - 1)

    def set_status(self, node_id: str, status: NodeStatus, message: str | None = None) -> None:
        """Let a node fail or recover, as HyperPod would report it."""
        self._nodes[node_id] = replace(self._nodes[node_id], status=status, message=message)

    def _launch(self, group: GroupFact) -> None:
        ordinal = self._launched.get(group.name, 0)
        self._launched[group.name] = ordinal + 1
        node_id = instance_id(group.name, ordinal)
        self._nodes[node_id] = NodeFact(node_id, group.instance_type, group.name, "Running", self._launch_time)
