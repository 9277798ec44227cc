"""What CloudTrail tells the default bus about changes, and HyperPod's own events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from taskgov_embedded.sagemaker.clusters import HyperPodCluster
    from taskgov_embedded.stack import Stack


def create(client: Any, cluster: HyperPodCluster, name: str) -> str:
    made: str = client.create_compute_quota(
        Name=name,
        ClusterArn=cluster.arn,
        ComputeQuotaConfig={"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "VCpu": 2.5}]},
        ComputeQuotaTarget={"TeamName": "team-a"},
    )["ComputeQuotaId"]
    return made


def trail(stack: Stack) -> list[dict[str, Any]]:
    stack.run_until_quiet()
    events = [one.detail["event"] for one in stack.timeline.of("event")]
    return [one["detail"] for one in events if one["detail-type"] == "AWS API Call via CloudTrail"]


def test_a_create_shows_request_and_response_with_lowered_names(stack: Stack, cluster: HyperPodCluster) -> None:
    quota = create(stack.client("sagemaker"), cluster, "q")
    (detail,) = trail(stack)
    assert detail["eventSource"] == "sagemaker.amazonaws.com"
    assert detail["eventName"] == "CreateComputeQuota"
    assert detail["requestParameters"]["computeQuotaConfig"] == {
        "computeQuotaResources": [{"instanceType": "ml.g5.8xlarge", "vCpu": 2.5}]
    }
    assert detail["responseElements"]["computeQuotaId"] == quota
    assert detail["userIdentity"]["type"] == "IAMUser"
    assert "errorCode" not in detail


def test_an_event_comes_after_its_delay(stack: Stack, cluster: HyperPodCluster) -> None:
    stack.sagemaker.trail.delay_seconds = 90
    start = stack.clock.now
    create(stack.client("sagemaker"), cluster, "q")
    trail(stack)
    (event,) = stack.timeline.of("event")
    assert (event.time - start).total_seconds() == 90
    assert event.detail["event"]["detail"]["eventTime"] == start.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_update_and_delete_name_no_cluster(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    quota = create(client, cluster, "q")
    stack.run_until_quiet()
    client.update_compute_quota(ComputeQuotaId=quota, TargetVersion=1)
    stack.run_until_quiet()
    client.delete_compute_quota(ComputeQuotaId=quota)
    update, delete = trail(stack)[1:]
    assert update["requestParameters"] == {"computeQuotaId": quota, "targetVersion": 1}
    assert update["responseElements"]["computeQuotaVersion"] == 2
    assert (delete["requestParameters"], delete["responseElements"]) == ({"computeQuotaId": quota}, None)


def test_a_failed_call_has_an_error_code(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    create(client, cluster, "q")
    with pytest.raises(ClientError):
        create(client, cluster, "q")
    assert [one.get("errorCode") for one in trail(stack)] == [None, "ConflictException"]


def test_a_role_is_reported_with_the_role_behind_its_session(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client_of("MachineRole", "sagemaker")
    with pytest.raises(ClientError):
        create(client, cluster, "q")
    (detail,) = trail(stack)
    assert detail["errorCode"] == "AccessDenied"
    issuer = detail["userIdentity"]["sessionContext"]["sessionIssuer"]
    assert issuer["arn"] == stack.resolved("Machine").properties["RoleArn"]


def test_reads_leave_no_event(stack: Stack, cluster: HyperPodCluster) -> None:
    stack.client("sagemaker").list_compute_quotas()
    stack.client("sagemaker").describe_cluster(ClusterName=cluster.name)
    assert trail(stack) == []


def test_changes_of_the_cluster_are_reported(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    client.batch_delete_cluster_nodes(ClusterName=cluster.name, NodeIds=[cluster.port.nodes()[0].instance_id])
    assert [one["eventName"] for one in trail(stack)] == ["BatchDeleteClusterNodes"]


def test_hyperpods_own_events_have_their_documented_form(stack: Stack, cluster: HyperPodCluster) -> None:
    stack.sagemaker.emit_cluster_state_change(cluster)
    stack.sagemaker.emit_node_health(cluster, "i-0123456789abcdef0", healthy=False, reason="fault")
    stack.sagemaker.emit_cluster_event(cluster, "e1", {"ResourceType": "Instance", "EventLevel": "Info"})
    change, health, event = (one.detail["event"] for one in stack.timeline.of("event"))
    assert change["resources"] == [cluster.arn]
    assert change["detail"]["ClusterStatus"] == "InService"
    assert isinstance(change["detail"]["CreationTime"], int)
    assert change["detail"]["InstanceGroups"][0]["CurrentCount"] == 4
    assert health["detail"]["HealthSummary"]["HealthStatus"] == "Unhealthy"
    assert event["detail"]["EventDetails"]["ResourceType"] == "Instance"
