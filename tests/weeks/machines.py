"""The small alphabets of the weeks: instance types, teams, machines; and how the document of a cluster is read."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from taskgov.policy.parse import ParsedPolicy, parse_policy
from taskgov.quantities import CPU, GIBIBYTE, GPU, MEMORY
from taskgov.snapshot.model import Node

BEGIN: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
NAME: Final = "ml-cluster"
G5: Final = "ml.g5.8xlarge"
"""1 GPU, 32 vCPU, 128 GiB."""
P4D: Final = "ml.p4d.24xlarge"
"""8 GPUs that can be partitioned, 96 vCPU, 1,152 GiB."""
C5: Final = "ml.c5.2xlarge"
"""No accelerator, 8 vCPU, 16 GiB."""
UNKNOWN_TYPE: Final = "ml.z9.4xlarge"
"""A type that no table has: 2 GPUs, 16 vCPU, 64 GiB."""
TYPES: Final = (G5, P4D, C5, UNKNOWN_TYPE)
MIXES: Final = ((G5,), (G5, C5), (P4D,), (G5, P4D), (P4D, C5), (G5, UNKNOWN_TYPE))
"""The types of a cluster."""
PROFILES: Final = ("mig-1g.5gb", "mig-3g.20gb")
TEAMS: Final = ("ant", "bee", "cat")
STRANGER: Final = "yak"
"""A team that is never in the document."""
POOL: Final = "shared-pool"
GPUS: Final[Mapping[str, int]] = {G5: 1, P4D: 8, C5: 0, UNKNOWN_TYPE: 2}
VCPUS: Final[Mapping[str, int]] = {G5: 32, P4D: 96, C5: 8, UNKNOWN_TYPE: 16}
MEMORIES: Final[Mapping[str, int]] = {G5: 128, P4D: 1152, C5: 16, UNKNOWN_TYPE: 64}
STATED: Final = {UNKNOWN_TYPE: {"vcpu": 16, "memoryGiB": 64, "gpu": 2}}
"""The `instanceTypes` section that says what nobody knows."""
SICKNESSES: Final[tuple[Mapping[str, Any], ...]] = (
    {"cordoned": True},
    {"health": "Unschedulable"},
    {"ready": False},
    {"in_kubernetes": False, "instance_status": "Pending"},
)
WELL: Final[Mapping[str, Any]] = {
    "cordoned": False,
    "health": None,
    "ready": True,
    "in_kubernetes": True,
    "instance_status": None,
}


def node(instance_type: str, number: int, group: str | None = None) -> Node:
    """Return a machine in order; pods are offered a little less than it has."""
    offered = {
        CPU: VCPUS[instance_type] * 1000 - 110,
        MEMORY: MEMORIES[instance_type] * GIBIBYTE - GIBIBYTE // 2,
        **({GPU: GPUS[instance_type]} if GPUS[instance_type] else {}),
    }
    name = f"{instance_type.replace('.', '-')}-{number:03}"
    return Node(name=name, instance_type=instance_type, instance_group=group, allocatable=offered)


def job(team: str, number: int, instance_type: str, pods: int, priority: int, now: datetime) -> dict[str, Any]:
    """Return a workload whose pods take a GPU each, or half of a machine without GPUs."""
    requests = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    if not GPUS[instance_type]:
        requests = {"cpu": str(VCPUS[instance_type] // 2), "memory": "1Gi"}
    pod = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "nodeSelector": {"node.kubernetes.io/instance-type": instance_type},
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": f"job-{number}",
            "namespace": f"hyperpod-ns-{team}",
            "uid": f"uid-{number}",
            "creationTimestamp": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        },
        "spec": {
            "queueName": f"hyperpod-ns-{team}-localqueue",
            "active": True,
            "priority": priority,
            "podSets": [{"name": "main", "count": pods, "template": {"spec": pod}}],
        },
    }


def arn_of(told: Mapping[str, Any]) -> str:
    """Return the ARN of the cluster: with the backend kueue it is that of the EKS cluster."""
    if told.get("cluster", {}).get("backend") == "kueue":
        return f"arn:aws:eks:us-east-1:111122223333:cluster/{NAME}"
    return "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"


def document_of(told: Mapping[str, Any]) -> ParsedPolicy:
    """Return the document as a run reads it; none where nothing is written."""
    if not told:
        return ParsedPolicy(document=None, violations=(), warnings=())
    return _parsed(json.dumps(told))


@lru_cache(maxsize=64)
def _parsed(text: str) -> ParsedPolicy:
    return parse_policy(text)
