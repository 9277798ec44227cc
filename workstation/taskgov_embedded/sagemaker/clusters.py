"""Answer the calls for HyperPod clusters and their nodes, out of the clusters that are registered.

moto's own clusters have other ARNs, other instance ids and no orchestrator, and refuse newer instance types. A cluster
here is a name, an id, an EKS cluster and a `ClusterPort`, which lists nodes and groups and takes new targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from taskgov.hyperpod.inferred import LIMIT_REACHED
from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.sagemaker import listing
from taskgov_embedded.sagemaker.cluster_port import GroupFact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.sagemaker.cluster_port import ClusterPort, NodeFact

EXECUTION_ROLE = "arn:aws:iam::111122223333:role/hyperpod-instances"
MOST_TAGS = 50
LIFE_CYCLE = {"SourceS3Uri": "s3://sagemaker-lifecycle/scripts", "OnCreate": "on_create.sh"}


@dataclass(slots=True)
class HyperPodCluster:
    """One cluster. `status` and `failure` may be changed to show a cluster that is being updated or has failed."""

    name: str
    arn: str
    eks_cluster_arn: str
    port: ClusterPort
    created: datetime
    status: str = "InService"
    failure: str | None = None
    node_recovery: str = "Automatic"
    provisioning_mode: str | None = "Continuous"
    tags: dict[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More members for the DescribeCluster answer, e.g. `TieredStorageConfig`."""

    @property
    def id(self) -> str:
        """The twelve characters at the end of the ARN."""
        return self.arn.rpartition("/")[2]

    def describe(self) -> dict[str, Any]:
        """Return the DescribeCluster answer."""
        answer: dict[str, Any] = {
            "ClusterArn": self.arn,
            "ClusterName": self.name,
            "ClusterStatus": self.status,
            "CreationTime": self.created,
            "InstanceGroups": [self._group(group) for group in self.port.groups()],
            "Orchestrator": {"Eks": {"ClusterArn": self.eks_cluster_arn}},
            "NodeRecovery": self.node_recovery,
        }
        if self.failure:
            answer["FailureMessage"] = self.failure
        if self.provisioning_mode:
            answer["NodeProvisioningMode"] = self.provisioning_mode
        return answer | dict(self.extra)

    def _group(self, group: GroupFact) -> dict[str, Any]:
        current = sum(node.group == group.name and node.status != "Pending" for node in self.port.nodes())
        answer: dict[str, Any] = {
            "CurrentCount": current,
            "TargetCount": group.target_count,
            "InstanceGroupName": group.name,
            "InstanceType": group.instance_type,
            "LifeCycleConfig": LIFE_CYCLE,
            "ExecutionRole": EXECUTION_ROLE,
            "ThreadsPerCore": group.threads_per_core,
            "Status": group.status,
        }
        if group.training_plan:
            answer["TrainingPlanArn"] = group.training_plan
        return answer | ({"ActiveOperations": {"Scaling": 1}} if current != group.target_count else {})


