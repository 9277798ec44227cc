"""Which events reach the intake queue, and which do not."""

import json
from typing import Any

import pytest
from moto.events.models import EventPattern

from taskgov.contracts.events import RESERVATION_EVENTS
from taskgov_embedded.cloudformation.template import Translated
from tests.template.conftest import ROOT, Properties, load, references

RULES = load().resources_of("AWS::Events::Rule")
BUCKET = "governance-bucket"
MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:taskgov-reconcile"
PLAIN_EKS = {"InstanceStateRule", "InterruptionRule", "AutoScalingRule"}
rules = pytest.mark.parametrize("name", sorted(RULES))


def event(source: str, kind: str, **detail: Any) -> dict[str, Any]:
    return {"source": source, "detail-type": kind, "detail": detail, "resources": []}


def call(name: str, **more: Any) -> dict[str, Any]:
    by = {"eventSource": "sagemaker.amazonaws.com", "eventName": name}
    return event("aws.sagemaker", "AWS API Call via CloudTrail", **by, **more)


def written(key: str, bucket: str = BUCKET, kind: str = "Object Created") -> dict[str, Any]:
    return event("aws.s3", kind, bucket={"name": bucket}, object={"key": key})


def matching(given: dict[str, Any]) -> set[str]:
    """Return the rules whose pattern an event matches."""

    def pattern(rule: Properties) -> str:
        return (
            json.dumps(rule["EventPattern"])
            .replace('{"Ref": "GovernanceBucket"}', f'"{BUCKET}"')
            .replace('{"Ref": "ReconcileStateMachine"}', f'"{MACHINE}"')
        )

    return {name for name, rule in RULES.items() if EventPattern.load(pattern(rule)).matches_event(given)}


DELIVERED = {
    "a cluster changed state": (event("aws.sagemaker", "SageMaker HyperPod Cluster State Change"), "ClusterStateRule"),
    "a node became unhealthy": (
        event("aws.sagemaker", "SageMaker HyperPod Cluster Node Health Event"),
        "NodeHealthRule",
    ),
    "an instance was provisioned": (event("aws.sagemaker", "SageMaker HyperPod Cluster Event"), "ClusterEventRule"),
    **{
        f"somebody called {verb}{noun}": (call(f"{verb}{noun}"), "QuotaCallRule")
        for verb in ("Create", "Update", "Delete")
        for noun in ("ComputeQuota", "ClusterSchedulerConfig")
    },
    **{
        f"somebody called {name}": (call(name), "ClusterCallRule")
        for name in (
            "UpdateCluster",
            "UpdateClusterSoftware",
            "BatchAddClusterNodes",
            "BatchDeleteClusterNodes",
            "BatchReplaceClusterNodes",
            "BatchRebootClusterNodes",
        )
    },
    "a policy document was written": (written("policies/ml-cluster.yaml"), "PolicyDocumentRule"),
    "a policy document was deleted": (
        written("policies/ml-cluster.yaml", kind="Object Deleted"),
        "PolicyDocumentRule",
    ),
    **{
        f"a run ended {status}": (
            event("aws.states", "Step Functions Execution Status Change", status=status, stateMachineArn=MACHINE),
            "RunEndedRule",
        )
        for status in ("FAILED", "TIMED_OUT", "ABORTED")
    },
    "an operator asks": (event("taskgov.operator", "Reconcile Requested"), "OperatorRule"),
    "an instance stopped": (
        event("aws.ec2", "EC2 Instance State-change Notification", state="terminated"),
        "InstanceStateRule",
    ),
    "a Spot instance is taken away": (event("aws.ec2", "EC2 Spot Instance Interruption Warning"), "InterruptionRule"),
    "a Spot instance is at risk": (event("aws.ec2", "EC2 Instance Rebalance Recommendation"), "InterruptionRule"),
    "reserved capacity is taken back": (
        event("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
        "InterruptionRule",
    ),
    **{kind: (event("aws.ec2", kind), "InterruptionRule") for kind in RESERVATION_EVENTS},
    "a group launched an instance": (event("aws.autoscaling", "EC2 Instance Launch Successful"), "AutoScalingRule"),
    "a group terminated one": (event("aws.autoscaling", "EC2 Instance Terminate Successful"), "AutoScalingRule"),
}

NOT_DELIVERED = {
    "a call that failed": call("UpdateComputeQuota", errorCode="ConflictException"),
    "a cluster call that failed": call("UpdateCluster", errorCode="AccessDenied"),
    "a call that only reads": call("DescribeComputeQuota"),
    "another service's call": call("UpdateCluster") | {"source": "aws.eks"},
    "a training job": event("aws.sagemaker", "SageMaker Training Job State Change"),
    "a report that was written": written("reports/ml-cluster/2026-11-20.html"),
    "a policy in another bucket": written("policies/ml-cluster.yaml", bucket="another"),
    "a run that ended well": event(
        "aws.states", "Step Functions Execution Status Change", status="SUCCEEDED", stateMachineArn=MACHINE
    ),
    "another machine's execution": event(
        "aws.states", "Step Functions Execution Status Change", status="ABORTED", stateMachineArn=f"{MACHINE}-other"
    ),
    "what only the signed entry may say": event("taskgov.orders", "Run Ordered"),
    "what taskgov itself tells": event("taskgov", "Run Ended"),
    "a group that could not launch an instance": event("aws.autoscaling", "EC2 Instance Launch Unsuccessful"),
    "a group that is about to terminate one": event("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"),
    "an instance that is only pending": event("aws.ec2", "EC2 Instance State-change Notification", state="pending"),
}


@pytest.mark.parametrize(("given", "rule"), DELIVERED.values(), ids=DELIVERED.keys())
def test_an_event_that_concerns_quotas_matches_its_rule_alone(given: dict[str, Any], rule: str) -> None:
    assert matching(given) == {rule}


@pytest.mark.parametrize("given", NOT_DELIVERED.values(), ids=NOT_DELIVERED.keys())
def test_an_event_that_concerns_nobody_here_matches_no_rule(given: dict[str, Any]) -> None:
    assert matching(given) == set()


def test_every_rule_is_shown_to_match_something() -> None:
    assert {rule for _, rule in DELIVERED.values()} == set(RULES)


@rules
def test_a_rule_delivers_to_the_intake_queue_with_retries_and_a_dead_letter_queue(name: str) -> None:
    (target,) = RULES[name]["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": ["IntakeQueue", "Arn"]}
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["DeliveryDeadLetterQueue", "Arn"]}}
    assert 0 < target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 3600
    assert target["RetryPolicy"]["MaximumRetryAttempts"] > 0


