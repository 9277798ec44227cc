import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from taskgov.contracts.events import Hint, Ignored, Subject, parse_event
from taskgov.errors import MalformedEventError

EVENTS = Path(__file__).parents[2] / "events"
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
SAMPLE_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/s4mp1eclust3"
EXECUTION = "arn:aws:states:us-east-1:111122223333:execution:taskgov-reconcile:ml-cluster-7-0d1c2b3a"
OWN_ROLE = "arn:aws:iam::111122223333:role/taskgov-apply"
ADMIN = "arn:aws:sts::111122223333:assumed-role/PlatformAdmin/maria"
CLUSTER = Subject(cluster_arn=ARN, cluster_name="ml-cluster")
BY_NAME = Subject(cluster_name="ml-cluster")
BY_ARN = Subject(cluster_arn="arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl")
EVERYTHING = Subject(everything=True)
QUOTA = Subject(compute_quota_id="q0w1e2r3t4y5")
POLICY = Subject(scheduler_config_id="p9o8i7u6y5t4")

WANT = {
    "hyperpod_cluster_state_change": (CLUSTER, "cluster InService"),
    "hyperpod_cluster_state_change.flexible_group": (
        Subject(cluster_arn=SAMPLE_ARN, cluster_name="sample-cluster"),
        "cluster Updating",
    ),
    "hyperpod_node_health": (CLUSTER, "node i-0123456789abcdef0 Unhealthy"),
    "hyperpod_cluster_event": (CLUSTER, "Instance i-0123456789abcdef0 Info"),
    "hyperpod_cluster_event.no_capacity": (CLUSTER, "Instance gpu-workers Error"),
    "hyperpod_cluster_event.health": (CLUSTER, "Instance i-0123456789abcdef0 Unhealthy"),
    "cloudtrail_create_compute_quota": (
        Subject(cluster_arn=ARN, compute_quota_id="q0w1e2r3t4y5"),
        "CreateComputeQuota",
    ),
    "cloudtrail_update_compute_quota": (QUOTA, "UpdateComputeQuota"),
    "cloudtrail_delete_compute_quota": (QUOTA, "DeleteComputeQuota"),
    "cloudtrail_create_cluster_scheduler_config": (
        Subject(cluster_arn=ARN, scheduler_config_id="p9o8i7u6y5t4"),
        "CreateClusterSchedulerConfig",
    ),
    "cloudtrail_update_cluster_scheduler_config": (POLICY, "UpdateClusterSchedulerConfig"),
    "cloudtrail_delete_cluster_scheduler_config": (POLICY, "DeleteClusterSchedulerConfig"),
    "cloudtrail_update_cluster": (Subject(cluster_arn=ARN), "UpdateCluster"),
    "cloudtrail_update_cluster_software": (Subject(cluster_arn=ARN), "UpdateClusterSoftware"),
    "cloudtrail_batch_add_cluster_nodes": (BY_NAME, "BatchAddClusterNodes"),
    "cloudtrail_batch_delete_cluster_nodes": (BY_NAME, "BatchDeleteClusterNodes"),
    "cloudtrail_batch_replace_cluster_nodes": (BY_NAME, "BatchReplaceClusterNodes"),
    "cloudtrail_batch_reboot_cluster_nodes": (BY_NAME, "BatchRebootClusterNodes"),
    "s3_object_created": (BY_NAME, "Object Created: policies/ml-cluster.yaml"),
    "s3_object_deleted": (BY_NAME, "Object Deleted: policies/ml-cluster.yaml"),
    "step_functions_execution_status_change": (
        Subject(cluster_arn=ARN, execution_arn=EXECUTION),
        "ml-cluster-7-0d1c2b3a ended ABORTED",
    ),
    "step_functions_execution_status_change.no_input": (
        Subject(execution_arn=EXECUTION),
        "ml-cluster-7-0d1c2b3a ended ABORTED",
    ),
    "ec2_instance_state_change": (EVERYTHING, "EC2 Instance State-change Notification: i-0fedcba9876543210"),
    "ec2_spot_interruption_warning": (EVERYTHING, "EC2 Spot Instance Interruption Warning: i-0fedcba9876543210"),
    "ec2_rebalance_recommendation": (EVERYTHING, "EC2 Instance Rebalance Recommendation: i-0fedcba9876543210"),
    "ec2_capacity_reservation_interruption_warning": (
        EVERYTHING,
        "EC2 Capacity Reservation Instance Interruption Warning: i-0fedcba9876543210",
    ),
    "ec2_capacity_block_delivered": (EVERYTHING, "Capacity Block Reservation Delivered: cr-0123456789abcdef0"),
    "ec2_capacity_block_expiration_warning": (
        EVERYTHING,
        "Capacity Block Reservation Expiration Warning: cr-0123456789abcdef0",
    ),
    "ec2_capacity_block_expiration_warning.short": (
        EVERYTHING,
        "Capacity Block Expiration Warning: cr-0123456789abcdef0",
    ),
    "ec2_capacity_reservation_state": (EVERYTHING, "EC2 Capacity Reservation Expired: cr-0123456789abcdef0"),
    "autoscaling_launch_successful": (EVERYTHING, "EC2 Instance Launch Successful: i-0fedcba9876543210"),
    "autoscaling_launch_unsuccessful": (EVERYTHING, "EC2 Instance Launch Unsuccessful: i-0fedcba9876543210"),
    "autoscaling_terminate_successful": (EVERYTHING, "EC2 Instance Terminate Successful: i-0fedcba9876543210"),
    "autoscaling_terminate_unsuccessful": (EVERYTHING, "EC2 Instance Terminate Unsuccessful: i-0fedcba9876543210"),
    "autoscaling_launch_lifecycle_action": (EVERYTHING, "EC2 Instance-launch Lifecycle Action: i-0fedcba9876543210"),
    "autoscaling_terminate_lifecycle_action": (
        EVERYTHING,
        "EC2 Instance-terminate Lifecycle Action: i-0fedcba9876543210",
    ),
    "operator_reconcile_requested": (BY_NAME, "Reconcile Requested"),
    "order_run_ordered": (BY_ARN, "Run Ordered"),
    "schedule_resync_due": (EVERYTHING, "Resync Due"),
    "schedule_recheck_due": (BY_ARN, "Recheck Due"),
}
IGNORED = {"cloudtrail_update_compute_quota.failed": "UpdateComputeQuota failed with ConflictException"}


