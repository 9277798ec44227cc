"""A cluster, and the service that keeps its quotas: the calls of its backend and of its Kubernetes API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.snapshot.leaving import Reserved
from taskgov.snapshot.model import KubernetesObject, KueueObjects, ManagerSettings
from taskgov.snapshot.unreadable import UnreadableObject

OnUnreadableObject = Callable[[UnreadableObject], None]
"""Takes note of what a backend says in a form that cannot be read; without it that is an UnreadableObjectError."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach a cluster's Kubernetes API: the ARN of the EKS cluster that orchestrates it."""

    eks_cluster_arn: str


class KubernetesApi(Protocol):
    """Reads of one cluster's Kubernetes API, as raw objects trimmed to what decisions use."""

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        """Return the Node objects. Raises ThrottledError, UpstreamError, NotFoundError."""
        ...

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        """Return Kueue's objects. Raises ThrottledError, UpstreamError, NotFoundError."""
        ...

    def manager_settings(self, cluster: ClusterAccess) -> ManagerSettings:
        """Return the configuration of Kueue's manager, or why it is not to be had: it is not there, or may not be read.

        Raises ThrottledError, UpstreamError.
        """
        ...


Kept = TypeVar("Kept")
"""What the caller makes of a Workload as it arrives."""


@dataclass(frozen=True, slots=True)
class WorkloadsKnown:
    """What an earlier read found: all workloads at a resource version, in one version of Kueue's API."""

    api_version: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class WorkloadsRead(Generic[Kept]):
    """The workloads as they are at a resource version: those that changed since an earlier read, or all of them."""

    api_version: str
    resource_version: str
    """"" where it cannot be followed from, or need not be: there are so few that a list is as short."""
    changed: Mapping[tuple[str, str], Kept | None]
    """Namespace and name -> what was made of it, None for one that was deleted."""
    is_whole: bool
    """All workloads are in `changed`; without it, the others are as in the previous read."""
    objects_read: int
    """How many Workloads the server sent."""
    told: tuple[tuple[Kept, bool], ...] = ()
    """What was made of each state between, in order; True: it was deleted in it. Nothing where all were listed."""
    relisted: str = ""
    """Why all were listed although the changes were requested; empty where they were not."""


class WorkloadsApi(Protocol):
    """Reads Kueue's objects, and of the workloads only what changed."""

    def kueue_since(
        self,
        cluster: ClusterAccess,
        known: WorkloadsKnown | None,
        keep: Callable[[KubernetesObject], Kept],
    ) -> tuple[KueueObjects, WorkloadsRead[Kept]]:
        """Return Kueue's objects without the workloads, and what became of these since `known`.

        Raises ThrottledError, UpstreamError, NotFoundError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """What a write of a quota or scheduler config gave: its id and the version that holds now."""

    resource_id: str
    version: int


class QuotaStore(Protocol):
    """Who keeps a cluster's quotas and its policy. Every method raises ThrottledError, UpstreamError, NotFoundError."""

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        """Return the cluster's compute quotas, by name."""
        ...

    def quota(self, compute_quota_id: str) -> ComputeQuota:
        """Return one compute quota at its current version."""
        ...

    def scheduler_config(
        self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None
    ) -> ClusterSchedulerConfig | None:
        """Return the cluster policy, or None when the cluster has none."""
        ...

    def scheduler_config_by_id(self, scheduler_config_id: str) -> ClusterSchedulerConfig:
        """Return one cluster policy at its current version."""
        ...

    def create_quota(
        self, cluster_arn: str, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Create a quota. Raises ConflictError when the name or the team has one, InvalidRequestError."""
        ...

    def update_quota(
        self, quota_id: str, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Replace a quota's config, only at `target_version`. Raises ConflictError when it is stale."""
        ...

    def delete_quota(self, quota_id: str) -> None:
        """Delete a quota: only to undo what a failed run created."""
        ...

    def create_scheduler_config(self, cluster_arn: str, name: str, config: SchedulerConfig) -> Written:
        """Create the cluster policy. Raises ConflictError when there is one."""
        ...

    def update_scheduler_config(self, config_id: str, target_version: int, config: SchedulerConfig) -> Written:
        """Replace the cluster policy, only at `target_version`. Raises ConflictError when it is stale."""
        ...

    def delete_scheduler_config(self, config_id: str) -> None:
        """Delete a cluster policy: only to undo what a failed run created."""
        ...


class ClusterTags(Protocol):
    """The tags of a cluster, by its ARN. Raises NotFoundError, ThrottledError, UpstreamError."""

    def tags(self, cluster_arn: str) -> Mapping[str, str]:
        """Return all tags."""
        ...

    def put_tag(self, cluster_arn: str, key: str, value: str) -> None:
        """Set one tag; the others stay."""
        ...

    def remove_tag(self, cluster_arn: str, key: str) -> None:
        """Take one tag away; one that is not there is fine."""
        ...


class Machines(Protocol):
    """What is known of machines that a cluster has lost, where its list of nodes does not say it."""

    def asks_about_machines(self, cluster_arn: str) -> bool:
        """Return whether lost machines have to be asked about; False where `cluster_nodes` lists them."""
        ...

    def machine_states(self, cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the state (`running`, `terminated`, ...) of each instance that EC2 has, by id; the others are missing.

        Raises ThrottledError, UpstreamError: also when EC2 refuses, or the cluster is in another Region.
        """
        ...

    def machines_being_removed(self, cluster_arn: str, instance_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids of the instances that Auto Scaling terminates, while EC2 may still have them running.

        Raises ThrottledError, UpstreamError: also when Auto Scaling refuses, or the cluster is in another Region.
        """
        ...

    def reserved(self, cluster_arn: str, training_plans: Sequence[str]) -> Reserved:
        """Return what the cluster's machines were bought with for a time; `training_plans` are those of its groups.

        It raises nothing: what cannot be read says why (`Reservation.silence`), and stops nothing else.
        """
        ...


class ClusterBackend(QuotaStore, ClusterTags, Machines, Protocol):
    """The calls for a governed cluster besides its Kubernetes API: which there are, their nodes, their quotas.

    A folder of `taskgov.backends` implements it for one kind of cluster, `taskgov.backends.Backends` for all of them.
    """

    def clusters(self, on_unreadable: OnUnreadableObject | None = None) -> list[str]:
        """Return the ARNs of the clusters of this account and Region."""
        ...

    def knows(self, cluster_arn: str) -> bool:
        """Return whether there is such a cluster, and it is one that can be governed."""
        ...

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        """Return DescribeCluster's answer, in SageMaker's form, for a name or ARN. Raises NotFoundError."""
        ...

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        """Return all summaries of ListClusterNodes; none where only Kubernetes lists the nodes."""
        ...

    def keeps_quotas_in_cluster(self, cluster_arn: str) -> bool:
        """Return whether the cluster's own API gives its quotas: while that throttles, the cluster cannot be read."""
        ...
