"""The HyperPod side of SageMaker: clusters, nodes, compute quotas and the cluster policy."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError

from taskgov.adapters.errors import translated
from taskgov.backends.hyperpod_eks.listed import read_lists_as_sent
from taskgov.backends.hyperpod_eks.sent import keep_what_was_sent, with_unknown_members
from taskgov.backends.hyperpod_eks.training_plans import training_plans_of
from taskgov.errors import NotFoundError, UpstreamError
from taskgov.hyperpod.limits import ENTITY_NAME, matcher
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.ports import OnUnreadableObject, Written
from taskgov.snapshot.forms import first_fault
from taskgov.snapshot.leaving import Reserved
from taskgov.snapshot.unreadable import COMPUTE_QUOTA, SCHEDULER_CONFIG, UnreadableObject, UnreadableObjectError

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

Model = TypeVar("Model", ComputeQuota, ClusterSchedulerConfig)

GONE = "Deleted"
LISTED_WHOLE: Final = frozenset({"ComputeQuotaConfig", "ComputeQuotaVersion", "ClusterArn"})
"""Members with which a summary says all that describing says."""
_POLICY_ID: Final = "ClusterSchedulerConfigId"
PAGE = 100
"""The most that a list call gives at once; a resource has at most 50 tags."""
MAX_PAGES = 1000
"""100,000 items: more than a cluster has, so that a list without end is noticed."""


class HyperPodEks:
    """The `ClusterBackend` port over SageMaker's API. Lists are paged 100 at a time, the API's maximum."""

    def __init__(
        self, client: "SageMakerClient", governed: Callable[[], Callable[[str], bool]] = lambda: lambda _: True
    ) -> None:
        """Take the client, and what says of a cluster's name whether it is among `clusters`."""
        self._client = client
        self._governed = governed
        keep_what_was_sent(client)
        read_lists_as_sent(client)

    def clusters(self, on_unreadable: OnUnreadableObject | None = None) -> list[str]:
        """Return the ARNs of all clusters that are governed, in the API's order."""
        is_governed = self._governed()
        found: list[str] = []
        for summary in self._pages("list_clusters", "ClusterSummaries"):
            with leaving_out(on_unreadable):
                if is_governed(_member("Cluster", summary, "ClusterName")):
                    found.append(_member("Cluster", summary, "ClusterArn"))
        return found

    def knows(self, cluster_arn: str) -> bool:
        """Return whether there is such a cluster."""
        try:
            self.describe_cluster(cluster_arn)
        except NotFoundError:
            return False
        return True

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        """Return DescribeCluster's answer.

        Raises NotFoundError without a call for a name that no HyperPod cluster can have, such as `ml_cluster`:
        SageMaker refuses it as invalid.
        """
        if not cluster.startswith("arn:") and not matcher(ENTITY_NAME.pattern)(cluster):
            raise NotFoundError(f"cluster {cluster}: a HyperPod cluster cannot have this name")
        with translated(f"describe cluster {cluster}"):
            return self._client.describe_cluster(ClusterName=cluster)

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        """Return all node summaries."""
        return self._pages("list_cluster_nodes", "ClusterNodeSummaries", ClusterName=cluster)

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        """Return the cluster's quotas, by name.

        A summary carries the whole configuration; where its optional members are missing, or it has another form, the
        quota is described.
        """
        quotas: list[ComputeQuota] = []
        for summary in self._pages("list_compute_quotas", "ComputeQuotaSummaries", ClusterArn=cluster_arn):
            with leaving_out(on_unreadable):
                quotas += self._listed(summary)
        return tuple(sorted((quota for quota in quotas if quota.status != GONE), key=lambda quota: quota.name))

    def _listed(self, summary: object) -> list[ComputeQuota]:
        try:
            if isinstance(summary, Mapping) and summary.keys() >= LISTED_WHOLE:
                return [_quota(summary)]
        except UnreadableObjectError as error:
            if not error.odd.name:
                raise
        try:
            return [self.quota(_member(COMPUTE_QUOTA, summary, "ComputeQuotaId"))]
        except NotFoundError:  # a list may still show one that is gone by then
            return []

    def quota(self, compute_quota_id: str) -> ComputeQuota:
        """Return one quota at its current version."""
        with translated(f"describe compute quota {compute_quota_id}"):
            answer = self._client.describe_compute_quota(ComputeQuotaId=compute_quota_id)
        return _quota(answer)

    def scheduler_config(
        self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None
    ) -> ClusterSchedulerConfig | None:
        """Return the cluster policy, or None. Summaries carry no SchedulerConfig, so it is described.

        A list may still show one that is gone by then.
        """
        summaries = self._pages(
            "list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries", ClusterArn=cluster_arn
        )
        found: list[tuple[bool, str]] = []
        for summary in summaries:
            with leaving_out(on_unreadable):
                status, own = (_member(SCHEDULER_CONFIG, summary, name) for name in ("Status", _POLICY_ID))
                # What is being deleted comes last: another may have been created in its place.
                found += [(status == "Deleting", own)] if status != GONE else []
        for _, own in sorted(found):
            with leaving_out(on_unreadable), suppress(NotFoundError):
                return self.scheduler_config_by_id(own)
        return None

    def scheduler_config_by_id(self, scheduler_config_id: str) -> ClusterSchedulerConfig:
        """Return one cluster policy at its current version."""
        with translated(f"describe cluster scheduler config {scheduler_config_id}"):
            answer = self._client.describe_cluster_scheduler_config(ClusterSchedulerConfigId=scheduler_config_id)
        return _validated(SCHEDULER_CONFIG, ClusterSchedulerConfig, answer)

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

    def keeps_quotas_in_cluster(self, cluster_arn: str) -> bool:  # noqa: ARG002 - the port's signature
        """Say no: SageMaker keeps them."""
        return False

    def tags(self, cluster_arn: str) -> Mapping[str, str]:
        """Return all tags."""
        with translated(f"list the tags of {cluster_arn}"):
            answer = self._client.list_tags(ResourceArn=cluster_arn, MaxResults=PAGE)
        return {tag["Key"]: tag["Value"] for tag in answer["Tags"]}

    def put_tag(self, cluster_arn: str, key: str, value: str) -> None:
        """Set one tag."""
        with translated(f"tag {cluster_arn} with {key}"):
            self._client.add_tags(ResourceArn=cluster_arn, Tags=[{"Key": key, "Value": value}])

    def remove_tag(self, cluster_arn: str, key: str) -> None:
        """Take one tag away."""
        with translated(f"take the tag {key} off {cluster_arn}"):
            self._client.delete_tags(ResourceArn=cluster_arn, TagKeys=[key])

    def asks_about_machines(self, cluster_arn: str) -> bool:  # noqa: ARG002 - the port's signature
        """Say no: SageMaker lists the machines of a cluster, and replaces them itself."""
        return False

    def machine_states(self, cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        """Return nothing: `cluster_nodes` is the only source."""
        return {}

    def machines_being_removed(self, cluster_arn: str, instance_ids: Sequence[str]) -> frozenset[str]:  # noqa: ARG002 - the port's signature
        """Return nothing: `cluster_nodes` is the only source."""
        return frozenset()

    def reserved(self, cluster_arn: str, training_plans: Sequence[str]) -> Reserved:  # noqa: ARG002 - the port's signature
        """Return the training plans."""
        return training_plans_of(self._client, training_plans)

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


@contextmanager
def leaving_out(on_unreadable: OnUnreadableObject | None) -> Iterator[None]:
    """Leave out what cannot be read, and report it; raise UnreadableObjectError where there is nowhere to report it."""
    try:
        yield
    except UnreadableObjectError as error:
        if on_unreadable is None:
            raise
        on_unreadable(error.odd)


def _member(kind: str, structure: object, name: str) -> str:
    """Return a member that is text. Raises UnreadableObjectError."""
    found = structure.get(name) if isinstance(structure, Mapping) else None
    if not isinstance(found, str) or not found:
        raise UnreadableObjectError(UnreadableObject.of(kind, structure, f"{name}: there is no such text"))
    return found


def _quota(answer: Mapping[str, Any]) -> ComputeQuota:
    return with_unknown_members(_validated(COMPUTE_QUOTA, ComputeQuota, answer), answer)


def _validated(kind: str, model: type[Model], answer: Mapping[str, Any]) -> Model:
    """Return the structure. Raises UnreadableObjectError."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise UnreadableObjectError(UnreadableObject.of(kind, answer, first_fault(error))) from error


def _structure(model: ComputeQuotaConfig | ComputeQuotaTarget | SchedulerConfig) -> Any:
    return model.to_api()