@rules
def test_a_rule_says_what_it_is_about_and_listens_on_the_right_bus(name: str) -> None:
    assert RULES[name]["Description"]
    bus = RULES[name].get("EventBusName")
    assert bus == ({"Ref": "GovernanceBus"} if name == "OperatorRule" else None)


@rules
def test_rules_of_plain_eks_exist_only_when_asked_for(stack: Translated, name: str) -> None:
    condition = stack.cfn["Resources"][name].get("Condition")
    assert condition == ("WatchesPlainEks" if name in PLAIN_EKS else None)
    assert stack.cfn["Parameters"]["WatchPlainEks"]["Default"] == "no"


@pytest.mark.parametrize("queue", ["IntakeQueue", "DeliveryDeadLetterQueue"])
def test_a_queue_takes_events_from_exactly_the_rules_of_this_stack(stack: Translated, queue: str) -> None:
    (policy,) = [
        one for one in stack.resources_of("AWS::SQS::QueuePolicy").values() if one["Queues"] == [{"Ref": queue}]
    ]
    (allow,) = [one for one in policy["PolicyDocument"]["Statement"] if one["Effect"] == "Allow"]
    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    assert allow["Action"] == "sqs:SendMessage"
    assert references(allow["Resource"]) == {queue}
    sources = allow["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert [one for one in sources if "Fn::GetAtt" in one] == [
        {"Fn::GetAtt": [name, "Arn"]} for name in RULES if name not in PLAIN_EKS
    ]
    assert [one for one in sources if "Fn::If" in one] == [
        {"Fn::If": ["WatchesPlainEks", {"Fn::GetAtt": [name, "Arn"]}, {"Ref": "AWS::NoValue"}]}
        for name in RULES
        if name in PLAIN_EKS
    ]


def test_the_bus_takes_no_events_under_foreign_names(stack: Translated) -> None:
    (bus,) = stack.resources_of("AWS::Events::EventBus").values()
    (statement,) = bus["Policy"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"ForAnyValue:StringNotLike": {"events:source": ["taskgov", "taskgov.*"]}}


SAMPLES = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}
EVENTS = {name: one for name, one in SAMPLES.items() if isinstance(one, dict) and "detail-type" in one}
"""The samples that EventBridge delivers; the others are what a function takes."""
OF_NO_RULE = {
    "order_run_ordered": "the signed entry puts it into the queue itself",
    "schedule_resync_due": "the schedule sends it to the queue itself",
    "schedule_recheck_due": "the schedule sends it to the queue itself",
    "cloudtrail_update_compute_quota.failed": "a call that failed changed nothing",
    "autoscaling_launch_unsuccessful": "nothing changed",
    "autoscaling_terminate_unsuccessful": "nothing changed",
    "autoscaling_launch_lifecycle_action": "nothing has changed yet; the launch follows",
    "autoscaling_terminate_lifecycle_action": "nothing has changed yet; the termination follows",
}


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_a_sample_event_matches_one_rule_or_has_a_reason_to_match_none(name: str) -> None:
    given = EVENTS[name]
    if given["source"] == "aws.s3":
        given = given | {"detail": given["detail"] | {"bucket": {"name": BUCKET}}}
    assert len(matching(given)) == (0 if name in OF_NO_RULE else 1)
