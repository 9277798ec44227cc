"""An EKS cluster without HyperPod is governed when its policy document names it: nobody else lists such clusters.

A document with a mistake still counts for its cluster, so that the mistake is reported; unless another
backend has a cluster of this name, whose own run reports it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taskgov.adapters.errors import translated
from taskgov.backends.plain_eks.capacity_blocks import capacity_blocks
from taskgov.backends.plain_eks.machines import removed_by_auto_scaling, states_of
from taskgov.backends.plain_eks.quotas import KueueQuotas
from taskgov.errors import NoClusterNamedError, NotFoundError
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.backends import Backend
from taskgov.policy.cluster import eks_cluster_of, mistaken_cluster_of, names_hyperpod_cluster
from taskgov.policy.parse import parse_stored
from taskgov.snapshot.leaving import Reserved

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient

    from taskgov.adapters.kubernetes import ApiConnections
    from taskgov.ports import DocumentStore, OnUnreadableObject, PolicyText
    from taskgov.services.failures import Failures


class PlainEks(KueueQuotas):
    """The `ClusterBackend` port over documents, the cluster's own API, EKS, EC2 and Auto Scaling."""

    def __init__(
        self,
        connections: "ApiConnections",
        documents: "DocumentStore",
        failures: "Failures",
        eks: "Callable[[], EKSClient]",
        ec2: "Callable[[], EC2Client]",
        auto_scaling: "Callable[[], AutoScalingClient]",
        is_named_elsewhere: Callable[[str], bool],
    ) -> None:
        super().__init__(connections, self._table_of)
        self._documents = documents
        self._failures = failures
        self._eks = eks
        self._ec2 = ec2
        self._auto_scaling = auto_scaling
        self._is_named_elsewhere = is_named_elsewhere

    def clusters(self, on_unreadable: "OnUnreadableObject | None" = None) -> list[str]:  # noqa: ARG002 - it is reported
        """Return the ARNs that documents name. A document that cannot be read is reported; the others count."""
        found = map(self._try, self._documents.policy_names())
        return [arn for arn in found if arn is not None]

    def knows(self, cluster_arn: str) -> bool:
        """Return whether a document governs the cluster."""
        return self._governed(_name(cluster_arn)) == cluster_arn

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        """Return the part of DescribeCluster's answer that such a cluster has. A name is looked up in the documents.

        Raises NotFoundError where there is no document of the name, or it names a HyperPod cluster; NoClusterNamedError
        for a document that names no cluster, since one that was emptied is not a sign that its cluster was deleted.
        """
        arn = cluster if cluster.startswith("arn:") else self._named(cluster)
        return {
            "ClusterName": _name(arn),
            "ClusterArn": arn,
            "ClusterStatus": "InService",
            "Orchestrator": {"Eks": {"ClusterArn": arn}},
        }

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:  # noqa: ARG002 - the port's signature
        """Return nothing: only Kubernetes lists the nodes."""
        return []

    def keeps_quotas_in_cluster(self, cluster_arn: str) -> bool:  # noqa: ARG002 - the port's signature
        """Say yes: they are on Kueue's objects."""
        return True

    def tags(self, cluster_arn: str) -> Mapping[str, str]:
        """Return all tags. EKS shows them in DescribeCluster, which every run may call."""
        with translated(f"list the tags of {cluster_arn}"):
            return self._eks().describe_cluster(name=_name(cluster_arn))["cluster"].get("tags", {})

    def put_tag(self, cluster_arn: str, key: str, value: str) -> None:
        """Set one tag."""
        with translated(f"tag {cluster_arn} with {key}"):
            self._eks().tag_resource(resourceArn=cluster_arn, tags={key: value})

    def remove_tag(self, cluster_arn: str, key: str) -> None:
        """Take one tag away."""
        with translated(f"take the tag {key} off {cluster_arn}"):
            self._eks().untag_resource(resourceArn=cluster_arn, tagKeys=[key])

    def asks_about_machines(self, cluster_arn: str) -> bool:  # noqa: ARG002 - the port's signature
        """Say yes: only EC2 shows what became of a node that is no longer listed."""
        return True

    def machine_states(self, cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the state of each instance that EC2 has."""
        return states_of(self._ec2(), cluster_arn, instance_ids)

    def machines_being_removed(self, cluster_arn: str, instance_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids of the instances that Auto Scaling terminates."""
        return removed_by_auto_scaling(self._auto_scaling(), cluster_arn, instance_ids)

    def reserved(self, cluster_arn: str, training_plans: Sequence[str]) -> Reserved:  # noqa: ARG002 - the port's signature
        """Return the Capacity Blocks, and which instances are in each."""
        return capacity_blocks(self._ec2, cluster_arn)

    def _named(self, cluster_name: str) -> str:
        """Return the ARN of the EKS cluster that a document governs. Raises NotFoundError, NoClusterNamedError."""
        stored = self._documents.policy(cluster_name)
        arn = None if stored is None else self._meant_by(stored, cluster_name)
        if arn is not None and _name(arn) == cluster_name:
            return arn
        if arn is not None:
            raise NoClusterNamedError(
                f"the document policies/{cluster_name}.yaml is of {arn}, whose document is policies/{_name(arn)}.yaml: "
                "it governs nothing; rename or correct it, or remove it"
            )
        if stored is None or names_hyperpod_cluster(stored.body, cluster_name):
            raise NotFoundError(f"cluster {cluster_name}: no policy document of this name governs an EKS cluster")
        raise NoClusterNamedError(
            f"the document policies/{cluster_name}.yaml names no cluster that it could govern: correct or remove it"
        )

    def _governed(self, cluster_name: str) -> str | None:
        """Return the ARN of the EKS cluster that the document of this name governs, if it does."""
        stored = self._documents.policy(cluster_name)
        return None if stored is None else self._meant_by(stored, cluster_name)

    def _meant_by(self, stored: "PolicyText", cluster_name: str) -> str | None:
        meant = eks_cluster_of(stored.body, Backend.KUEUE)
        if meant is not None:
            return meant
        mistaken = mistaken_cluster_of(stored.body, cluster_name)
        return mistaken if mistaken and not self._is_named_elsewhere(cluster_name) else None

    def _try(self, cluster_name: str) -> str | None:
        try:
            return self._governed(cluster_name)
        except Exception as error:  # noqa: BLE001 - whatever one document does, the others count; it is reported
            self._failures.report(cluster_name, "read the policy document", error)
            return None

    def _table_of(self, cluster_arn: str) -> InstanceTypeTable:
        """Return what instance types offer: the document may know more than the built-in table, if it can be used."""
        stored = self._documents.policy(_name(cluster_arn))
        document = parse_stored(stored.body).document if stored else None
        return document.instance_type_table() if document else InstanceTypeTable()


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]
