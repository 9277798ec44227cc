"""HyperPod clusters and nodes as the API shows them, and the two ways to change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import ClientError

from taskgov_embedded.sagemaker.cluster_port import GroupFact, StaticCluster

if TYPE_CHECKING:
    from taskgov_embedded.sagemaker.clusters import HyperPodCluster
    from taskgov_embedded.stack import Stack


def port(cluster: HyperPodCluster) -> StaticCluster:
    return cast("StaticCluster", cluster.port)


def test_a_cluster_is_found_by_name_and_by_arn(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    for name in (cluster.name, cluster.arn):
        described = client.describe_cluster(ClusterName=name)
        assert described["Orchestrator"] == {
            "Eks": {"ClusterArn": "arn:aws:eks:us-east-1:111122223333:cluster/ml-cluster"}
        }
        assert described["NodeRecovery"] == "Automatic"
        (group,) = described["InstanceGroups"]
        assert (group["InstanceType"], group["CurrentCount"], group["TargetCount"]) == ("ml.g5.8xlarge", 4, 4)
    assert len(cluster.id) == 12
    (summary,) = client.list_clusters()["ClusterSummaries"]
    assert summary["ClusterArn"] == cluster.arn
    with pytest.raises(client.exceptions.ResourceNotFound):
        client.describe_cluster(ClusterName="no")


def test_nodes_have_instance_ids_of_the_apis_form(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    nodes = client.list_cluster_nodes(ClusterName=cluster.name)["ClusterNodeSummaries"]
    assert {(one["InstanceGroupName"], one["InstanceStatus"]["Status"]) for one in nodes} == {("workers", "Running")}
    node = client.describe_cluster_node(ClusterName=cluster.arn, NodeId=nodes[0]["InstanceId"])["NodeDetails"]
    assert node["InstanceType"] == "ml.g5.8xlarge"
    with pytest.raises(client.exceptions.ResourceNotFound):
        client.describe_cluster_node(ClusterName=cluster.arn, NodeId="i-00000000000000000")


def test_a_failed_node_says_so(stack: Stack, cluster: HyperPodCluster) -> None:
    one = port(cluster).nodes()[0].instance_id
    port(cluster).set_status(one, "Failure", "gone")
    details = stack.client("sagemaker").describe_cluster_node(ClusterName=cluster.name, NodeId=one)["NodeDetails"]
    assert details["InstanceStatus"] == {"Status": "Failure", "Message": "gone"}


def test_an_update_sets_targets_and_makes_groups(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    asked = {
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-x/y", "OnCreate": "a.sh"},
        "ExecutionRole": "arn:aws:iam::111122223333:role/hyperpod",
    }
    client.update_cluster(
        ClusterName=cluster.name,
        InstanceGroups=[
            {"InstanceGroupName": "workers", "InstanceType": "ml.g5.8xlarge", "InstanceCount": 6, **asked},
            {"InstanceGroupName": "more", "InstanceType": "ml.p6-b200.48xlarge", "InstanceCount": 1, **asked},
        ],
    )
    assert [(one.name, one.target_count) for one in port(cluster).groups()] == [("workers", 6), ("more", 1)]
    assert len(client.list_cluster_nodes(ClusterName=cluster.name)["ClusterNodeSummaries"]) == 7
    client.update_cluster(ClusterName=cluster.name, InstanceGroupsToDelete=["more"])
    assert len(client.list_cluster_nodes(ClusterName=cluster.name)["ClusterNodeSummaries"]) == 6


def test_nodes_are_added_and_deleted_in_batches(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    added = client.batch_add_cluster_nodes(
        ClusterName=cluster.name,
        NodesToAdd=[
            {"InstanceGroupName": "workers", "IncrementTargetCountBy": 2},
            {"InstanceGroupName": "nobody", "IncrementTargetCountBy": 1},
        ],
    )
    assert [one["Status"] for one in added["Successful"]] == ["Pending", "Pending"]
    assert [one["ErrorCode"] for one in added["Failed"]] == ["InstanceGroupNotFound"]
    one = port(cluster).nodes()[0].instance_id
    deleted = client.batch_delete_cluster_nodes(ClusterName=cluster.name, NodeIds=[one, "i-00000000000000000"])
    assert deleted["Successful"] == [one]
    assert [failed["Code"] for failed in deleted["Failed"]] == ["NodeIdNotFound"]
    assert port(cluster).groups()[0].target_count == 5


def test_only_a_cluster_in_continuous_mode_takes_single_nodes(stack: Stack, cluster: HyperPodCluster) -> None:
    cluster.provisioning_mode = None
    with pytest.raises(ClientError, match="Continuous"):
        stack.client("sagemaker").batch_add_cluster_nodes(
            ClusterName=cluster.name, NodesToAdd=[{"InstanceGroupName": "workers", "IncrementTargetCountBy": 1}]
        )


def test_the_eks_cluster_behind_it_is_described(stack: Stack) -> None:
    stack.eks.register_cluster("ml-cluster", "https://127.0.0.1:6443", "Q0E=")
    client = stack.client("eks")
    described = client.describe_cluster(name="ml-cluster")["cluster"]
    assert (described["endpoint"], described["certificateAuthority"]) == ("https://127.0.0.1:6443", {"data": "Q0E="})
    addon = "amazon-sagemaker-hyperpod-taskgovernance"
    assert client.describe_addon(clusterName="ml-cluster", addonName=addon)["addon"]["status"] == "ACTIVE"
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_cluster(name="no")
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_addon(clusterName="ml-cluster", addonName="no")


def test_groups_of_a_static_cluster_follow_their_targets(stack: Stack) -> None:
    static = StaticCluster([GroupFact("a", "ml.g5.xlarge", 2)], stack.clock.now)
    static.set_target(GroupFact("a", "ml.g5.xlarge", 1))
    static.set_target(GroupFact("a", "ml.g5.xlarge", 3))
    assert len({node.instance_id for node in static.nodes()}) == 3
