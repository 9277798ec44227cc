"""What does a HyperPod node look like to Kubernetes? And how much of it can pods have.

The simulated cluster keeps its machines as values and writes the Node objects that follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_URL, uuid5

from taskgov.hyperpod.names import CLUSTER_NAME_LABEL, INSTANCE_TYPE_LABEL, NODE_HEALTH, kubernetes_node_of
from taskgov.quantities import CPU, GIBIBYTE, MEMORY, PODS, format_quantity
from taskgov_embedded.cluster.objects import KubeObject, timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

GROUP_LABEL: Final = "sagemaker.amazonaws.com/instance-group-name"
FAULT_TYPES_LABEL: Final = "sagemaker.amazonaws.com/fault-types"
FAULT_REASONS_LABEL: Final = "sagemaker.amazonaws.com/fault-reasons"

SCHEDULABLE: Final = "Schedulable"
PENDING_REPLACEMENT: Final = "UnschedulablePendingReplacement"
HEALTH_TAINT: Final = {"key": NODE_HEALTH, "value": "Unschedulable", "effect": "NoSchedule"}

NODE_INFO: Final = {
    "architecture": "amd64",
    "containerRuntimeVersion": "containerd://1.7.27",
    "kernelVersion": "5.10.0-simulated",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.33.4-eks-simulated",
    "operatingSystem": "linux",
    "osImage": "Amazon Linux 2",
}

PODS_PER_NODE: Final = 110
"""What the kubelet takes by default."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One instance that has joined the cluster. Amounts are in the units of `taskgov.quantities`."""

    instance_id: str
    instance_type: str
    group: str
    joined_at: datetime
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    ready: bool = True
    ready_since: datetime | None = None
    """Since when it is ready or not; None means since it joined."""
    cordoned: bool = False
    health: str = SCHEDULABLE
    fault: str | None = None
    taints: tuple[Mapping[str, str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def node_name(self) -> str:
        """The node's name, as HyperPod forms it."""
        return kubernetes_node_of(self.instance_id)


def estimated_allocatable(capacity: Mapping[str, int]) -> dict[str, int]:
    """Return what pods can have of a node: capacity less what the HyperPod CLI reckons the system keeps.

    The CLI's estimate (sagemaker-hyperpod-cli, quota_allocation_util): cores keep 0.1, 0.3, 0.15, 0.1, 0.1 and 0.06 for
    each further one; memory keeps 0.5 GiB and a falling share of each further part. Devices are all for pods.

    Example:
        >>> offered = estimated_allocatable({"cpu": 48_000, "memory": 192 * 2**30, "nvidia.com/gpu": 4})
        >>> offered["cpu"], round(offered["memory"] / 2**30, 2), offered["nvidia.com/gpu"]
        (44610, 164.18, 4)

    """
    return {
        **capacity,
        CPU: max(0, capacity[CPU] - _kept_milli_cpu(capacity[CPU] // 1000)),
        MEMORY: max(0, capacity[MEMORY] - _kept_memory(capacity[MEMORY])),
    }


def node_object(machine: Machine, cluster_name: str) -> KubeObject:
    """Return the Node object of a machine."""
    spec: dict[str, Any] = {"providerID": f"aws:///usw2-az1/sagemaker/cluster/{cluster_name}-{machine.instance_id}"}
    taints = [*([HEALTH_TAINT] if machine.health != SCHEDULABLE else []), *machine.taints]
    if taints:
        spec["taints"] = taints
    if machine.cordoned:
        spec["unschedulable"] = True
    identity = str(uuid5(NAMESPACE_URL, machine.instance_id))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.node_name, "labels": _labels(machine, cluster_name)},
        "spec": spec,
        "status": {
            "capacity": _printed(machine.capacity),
            "allocatable": _printed(machine.allocatable),
            "conditions": [_ready_condition(machine)],
            "nodeInfo": {**NODE_INFO, **dict.fromkeys(("bootID", "machineID", "systemUUID"), identity)},
        },
    }


def _labels(machine: Machine, cluster_name: str) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": machine.node_name,
        INSTANCE_TYPE_LABEL: machine.instance_type,
        "sagemaker.amazonaws.com/compute-type": "hyperpod",
        CLUSTER_NAME_LABEL: cluster_name,
        GROUP_LABEL: machine.group,
        NODE_HEALTH: machine.health,
    }
    if machine.fault is not None:
        # The health-monitoring agent writes the plural, whatever the guide says.
        labels |= {FAULT_TYPES_LABEL: machine.fault, FAULT_REASONS_LABEL: machine.fault}
    return labels | dict(machine.labels)


def _ready_condition(machine: Machine) -> dict[str, str]:
    if machine.ready:
        said = {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    else:
        said = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    return {"type": "Ready", **said, "lastTransitionTime": timestamp(machine.ready_since or machine.joined_at)}


def _printed(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: format_quantity(name, amount) for name, amount in sorted({**amounts, PODS: PODS_PER_NODE}.items())}


def _kept_milli_cpu(cores: int) -> int:
    first = (300, 150, 100, 100)
    return 100 + sum(first[:cores]) + 60 * max(0, cores - len(first))


def _kept_memory(memory: int) -> int:
    kept, left = GIBIBYTE // 2, memory
    for part, percent in ((4, 30), (4, 25), (8, 20), (112, 17)):
        here = min(left, part * GIBIBYTE)
        kept += here * percent // 100
        left -= here
    return kept + left * 7 // 100