class Clusters:
    """All clusters of the account, by ARN."""

    def __init__(self, account: Account) -> None:
        self.by_arn: dict[str, HyperPodCluster] = {}
        self._account = account

    def register(self, cluster: HyperPodCluster) -> None:
        """Take a cluster in."""
        self.by_arn[cluster.arn] = cluster
        self._account.place.cluster_arns[cluster.name] = cluster.arn
        if cluster.eks_cluster_arn:
            self._account.place.eks_names[cluster.arn] = cluster.eks_cluster_arn.rpartition("/")[2]

    def operations(self) -> dict[str, Callable[[Call], Mapping[str, Any]]]:
        """Return the handlers by operation."""
        return {
            "ListClusters": self._list,
            "DescribeCluster": lambda call: self.find(call.params).describe(),
            "ListClusterNodes": self._list_nodes,
            "DescribeClusterNode": self._describe_node,
            "UpdateCluster": self._update,
            "BatchAddClusterNodes": self._add_nodes,
            "BatchDeleteClusterNodes": self._delete_nodes,
            "ListTags": self._list_tags,
            "AddTags": self._add_tags,
            "DeleteTags": self._delete_tags,
        }

    def find(self, params: Mapping[str, Any]) -> HyperPodCluster:
        """Return the cluster that `ClusterName` means, by name or ARN."""
        name = params["ClusterName"]
        for cluster in self.by_arn.values():
            if name in {cluster.name, cluster.arn}:
                return cluster
        raise AwsError("ResourceNotFound", f"Cluster with name {name} not found.")

    def _tagged(self, call: Call) -> HyperPodCluster:
        """Return the cluster whose tags are meant; other resources have none here."""
        arn = call.params["ResourceArn"]
        if arn not in self.by_arn:
            raise AwsError("ResourceNotFound", f"Resource {arn} not found.")
        return self.by_arn[arn]

    def _list_tags(self, call: Call) -> Mapping[str, Any]:
        return {"Tags": _as_list(self._tagged(call).tags)}

    def _add_tags(self, call: Call) -> Mapping[str, Any]:
        cluster = self._tagged(call)
        tags = cluster.tags | {tag["Key"]: tag["Value"] for tag in call.params["Tags"]}
        if len(tags) > MOST_TAGS:
            raise AwsError(LIMIT_REACHED, f"The maximum number of tags on a resource is {MOST_TAGS}.")
        cluster.tags = tags
        return {"Tags": _as_list(cluster.tags)}

    def _delete_tags(self, call: Call) -> Mapping[str, Any]:
        cluster = self._tagged(call)
        for key in call.params["TagKeys"]:
            cluster.tags.pop(key, None)
        return {}

    def _list(self, call: Call) -> Mapping[str, Any]:
        asked = call.params
        summaries = [
            {
                "ClusterArn": cluster.arn,
                "ClusterName": cluster.name,
                "CreationTime": cluster.created,
                "ClusterStatus": cluster.status,
            }
            for cluster in self.by_arn.values()
            if asked.get("NameContains", "") in cluster.name
        ]
        key = "ClusterName" if asked.get("SortBy") == "NAME" else "CreationTime"
        return listing.page(summaries, asked, "ClusterSummaries", "CreationTime", (key, "ClusterName"))

    def _list_nodes(self, call: Call) -> Mapping[str, Any]:
        asked = call.params
        cluster = self.find(asked)
        summaries = [
            _node_summary(node)
            for node in cluster.port.nodes()
            if asked.get("InstanceGroupNameContains", "") in node.group
        ]
        key = "InstanceGroupName" if asked.get("SortBy") == "NAME" else "LaunchTime"
        return listing.page(summaries, asked, "ClusterNodeSummaries", "LaunchTime", (key, "InstanceId"))

    def _describe_node(self, call: Call) -> Mapping[str, Any]:
        cluster = self.find(call.params)
        wanted = call.params.get("NodeId")
        for node in cluster.port.nodes():
            if node.instance_id == wanted:
                return {"NodeDetails": _node_summary(node) | {"LifeCycleConfig": LIFE_CYCLE}}
        raise AwsError("ResourceNotFound", f"Instance with ID {wanted} not found in cluster {cluster.name}.")

    def _update(self, call: Call) -> Mapping[str, Any]:
        cluster = self.find(call.params)
        known = {group.name: group for group in cluster.port.groups()}
        for asked in call.params.get("InstanceGroups", []):
            cluster.port.set_target(_asked_group(asked, known.get(asked["InstanceGroupName"])))
        for name in call.params.get("InstanceGroupsToDelete", []):
            if name not in known:
                raise AwsError("ValidationException", f"Instance group {name} does not exist.")
            cluster.port.set_target(replace(known[name], target_count=0, status="Deleting"))
        cluster.node_recovery = call.params.get("NodeRecovery", cluster.node_recovery)
        return {"ClusterArn": cluster.arn}

    def _add_nodes(self, call: Call) -> Mapping[str, Any]:
        """Raise the targets of groups; documented for clusters in Continuous provisioning only."""
        cluster = self.find(call.params)
        if cluster.provisioning_mode != "Continuous":
            raise AwsError("ValidationException", f"{cluster.name} is not in Continuous node provisioning mode.")
        if sum(added["IncrementTargetCountBy"] for added in call.params["NodesToAdd"]) > 50:
            raise AwsError("ValidationException", "A request can add 50 nodes in all.")
        known = {group.name: group for group in cluster.port.groups()}
        answer: dict[str, Any] = {"Successful": [], "Failed": []}
        for asked in call.params["NodesToAdd"]:
            name, more = asked["InstanceGroupName"], asked["IncrementTargetCountBy"]
            if name not in known:
                failure = {"InstanceGroupName": name, "ErrorCode": "InstanceGroupNotFound", "FailedCount": more}
                answer["Failed"].append(failure)
                continue
            target = known[name].target_count
            cluster.port.set_target(replace(known[name], target_count=target + more))
            answer["Successful"] += [
                {"NodeLogicalId": f"{name}-{target + place}", "InstanceGroupName": name, "Status": "Pending"}
                for place in range(more)
            ]
        return answer

    def _delete_nodes(self, call: Call) -> Mapping[str, Any]:
        cluster = self.find(call.params)
        known = {node.instance_id for node in cluster.port.nodes()}
        asked = call.params.get("NodeIds", [])
        there = [node_id for node_id in asked if node_id in known]
        cluster.port.delete_nodes(there)
        failed = [
            {"Code": "NodeIdNotFound", "Message": f"{node_id} is not in {cluster.name}", "NodeId": node_id}
            for node_id in asked
            if node_id not in known
        ]
        return ({"Successful": there} if there else {}) | ({"Failed": failed} if failed else {})

    def __iter__(self) -> Iterator[HyperPodCluster]:
        return iter(self.by_arn.values())


def _as_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _asked_group(asked: Mapping[str, Any], known: GroupFact | None) -> GroupFact:
    instance_type = asked.get("InstanceType") or (known.instance_type if known else None)
    if instance_type is None:
        raise AwsError("ValidationException", f"Instance group {asked['InstanceGroupName']} needs an InstanceType.")
    return GroupFact(
        name=asked["InstanceGroupName"],
        instance_type=instance_type,
        target_count=asked["InstanceCount"],
        threads_per_core=asked.get("ThreadsPerCore") or (known.threads_per_core if known else 2),
        training_plan=asked.get("TrainingPlanArn") or (known.training_plan if known else None),
    )


def _node_summary(node: NodeFact) -> dict[str, Any]:
    status = {"Status": node.status} | ({"Message": node.message} if node.message else {})
    summary = {
        "InstanceGroupName": node.group,
        "InstanceId": node.instance_id,
        "InstanceType": node.instance_type,
        "LaunchTime": node.launch_time,
        "InstanceStatus": status,
    }
    return summary | ({"PrivateDnsHostname": node.private_dns_hostname} if node.private_dns_hostname else {})
