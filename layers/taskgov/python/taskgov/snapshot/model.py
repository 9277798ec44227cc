"""What is known about one cluster at one moment: the only input of every decision.

`read_snapshot` builds it, `allocation`, `audit` and `explain` take it. Times are aware datetimes in UTC. Resource
amounts are integers in the units of `taskgov.quantities` (cpu in milli, memory in bytes, everything else in units).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from taskgov.findings import Finding
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    ResourceSharingConfig,
    SchedulerConfig,
)
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.identity import Claim, StateStamp
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableObject
from taskgov.snapshot.unseen import Unseen
from taskgov.violations import Violation

KubernetesObject = Mapping[str, Any]
"""One object as the Kubernetes API sends it, parsed from JSON."""


@dataclass(frozen=True, slots=True)
class GroupInstanceType:
    """One instance type of an instance group, with the threads that its cores run (1: multithreading is off)."""

    instance_type: str
    threads_per_core: int | None = None
    """None where SageMaker does not say: the type's default."""


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """A group of the cluster's machines; a flexible one has several instance types."""

    name: str
    instance_types: tuple[GroupInstanceType, ...] = ()
    current_count: int | None = None
    """How many instances it has (CurrentCount); None where SageMaker does not say."""
    target_count: int | None = None
    """How many it is to have (TargetCount); None where SageMaker does not say."""


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
    instance_groups: tuple[InstanceGroup, ...] = ()
    """Its instance groups, restricted ones too, by name; none in a snapshot that was taken before they were read."""


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
    """When the automation saw it turn healthy; None while it is not, or when it was so at the first look."""
    unhealthy_since: datetime | None = None
    """When the automation saw it turn unhealthy; None while it is healthy, and for a node never seen healthy."""
    allocatable: Mapping[str, int] = field(default_factory=dict)
    found_healthy: bool = False
    """It was healthy when the automation looked at the cluster for the first time: it counted at once."""
    turns: tuple[datetime, ...] = ()
    """When it turned healthy or unhealthy, oldest first; the state before the first turn is `found_healthy`."""
    looked_before: tuple[datetime | None, ...] = ()
    """For each turn, the last look before it: the node turned after that look. None when it is not known."""
    unreadable: bool = False
    """Its Kubernetes object cannot be read: it counts as it did at the look before (`taskgov.snapshot.memory`)."""
    first_look: datetime | None = None
    """When the automation looked at the cluster for the first time, if the node ran then and Kubernetes had it not."""
    ec2_state: str | None = None
    """What EC2 says of a lost machine of a plain EKS cluster: `running`, `terminated`, ..., or `not-found` where it has
    no such instance; None when EC2 was not asked, or did not answer."""


@dataclass(frozen=True, slots=True)
class PastQuota:
    """What a quota was until the automation changed it at that moment."""

    until: datetime
    config: ComputeQuotaConfig
    leased: Mapping[str, int] | None = None
    """Whole instances by type that leases brought (below zero: took) in `config`; None when it was not recorded."""
    demand: Mapping[str, int] | None = None
    """As in `AppliedQuota`."""


@dataclass(frozen=True, slots=True)
class AnnouncedWrite:
    """What this automation was about to write, and the version that the quota would get by it."""

    version: int
    config: ComputeQuotaConfig
    target: ComputeQuotaTarget
    began_from: ComputeQuotaConfig | None = None
    """As in `AppliedQuota`, for a low write."""
    sharing_within_budget: ResourceSharingConfig | None = None
    """As in `AppliedQuota`."""


@dataclass(frozen=True, slots=True)
class AppliedQuota:
    """What this automation last wrote to a quota, to tell its own writes from a person's."""

    compute_quota_id: str
    version: int
    config: ComputeQuotaConfig
    target: ComputeQuotaTarget
    plan_id: str
    at: datetime
    history: tuple[PastQuota, ...] | None = ()
    """Earlier configs, oldest first (`taskgov.allocation.applied_record`); None when they could not be read."""
    adopted: ComputeQuotaConfig | None = None
    """The edit by hand that was taken as the promise, if one was."""
    promise: str = ""
    """Digest of the document's promise at that time, to see that the document has changed since."""
    announced: AnnouncedWrite | None = None
    """A write that was about to be made; gone from the record once it is known to have taken effect."""
    began_from: ComputeQuotaConfig | None = None
    """What stood before the plan that wrote this, if this is the low one of its two writes; limits judge from there."""
    leased: Mapping[str, int] | None = None
    """Whole instances by type that leases bring (below zero: take) in `config`; None when it was not recorded."""
    demand: Mapping[str, int] | None = None
    """Whole instances by type that demand left of the promise, whatever was granted; None when it was not recorded."""
    sharing_within_budget: ResourceSharingConfig | None = None
    """How the team shares when no budget stops its borrowing; None when it was not recorded."""
    taken_over: bool = False
    """The record was lost, and this one was made of what stood: who wrote that, and why, is not known."""
    accepted_losses: Mapping[str, datetime] | None = None
    """By type: until when lost nodes are known to the person who approved this write; None when nobody was asked."""


