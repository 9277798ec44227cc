"""The HyperPod side of SageMaker: clusters, nodes, compute quotas and the cluster policy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskgov.adapters.errors import translated
from taskgov.errors import NotFoundError, UpstreamError
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

GONE = "Deleted"
PAGE = 100
MAX_PAGES = 1000
"""100,000 items: more than a cluster has, so that a list without end is noticed."""


class SageMaker:
    """The `HyperPodApi` port over boto3. List calls are paged 100 at a time, the API's maximum."""

    def __init__(self, client: "SageMakerClient") -> None:
        self._client = client

    def clusters(self) -> list[str]:
        """Return the ARNs of all clusters, in the API's order."""
        return [summary["ClusterArn"] for summary in self._pages("list_clusters", "ClusterSummaries")]

    def knows(self, cluster_arn: str) -> bool:
        """Say whether there is such a cluster."""
        try:
            self.describe_cluster(cluster_arn)
        except NotFoundError:
            return False
        return True

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        """Return DescribeCluster's answer."""
        with translated(f"describe cluster {cluster}"):
            return self._client.describe_cluster(ClusterName=cluster)

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        """Return all node summaries."""
        return self._pages("list_cluster_nodes", "ClusterNodeSummaries", ClusterName=cluster)

    def quotas(self, cluster_arn: str) -> tuple[ComputeQuota, ...]:
        """Return the cluster's quotas, by name.

        A summary carries the whole configuration; where its optional members are missing, the quota is described.
        """
        summaries = self._pages("list_compute_quotas", "ComputeQuotaSummaries", ClusterArn=cluster_arn)
        quotas = (
            ComputeQuota.model_validate(summary)
            if {"ComputeQuotaConfig", "ComputeQuotaVersion", "ClusterArn"} <= summary.keys()
            else self.quota(summary["ComputeQuotaId"])
            for summary in summaries
        )
        return tuple(sorted((quota for quota in quotas if quota.status != GONE), key=lambda quota: quota.name))

    def quota(self, compute_quota_id: str) -> ComputeQuota:
        """Return one quota at its current version."""
        with translated(f"describe compute quota {compute_quota_id}"):
            answer = self._client.describe_compute_quota(ComputeQuotaId=compute_quota_id)
        return ComputeQuota.model_validate(answer)

    def scheduler_config(self, cluster_arn: str) -> ClusterSchedulerConfig | None:
        """Return the cluster policy, or None. Summaries carry no SchedulerConfig, so it is described.

        A list may still show one that is gone by then.
        """
        summaries = self._pages(
            "list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries", ClusterArn=cluster_arn
        )
        found = [summary for summary in summaries if summary["Status"] != GONE]
        # What is being deleted comes last: another may have been created in its place.
        for summary in sorted(found, key=lambda each: (each["Status"] == "Deleting", each["ClusterSchedulerConfigId"])):
            try:
                return self.scheduler_config_by_id(summary["ClusterSchedulerConfigId"])
            except NotFoundError:
                continue
        return None

    def scheduler_config_by_id(self, scheduler_config_id: str) -> ClusterSchedulerConfig:
        """Return one cluster policy at its current version."""
        with translated(f"describe cluster scheduler config {scheduler_config_id}"):
            answer = self._client.describe_cluster_scheduler_config(ClusterSchedulerConfigId=scheduler_config_id)
        return ClusterSchedulerConfig.model_validate(answer)

    def create_quota(
        self, cluster_arn: str, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Create a quota; its first version is 1."""
        with translated(f"create compute quota {name}"):
            answer = self._client.create_compute_quota(
                Name=name,
                ClusterArn=cluster_arn,
                ComputeQuotaConfig=_structure(config),
                ComputeQuotaTarget=_structure(target),
                ActivationState="Enabled",
            )
        return Written(answer["ComputeQuotaId"], 1)

    def update_quota(
        self, quota_id: str, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Replace a quota's configuration whole: what Update does with an absent part is not documented."""
        with translated(f"update compute quota {quota_id} at version {target_version}"):
            answer = self._client.update_compute_quota(
                ComputeQuotaId=quota_id,
                TargetVersion=target_version,
                ComputeQuotaConfig=_structure(config),
                ComputeQuotaTarget=_structure(target),
            )
        return Written(quota_id, answer["ComputeQuotaVersion"])

    def delete_quota(self, quota_id: str) -> None:
        """Delete a quota."""
        with translated(f"delete compute quota {quota_id}"):
            self._client.delete_compute_quota(ComputeQuotaId=quota_id)

    def create_scheduler_config(self, cluster_arn: str, name: str, config: SchedulerConfig) -> Written:
        """Create the cluster policy; its first version is 1."""
        with translated(f"create cluster scheduler config {name}"):
            answer = self._client.create_cluster_scheduler_config(
                Name=name, ClusterArn=cluster_arn, SchedulerConfig=_structure(config)
            )
        return Written(answer["ClusterSchedulerConfigId"], 1)

    def update_scheduler_config(self, config_id: str, target_version: int, config: SchedulerConfig) -> Written:
        """Replace the cluster policy."""
        with translated(f"update cluster scheduler config {config_id} at version {target_version}"):
            answer = self._client.update_cluster_scheduler_config(
                ClusterSchedulerConfigId=config_id, TargetVersion=target_version, SchedulerConfig=_structure(config)
            )
        return Written(config_id, answer["ClusterSchedulerConfigVersion"])

    def delete_scheduler_config(self, config_id: str) -> None:
        """Delete a cluster policy."""
        with translated(f"delete cluster scheduler config {config_id}"):
            self._client.delete_cluster_scheduler_config(ClusterSchedulerConfigId=config_id)

    def _pages(self, operation: str, member: str, **arguments: str) -> list[Mapping[str, Any]]:
        client: Any = self._client  # the stubs type each paginator by itself; here one loop serves four
        with translated(operation.replace("_", " ")):
            pages = client.get_paginator(operation).paginate(**arguments, PaginationConfig={"PageSize": PAGE})
            items: list[Mapping[str, Any]] = []
            # botocore notices a NextToken that follows itself, and not one that comes again later.
            seen: set[str] = set()
            for page in pages:
                items += page[member]
                token = page.get("NextToken", "")
                if token in seen or len(seen) >= MAX_PAGES:
                    raise UpstreamError(f"{operation}: the list does not end ({len(seen)} pages, NextToken {token!r})")
                seen |= {token} - {""}
            return items


def _structure(model: ComputeQuotaConfig | ComputeQuotaTarget | SchedulerConfig) -> Any:
    return model.to_api()
