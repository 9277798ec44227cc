"""All backends behind one port: each call goes to the one that keeps the cluster's quotas."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskgov.errors import NotFoundError
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.ports import ClusterBackend, OnUnreadableObject, Written
from taskgov.services.failures import Failures
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov.snapshot.leaving import Reserved
from taskgov.snapshot.unreadable import UnreadableObject, UnreadableObjectError


@dataclass(frozen=True, slots=True)
class Backends:
    """The `ClusterBackend` port over all backends, by their names in the registry's order."""

    by_name: Mapping[str, ClusterBackend]
    name_of: Callable[[str], str]
    """Returns the backend of a cluster's ARN, or of the id of a quota or cluster policy."""
    failures: Failures

    def clusters(self, on_unreadable: OnUnreadableObject | None = None) -> list[str]:
        """Return the ARNs of the clusters of all backends, in the registry's order.

        What cannot be read of one cluster is reported, and leaves the others in the list.
        """
        return [arn for backend in self.by_name.values() for arn in backend.clusters(on_unreadable or self._report)]

    def knows(self, cluster_arn: str) -> bool:
        """Return whether there is such a cluster, and it is one that can be governed."""
        return self._of(cluster_arn).knows(cluster_arn)

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        """Return the description of a cluster; a name is the first backend's that has it. Raises NotFoundError."""
        if cluster.startswith("arn:"):
            return self._of(cluster).describe_cluster(cluster)
        first: NotFoundError | None = None
        for backend in self.by_name.values():
            try:
                return backend.describe_cluster(cluster)
            except NotFoundError as error:
                first = first or error
        raise first or NotFoundError(f"cluster {cluster}: no backend is registered")

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        """Return the summaries of the nodes."""
        return self._of(cluster).cluster_nodes(cluster)

    def keeps_quotas_in_cluster(self, cluster_arn: str) -> bool:
        """Return whether quotas are read from the cluster's own API."""
        return self._of(cluster_arn).keeps_quotas_in_cluster(cluster_arn)

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        """Return the cluster's quotas."""
        return self._of(cluster_arn).quotas(cluster_arn, on_unreadable)

    def quota(self, compute_quota_id: str) -> ComputeQuota:
        """Return one quota."""
        return self._of(compute_quota_id).quota(compute_quota_id)

    def scheduler_config(
        self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None
    ) -> ClusterSchedulerConfig | None:
        """Return the cluster policy."""
        return self._of(cluster_arn).scheduler_config(cluster_arn, on_unreadable)

    def scheduler_config_by_id(self, scheduler_config_id: str) -> ClusterSchedulerConfig:
        """Return the cluster policy of this id."""
        return self._of(scheduler_config_id).scheduler_config_by_id(scheduler_config_id)

    def create_quota(
        self, cluster_arn: str, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Create a quota."""
        return self._of(cluster_arn).create_quota(cluster_arn, name, config, target)

    def update_quota(
        self, quota_id: str, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Replace a quota's config."""
        return self._of(quota_id).update_quota(quota_id, target_version, config, target)

    def delete_quota(self, quota_id: str) -> None:
        """Delete a quota."""
        self._of(quota_id).delete_quota(quota_id)

    def create_scheduler_config(self, cluster_arn: str, name: str, config: SchedulerConfig) -> Written:
        """Create the cluster policy."""
        return self._of(cluster_arn).create_scheduler_config(cluster_arn, name, config)

    def update_scheduler_config(self, config_id: str, target_version: int, config: SchedulerConfig) -> Written:
        """Replace the cluster policy."""
        return self._of(config_id).update_scheduler_config(config_id, target_version, config)

    def delete_scheduler_config(self, config_id: str) -> None:
        """Delete the cluster policy."""
        self._of(config_id).delete_scheduler_config(config_id)

    def tags(self, cluster_arn: str) -> Mapping[str, str]:
        """Return all tags of the cluster."""
        return self._of(cluster_arn).tags(cluster_arn)

    def put_tag(self, cluster_arn: str, key: str, value: str) -> None:
        """Set one tag."""
        self._of(cluster_arn).put_tag(cluster_arn, key, value)

    def remove_tag(self, cluster_arn: str, key: str) -> None:
        """Take one tag away."""
        self._of(cluster_arn).remove_tag(cluster_arn, key)

    def asks_about_machines(self, cluster_arn: str) -> bool:
        """Return whether lost machines have to be asked about."""
        return self._of(cluster_arn).asks_about_machines(cluster_arn)

    def machine_states(self, cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the state of each instance that is known."""
        return self._of(cluster_arn).machine_states(cluster_arn, instance_ids)

    def machines_being_removed(self, cluster_arn: str, instance_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids of the instances that Auto Scaling terminates."""
        return self._of(cluster_arn).machines_being_removed(cluster_arn, instance_ids)

    def reserved(self, cluster_arn: str, training_plans: Sequence[str]) -> Reserved:
        """Return what the cluster's machines were bought with for a time."""
        return self._of(cluster_arn).reserved(cluster_arn, training_plans)

    def _of(self, arn_or_id: str) -> ClusterBackend:
        return self.by_name[self.name_of(arn_or_id)]

    def _report(self, odd: UnreadableObject) -> None:
        self.failures.report(odd.name or ALL_CLUSTERS, "list the clusters", UnreadableObjectError(odd))