def sample(name: str) -> dict[str, Any]:
    return dict(json.loads((EVENTS / f"{name}.json").read_text()))


def parsed(event: Any) -> Hint | Ignored:
    return parse_event(event, own_role_arn=OWN_ROLE)


def hint(event: Any) -> Hint:
    result = parsed(event)
    assert isinstance(result, Hint), result
    return result


@pytest.mark.parametrize("name", WANT)
def test_every_sample_says_which_cluster_and_why(name: str) -> None:
    event = sample(name)
    subject, what = WANT[name]

    found = hint(event)

    assert found.subject == subject
    assert (found.cause.what, found.cause.event_id, found.cause.source) == (what, event["id"], event["source"])
    assert found.cause.detail_type == event["detail-type"]


@pytest.mark.parametrize("name", IGNORED)
def test_a_sample_that_changed_nothing_is_ignored(name: str) -> None:
    assert parsed(sample(name)) == Ignored(IGNORED[name])


def test_every_event_sample_is_tested() -> None:
    events = {
        path.name.removesuffix(".json")
        for path in EVENTS.glob("*.json")
        if "detail-type" in json.loads(path.read_text())
    }

    assert events == WANT.keys() | IGNORED.keys()


def test_an_update_of_a_quota_records_who_edited_it() -> None:
    found = hint(sample("cloudtrail_update_compute_quota"))

    assert (found.edited_quota_id, found.edited_with, found.cause.by) == ("q0w1e2r3t4y5", None, ADMIN)


