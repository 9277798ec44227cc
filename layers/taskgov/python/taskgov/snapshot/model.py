"""What is known about one cluster at one moment: the only input of every decision.

`read_snapshot` builds it, `allocation`, `audit` and `explain` take it. Times are aware datetimes in UTC. Resource
amounts are integers in the units of `taskgov.quantities` (cpu in milli, memory in bytes, everything else in units).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import AwareDatetime

from taskgov.findings import Finding
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
)
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.identity import Claim, StateStamp
from taskgov.snapshot.records import (
    UNKNOWN_AUTHOR,
    AppliedPolicy,
    AppliedQuota,
    Authorship,
    QuotaEdit,
    RefusedWrite,
)
from taskgov.snapshot.reservations import Reservation
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
    training_plan: str | None = None
    """ARN of the training plan that its instances are of (TrainingPlanArn)."""


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
    """SageMaker ClusterInstanceStatus, e.g. `Running`; None when only Kubernetes lists the node."""
    in_kubernetes: bool = True
    ready: bool = True
    cordoned: bool = False
    health: str | None = None
    """Label `sagemaker.amazonaws.com/node-health-status`."""
    deep_health_check: str | None = None
    """Label `sagemaker.amazonaws.com/deep-health-check-status`."""
    mig_state: str | None = None
    taints: tuple[Taint, ...] = ()
    joined_at: AwareDatetime | None = None
    healthy_since: AwareDatetime | None = None
    """When the automation saw it turn healthy; None while it is not, or if it was healthy in the first snapshot."""
    unhealthy_since: AwareDatetime | None = None
    """When the automation saw it turn unhealthy; None while it is healthy, and for a node never seen healthy."""
    allocatable: Mapping[str, int] = field(default_factory=dict)
    found_healthy: bool = False
    """It was healthy when the automation read the cluster for the first time: it counted at once."""
    turns: tuple[AwareDatetime, ...] = ()
    """When it turned healthy or unhealthy, oldest first; the state before the first turn is `found_healthy`."""
    looked_before: tuple[AwareDatetime | None, ...] = ()
    """For each turn, the last snapshot before it: the node turned after that time. None if it is not known."""
    unreadable: bool = False
    """Its Kubernetes object cannot be read: it counts as in the previous snapshot (`taskgov.snapshot.memory`)."""
    first_look: AwareDatetime | None = None
    """When the automation read the cluster for the first time, if the node ran then and Kubernetes had it not."""
    ec2_state: str | None = None
    """What EC2 says of a lost machine of a plain EKS cluster: `running`, `terminated`, ..., `not-found` where it has no
    such instance, or `removed-by-auto-scaling`; None when EC2 was not asked, or did not answer."""
    reservation: str | None = None
    """The training plan (ARN) or the Capacity Block (id of its Capacity Reservation) to which it belongs."""
    leaves_at: AwareDatetime | None = None
    """When that takes it back (`taskgov.snapshot.reservations`): from then on it does not count."""


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
    period_start: AwareDatetime
    gpu_hours: float
    period: str = "month"
    """Which of the team's budgets it is: `day`, `week` or `month`."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class KueueObjects:
    """The scheduler's own objects, trimmed to the fields that decisions use, in the API's form."""

    resource_flavors: tuple[KubernetesObject, ...] = ()
    cohorts: tuple[KubernetesObject, ...] = ()
    cluster_queues: tuple[KubernetesObject, ...] = ()
    local_queues: tuple[KubernetesObject, ...] = ()
    priority_classes: tuple[KubernetesObject, ...] = ()
    workloads: tuple[KubernetesObject, ...] = ()
    limit_ranges: tuple[KubernetesObject, ...] = ()
    runtime_classes: tuple[KubernetesObject, ...] = ()
    """Like LimitRanges no objects of Kueue's, but it reads them: they say what pods ask for."""
    manager_image: str = ""
    """The image of Kueue's manager (`taskgov.snapshot.kueue_manager`); empty where it was not read."""
    manager_silence: str = ""
    """Why the manager's image could not be read; empty where it was, and in a snapshot of before it was requested."""


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """What is known of the configuration of Kueue's manager; nothing of it in a snapshot from before it was read."""

    configuration: Mapping[str, Any] | None = None
    """The parts of Kueue's Configuration that change decisions, in its own form; None when it was not read."""
    unread: str = ""
    """Why it could not be read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a decision about one cluster may use."""

    cluster: ClusterFacts
    taken_at: AwareDatetime
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
    """Why the document cannot be used; `policy` is None then."""
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
    """The identity of the records that the snapshot was made with; None before the first snapshot of a run."""
    claims: tuple[Claim, ...] = ()
    """The stacks that have tagged the cluster as theirs, the one that governs it first."""
    unreadable: tuple[UnreadableItem, ...] = ()
    """Items of the table that cannot be read; what they say of a quota is not known."""
    unreadable_objects: tuple[UnreadableObject, ...] = ()
    """Objects of Kubernetes that cannot be read and are left out (`taskgov.snapshot.readable`)."""
    authorship: Authorship = UNKNOWN_AUTHOR
    """Who is behind the policy document that is in force."""
    ec2_silence: str = ""
    """Why EC2 says nothing of lost nodes of a plain EKS cluster; empty when it answered, or was not asked."""
    auto_scaling_silence: str = ""
    """Why Auto Scaling says nothing of lost nodes that EC2 has running; empty when it answered, or was not asked."""
    unseen: tuple[Unseen, ...] = ()
    """What the rights of the person who took it did not show; none in a snapshot of a function."""
    manager: ManagerSettings = ManagerSettings()
    reservations: tuple[Reservation, ...] = ()
    """What its machines were bought with for a time, by id; none in a snapshot from before they were read."""
    policy_reviewed: str = ""
    """Digest of the changes that were reviewed with the document (`changes_sha256`); empty where none were."""

    @property
    def instance_types(self) -> InstanceTypeTable:
        """The instance types that are known, and those that the policy document adds."""
        return self.policy.instance_type_table() if self.policy else InstanceTypeTable()
