"""Which backend keeps a cluster's quotas? Its ARN says: SageMaker for HyperPod clusters, Kueue's objects for EKS ones.

Everything above sees one `HyperPodApi`. An EKS cluster is governed when its policy document names it
(`backend: kueue`): nobody else lists such clusters, and the document is what governs them. A document in which a
mistake hides that still stands for its cluster, so that the mistake is told; unless it is a HyperPod cluster's, whose
own run tells it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from taskgov.errors import NotFoundError
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.policy.cluster import kueue_cluster_of, mistaken_cluster_of
from taskgov.ports import DocumentStore, HyperPodApi, OnUnreadableObject, QuotaStore, Written
from taskgov.services.failures import Failures, Raised
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov.snapshot.unreadable import UnreadableObject, UnreadableObjectError


@dataclass(frozen=True, slots=True)
class Governance:
    """The `HyperPodApi` port over both backends. `kueue` is made when a cluster of its kind is met."""

    sagemaker: HyperPodApi
    documents: DocumentStore
    kueue: Callable[[], QuotaStore]
    failures: Failures = field(default_factory=Raised)

    def clusters(self, on_unreadable: OnUnreadableObject | None = None) -> list[str]:
        """Return the ARNs of the HyperPod clusters, then of the EKS clusters that documents name.

        A document or a summary that cannot be read is reported, and leaves the other clusters in the list.
        """
        named = (self._try(name) for name in self.documents.policy_names())
        return [*self.sagemaker.clusters(on_unreadable or self._report), *(arn for arn in named if arn)]

    def knows(self, cluster_arn: str) -> bool:
        """Say whether SageMaker has the cluster, or a document governs it."""
        if is_eks(cluster_arn):
            return self._named(_name(cluster_arn)) == cluster_arn
        return self.sagemaker.knows(cluster_arn)

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        """Return DescribeCluster's answer; for an EKS cluster the part of it that such a cluster has."""
        if is_eks(cluster):
            return _described(cluster)
        try:
            return self.sagemaker.describe_cluster(cluster)
        except NotFoundError:
            arn = None if cluster.startswith("arn:") else self._named(cluster)
            if arn is None:
                raise
            return _described(arn)

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        """Return SageMaker's summaries; it knows nothing of the nodes of an EKS cluster."""
        return [] if is_eks(cluster) else self.sagemaker.cluster_nodes(cluster)

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

    def _of(self, arn_or_id: str) -> QuotaStore:
        """Return who keeps it: ids of the `kueue` backend begin with the cluster's ARN."""
        return self.kueue() if is_eks(arn_or_id) else self.sagemaker

    def _named(self, cluster_name: str) -> str | None:
        """Return the ARN of the EKS cluster that the document of this name governs, if it does."""
        stored = self.documents.policy(cluster_name)
        if stored is None:
            return None
        meant = kueue_cluster_of(stored.body)
        if meant is not None:
            return meant
        mistaken = mistaken_cluster_of(stored.body, cluster_name)
        return mistaken if mistaken and not self._has_hyperpod(cluster_name) else None

    def _try(self, cluster_name: str) -> str | None:
        try:
            return self._named(cluster_name)
        except Exception as error:  # noqa: BLE001 - whatever one document does, the others count; it is reported
            self.failures.report(cluster_name, "read the policy document", error)
            return None

    def _report(self, odd: UnreadableObject) -> None:
        self.failures.report(odd.name or ALL_CLUSTERS, "list the clusters", UnreadableObjectError(odd))

    def _has_hyperpod(self, cluster_name: str) -> bool:
        try:
            self.sagemaker.describe_cluster(cluster_name)
        except NotFoundError:
            return False
        return True


def is_eks(arn: str) -> bool:
    """Say whether an ARN, or an id that begins with one, is of an EKS cluster.

    Example:
        >>> is_eks("arn:aws:eks:us-east-1:111122223333:cluster/ml"), is_eks("abcdefghijkl")
        (True, False)

    """
    return arn.split(":")[2:3] == ["eks"]


def _described(arn: str) -> Mapping[str, Any]:
    return {
        "ClusterName": _name(arn),
        "ClusterArn": arn,
        "ClusterStatus": "InService",
        "Orchestrator": {"Eks": {"ClusterArn": arn}},
    }


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]