def test_an_update_by_terraform_records_the_tool() -> None:
    event = sample("cloudtrail_update_compute_quota")
    event["detail"]["userAgent"] = "APN/1.0 HashiCorp/1.0 Terraform/1.9.5 (+https://www.terraform.io)"

    assert hint(event).edited_with == "Terraform"


def test_a_change_of_a_cluster_is_no_edit_of_a_quota() -> None:
    assert hint(sample("cloudtrail_update_cluster")).edited_quota_id is None


def test_the_automations_own_write_is_ignored_so_that_it_does_not_cause_itself() -> None:
    event = sample("cloudtrail_update_compute_quota")
    event["detail"]["userIdentity"]["sessionContext"]["sessionIssuer"]["arn"] = OWN_ROLE

    assert parsed(event) == Ignored("UpdateComputeQuota was the automation's own")


@pytest.mark.parametrize("identity", [None, {}, {"type": "AWSService", "invokedBy": "sagemaker.amazonaws.com"}])
def test_a_caller_in_another_form_is_not_the_automation(identity: Any) -> None:
    event = sample("cloudtrail_update_compute_quota")
    event["detail"]["userIdentity"] = identity or {}

    found = hint(event)

    assert found.cause.by == (identity or {}).get("invokedBy")
    assert found.edited_quota_id == "q0w1e2r3t4y5"


def test_parameters_are_found_in_upper_case_too_since_their_case_is_inferred() -> None:
    event = sample("cloudtrail_update_compute_quota")
    event["detail"]["requestParameters"] = {"ComputeQuotaId": "q0w1e2r3t4y5"}

    assert hint(event).subject == QUOTA