def began_from(applied: AppliedQuota | None, version: int | None) -> ComputeQuotaConfig | None:
    """Return what stood before the path whose low write is the version that stands; None where that is no low write.

    A low write whose record was lost is known by its announcement.
    """
    if applied is None or version is None:
        return None
    if applied.version == version:
        return applied.began_from
    announced = applied.announced
    return announced.began_from if announced is not None and announced.version == version else None


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """What this automation last wrote to the cluster policy."""

    config_id: str
    version: int
    config: SchedulerConfig
    plan_id: str
    at: datetime


class RefusalError(StrEnum):
    """Why a write was refused for good: stable tokens."""

    LIMIT_REACHED = "limit-reached"
    VALIDATION = "validation"
    NOT_FOUND = "not-found"
    ACCESS_DENIED = "access-denied"
    FAILED_TO_SETTLE = "failed-to-settle"


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that the service refused for good, or that settled as failed: it is not asked for again for a while."""

    subject: str
    """What it was to write, as `taskgov.allocation.plan.Change.subject`."""
    name: str
    """The name of the quota or of the cluster policy."""
    team: str
    """The team of the quota; empty for the cluster policy."""
    kind: str
    """The value of its `taskgov.allocation.plan.ChangeKind`."""
    resource_id: str | None
    """None for a creation."""
    version: int | None
    """The version that it was made from; None for a creation."""
    wanted: str
    """Digest of what the plan wanted the subject to be in the end (`taskgov.allocation.refusals.wanted_of`)."""
    error: RefusalError
    because: str
    """What the service said."""
    plan_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ObservedUse:
    """What one team used of one instance type at most while it was observed."""

    team: str
    instance_type: str
    hours: float
    """How long it was observed, without a gap, up to now."""
    peak_instances: float
    """The most it held at any moment, in instances (by its largest resource)."""
    pending: bool = False
    """Whether work of the team is waiting for this type now."""


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """GPU-hours that one team used in the running period of its budget."""

    team: str
    period_start: datetime
    gpu_hours: float
    period: str = "month"
    """Which of the team's budgets it is: `day`, `week` or `month`."""


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
class Authorship:
    """Who is behind a version of a policy document, by `taskgov.people.Person.identity`."""

    author: str | None = None
    """Who put it into force through the signed entry; None where it was stored in any other way."""
    accepted_by: str | None = None
    """Who approved a plan that follows from it, when its author was not known."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a decision about one cluster may look at."""

    cluster: ClusterFacts
    taken_at: datetime
    nodes: tuple[Node, ...] = ()
    gone: tuple[Node, ...] = ()
    """Nodes that counted, and that neither Kubernetes nor SageMaker lists any more (`taskgov.allocation.mass_loss`)."""
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
    policy_findings: tuple[Finding, ...] = ()
    """What the reader of the policy document warned about."""
    observed_use: tuple[ObservedUse, ...] = ()
    budget_use: tuple[BudgetUse, ...] = ()
    applied_policy: AppliedPolicy | None = None
    refusals: tuple[RefusedWrite, ...] = ()
    """Writes that were refused, by subject; none in a snapshot that was taken before they were recorded."""
    state: StateStamp | None = None
    """The identity of the records that the snapshot was made with; None before the first look of a run."""
    claims: tuple[Claim, ...] = ()
    """The stacks that have marked the cluster as theirs, the one that governs it first."""
    unreadable: tuple[UnreadableItem, ...] = ()
    """Items of the table that cannot be read; what they say of a quota is not known."""
    unreadable_objects: tuple[UnreadableObject, ...] = ()
    """Objects of Kubernetes that cannot be read and are left out (`taskgov.snapshot.readable`)."""
    authorship: Authorship = Authorship()
    """Who is behind the policy document that is in force."""
    ec2_silence: str = ""
    """Why EC2 says nothing of lost nodes of a plain EKS cluster; empty when it answered, or was not asked."""
    unseen: tuple[Unseen, ...] = ()
    """What the rights of the person who took it did not show; none in a snapshot of a function."""

    @property
    def instance_types(self) -> InstanceTypeTable:
        """The instance types that are known, and those that the policy document adds."""
        return self.policy.instance_type_table() if self.policy else InstanceTypeTable()
