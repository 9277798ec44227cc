"""What is known about one cluster at one moment: the only input of every decision.

`read_snapshot` builds it, `allocation`, `audit` and `explain` take it. Times are aware datetimes in UTC. Resource
amounts are integers in the units of `taskgov.quantities` (cpu in milli, memory in bytes, everything else in units).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget
from taskgov.policy.document import PolicyDocument
from taskgov.policy.violations import Violation

KubernetesObject = Mapping[str, Any]
"""One object as the Kubernetes API sends it, parsed from JSON."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The governed cluster: who it is and what SageMaker says of its state (DescribeCluster)."""

    name: str
    arn: str
    status: str = "InService"
    eks_arn: str | None = None
    node_recovery: str | None = None
    memory_reserved_percent: int = 0
    """Share of node memory that tiered storage takes (TieredStorageConfig.InstanceMemoryAllocationPercentage)."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A Kubernetes node taint."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the cluster, as SageMaker (ListClusterNodes) and Kubernetes together describe it."""

    name: str
    instance_type: str
    instance_id: str | None = None
    instance_group: str | None = None
    instance_status: str | None = None
    """SageMaker ClusterInstanceStatus, e.g. `Running`; None when only Kubernetes knows the node."""
    in_kubernetes: bool = True
    ready: bool = True
    cordoned: bool = False
    health: str | None = None
    """Label `sagemaker.amazonaws.com/node-health-status`."""
    deep_health_check: str | None = None
    """Label `sagemaker.amazonaws.com/deep-health-check-status`."""
    mig_state: str | None = None
    taints: tuple[Taint, ...] = ()
    joined_at: datetime | None = None
    healthy_since: datetime | None = None
    """When the automation first saw it healthy without a break; None while it is not."""
    unhealthy_since: datetime | None = None
    """When the automation first saw it unhealthy without a break; None while it is healthy."""
    allocatable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AppliedQuota:
    """What this automation last wrote to a quota, to tell its own writes from a person's."""

    compute_quota_id: str
    version: int
    config: ComputeQuotaConfig
    target: ComputeQuotaTarget
    plan_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class QuotaEdit:
    """Who last changed a quota by hand, from the CloudTrail event."""

    compute_quota_id: str
    by: str
    at: datetime
    event_name: str


@dataclass(frozen=True, slots=True)
class KueueObjects:
    """The scheduler's own objects, trimmed to the fields that decisions use, in the API's form."""

    resource_flavors: tuple[KubernetesObject, ...] = ()
    cohorts: tuple[KubernetesObject, ...] = ()
    cluster_queues: tuple[KubernetesObject, ...] = ()
    local_queues: tuple[KubernetesObject, ...] = ()
    priority_classes: tuple[KubernetesObject, ...] = ()
    workloads: tuple[KubernetesObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a decision about one cluster may look at."""

    cluster: ClusterFacts
    taken_at: datetime
    nodes: tuple[Node, ...] = ()
    quotas: tuple[ComputeQuota, ...] = ()
    scheduler_config: ClusterSchedulerConfig | None = None
    kueue: KueueObjects = field(default_factory=KueueObjects)
    policy: PolicyDocument | None = None
    policy_version: str | None = None
    """S3 version id of the policy document, or None when there is none."""
    policy_violations: tuple[Violation, ...] = ()
    """Why the stored document could not be used; `policy` is None then."""
    applied: tuple[AppliedQuota, ...] = ()
    edits: tuple[QuotaEdit, ...] = ()
    stopped: bool | None = False
    """The stop switch; None when it could not be read, which guardrails take as stopped."""