def test_a_cluster_event_happened_when_it_says_in_either_form() -> None:
    in_milliseconds, in_text = hint(sample("hyperpod_cluster_event")), hint(sample("hyperpod_cluster_event.health"))

    assert in_milliseconds.cause.at == datetime(2026, 11, 20, 9, 12, tzinfo=UTC)
    assert in_text.cause.at == datetime(2026, 11, 20, 9, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize("time", ["yesterday", "2026-11-20T09:13:20", None, {}, []])
def test_a_cluster_event_with_an_unreadable_time_happened_when_it_was_sent(time: Any) -> None:
    event = sample("hyperpod_cluster_event")
    event["detail"]["EventDetails"]["EventTime"] = time

    assert hint(event).cause.at == datetime(2026, 11, 20, 9, 12, tzinfo=UTC)


def test_health_is_read_at_both_depths() -> None:
    event = sample("hyperpod_cluster_event.health")
    details = event["detail"]["EventDetails"]
    details["EventDetails"] = {"EventMetadata": details.pop("EventMetadata")}

    assert hint(event).cause.what == "Instance i-0123456789abcdef0 Unhealthy"


def test_a_cluster_event_without_its_outer_details_is_read_too() -> None:
    event = sample("hyperpod_cluster_event")
    event["detail"] = event["detail"]["EventDetails"]

    assert hint(event).subject == CLUSTER


def test_the_cluster_is_taken_from_the_resources_when_the_detail_does_not_name_it() -> None:
    event = sample("hyperpod_node_health")
    event["detail"] = {"InstanceId": "i-0123456789abcdef0"}

    found = hint(event)

    assert found.subject == Subject(cluster_arn=ARN)
    assert found.cause.what == "node i-0123456789abcdef0 health changed"


def test_what_is_new_or_odd_in_an_event_does_no_harm() -> None:
    event = sample("hyperpod_cluster_state_change")
    event["replay-name"] = "archive"
    event["detail"] |= {"Novelty": [1], "ClusterStatus": 7, "InstanceGroups": "none"}

    assert hint(event).cause.what == "cluster changed"


@pytest.mark.parametrize(
    "key",
    [
        "policies/ml-cluster.json",
        "policies/.yaml",
        "policies/a/b.yaml",
        "reports/ml-cluster.yaml",
        "policies/ml-cluster",
    ],
)
def test_other_objects_are_no_policy_documents(key: str) -> None:
    event = sample("s3_object_created")
    event["detail"]["object"]["key"] = key

    assert parsed(event) == Ignored(f"{key} is not a policy document")


@pytest.mark.parametrize(
    ("source", "detail_type"),
    [
        ("aws.sagemaker", "SageMaker Training Job State Change"),
        ("aws.ec2", "AWS API Call via CloudTrail"),
        ("taskgov", "Run Finished"),
        ("my.app", "Reconcile Requested"),
    ],
)
def test_an_unknown_event_is_ignored_with_its_name(source: str, detail_type: str) -> None:
    event = sample("hyperpod_node_health") | {"source": source, "detail-type": detail_type}

    assert parsed(event) == Ignored(f"nothing is known of {source}: {detail_type}")


def test_calls_that_govern_nothing_are_ignored() -> None:
    event = sample("cloudtrail_update_cluster")
    event["detail"]["eventName"] = "DescribeCluster"

    assert parsed(event) == Ignored("DescribeCluster changes nothing that is governed")


def without(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(event: dict[str, Any]) -> None:
        inner = event
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]

    return change


def with_detail(detail: Any) -> Callable[[dict[str, Any]], None]:
    def change(event: dict[str, Any]) -> None:
        event["detail"] = detail
        event["resources"] = []

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hyperpod_node_health", without("id"), "not an EventBridge event; id: .* is required"),
        ("hyperpod_node_health", without("source"), "source: .* is required"),
        ("hyperpod_node_health", without("time"), "time: .* is required"),
        ("hyperpod_node_health", with_detail({}), "Node Health Event .* cannot be read; ClusterArn: .* is required"),
        ("hyperpod_node_health", with_detail(None), "ClusterArn"),
        ("hyperpod_cluster_state_change", with_detail({"ClusterArn": "ml-cluster"}), "ClusterArn"),
        ("hyperpod_cluster_event", with_detail({"EventDetails": {}}), "ClusterArn"),
        ("cloudtrail_update_compute_quota", without("detail", "requestParameters"), "names no cluster, quota"),
        ("cloudtrail_update_compute_quota", without("detail", "eventName"), "eventName"),
        ("cloudtrail_delete_compute_quota", without("detail", "requestParameters"), "names no cluster, quota"),
        ("s3_object_created", without("detail", "object"), "object: .* is required"),
        ("operator_reconcile_requested", with_detail({}), "neither clusterArn nor clusterName"),
    ],
)
def test_an_event_of_a_known_kind_that_cannot_be_read_says_why(
    name: str, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    event = sample(name)
    change(event)

    with pytest.raises(MalformedEventError, match=message):
        parsed(event)


@pytest.mark.parametrize("event", [[], "text", None, {}])
def test_what_is_no_event_at_all_is_malformed(event: Any) -> None:
    with pytest.raises(MalformedEventError, match="not an EventBridge event"):
        parsed(event)


@pytest.mark.parametrize(
    "named",
    [
        "ml-cluster",
        "arn:aws:sagemaker:us-east-1:111122223333:cluster/ml-cluster",
        "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl ",
        "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl/../x",
        "arn:aws:eks:us-east-1:1111:cluster/ml",
        "\x1b[2Jarn:aws:eks:us-east-1:111122223333:cluster/ml",
    ],
)
def test_a_request_whose_cluster_arn_is_none_is_ignored_with_the_reason(named: str) -> None:
    request = json.loads((EVENTS / "operator_reconcile_requested.json").read_text()) | {"detail": {"clusterArn": named}}
    ignored = parsed(request)
    assert isinstance(ignored, Ignored)
    assert ignored.reason.endswith("is not the ARN of a HyperPod or EKS cluster")
    assert ascii(named)[:100] in ignored.reason


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:cluster/abcdefghijkl",
        "arn:aws-cn:eks:cn-north-1:111122223333:cluster/ml_Cluster-1",
    ],
)
def test_clusters_of_both_backends_in_any_partition_are_known_by_their_arn(arn: str) -> None:
    request = json.loads((EVENTS / "operator_reconcile_requested.json").read_text()) | {"detail": {"clusterArn": arn}}
    assert hint(request).subject == Subject(cluster_arn=arn)
