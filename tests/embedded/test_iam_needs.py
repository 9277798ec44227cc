from __future__ import annotations

from typing import Any

import pytest

from taskgov_embedded.iam.actions import Need, needs
from taskgov_embedded.iam.conditions import conditions
from taskgov_embedded.place import Place

PLACE = Place("111122223333", "us-east-1", cluster_arns={"ml": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abc"})
HERE = "us-east-1:111122223333"


@pytest.mark.parametrize(
    ("service", "operation", "params", "action", "resource"),
    [
        ("lambda", "Invoke", {"FunctionName": "f"}, "lambda:InvokeFunction", f"arn:aws:lambda:{HERE}:function:f"),
        ("s3", "HeadObject", {"Bucket": "b", "Key": "k"}, "s3:GetObject", "arn:aws:s3:::b/k"),
        ("s3", "ListObjectsV2", {"Bucket": "b"}, "s3:ListBucket", "arn:aws:s3:::b"),
        ("s3", "GetObject", {"Bucket": "b", "Key": "k", "VersionId": "1"}, "s3:GetObjectVersion", "arn:aws:s3:::b/k"),
        ("dynamodb", "Query", {"TableName": "t"}, "dynamodb:Query", f"arn:aws:dynamodb:{HERE}:table/t"),
        (
            "dynamodb",
            "Query",
            {"TableName": "t", "IndexName": "i"},
            "dynamodb:Query",
            f"arn:aws:dynamodb:{HERE}:table/t/index/i",
        ),
        ("sqs", "SendMessageBatch", {"QueueUrl": "https://x/1/q"}, "sqs:SendMessage", f"arn:aws:sqs:{HERE}:q"),
        ("stepfunctions", "StartExecution", {"stateMachineArn": "m"}, "states:StartExecution", "m"),
        ("stepfunctions", "SendTaskSuccess", {"taskToken": "t"}, "states:SendTaskSuccess", "*"),
        ("sagemaker", "ListComputeQuotas", {}, "sagemaker:ListComputeQuotas", "*"),
        (
            "sagemaker",
            "UpdateComputeQuota",
            {"ComputeQuotaId": "q"},
            "sagemaker:UpdateComputeQuota",
            f"arn:aws:sagemaker:{HERE}:compute-quota/q",
        ),
        (
            "sagemaker",
            "DescribeCluster",
            {"ClusterName": "ml"},
            "sagemaker:DescribeCluster",
            f"arn:aws:sagemaker:{HERE}:cluster/abc",
        ),
        ("eks", "DescribeCluster", {"name": "e"}, "eks:DescribeCluster", f"arn:aws:eks:{HERE}:cluster/e"),
        ("cloudwatch", "PutMetricData", {"Namespace": "N"}, "cloudwatch:PutMetricData", "*"),
        ("unheard", "DoIt", {}, "unheard:DoIt", "*"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 25 else "",
)
def test_a_call_needs(service: str, operation: str, params: dict[str, Any], action: str, resource: str) -> None:
    assert needs(service, operation, params, PLACE) == (Need(action, (resource,)),)


def test_a_transaction_needs_the_actions_of_its_parts() -> None:
    items = [{"Put": {"TableName": "a"}}, {"ConditionCheck": {"TableName": "b"}}, {"Put": {"TableName": "a"}}]
    wanted = needs("dynamodb", "TransactWriteItems", {"TransactItems": items}, PLACE)
    assert [(one.action, one.resources[0].rpartition("/")[2]) for one in wanted] == [
        ("dynamodb:PutItem", "a"),
        ("dynamodb:ConditionCheckItem", "b"),
    ]


def test_a_copy_needs_to_read_its_source() -> None:
    params = {"Bucket": "b", "Key": "k", "CopySource": {"Bucket": "c", "Key": "s"}}
    wanted = needs("s3", "CopyObject", params, PLACE)
    assert wanted == (Need("s3:PutObject", ("arn:aws:s3:::b/k",)), Need("s3:GetObject", ("arn:aws:s3:::c/s",)))


def test_events_are_put_on_each_of_their_buses() -> None:
    entries = [{"Source": "a", "EventBusName": "x"}, {"Source": "b"}]
    (need,) = needs("events", "PutEvents", {"Entries": entries}, PLACE)
    assert [one.rpartition(":")[2] for one in need.resources] == ["event-bus/x", "event-bus/default"]


def test_the_namespace_of_metrics_is_a_condition_key() -> None:
    assert conditions("cloudwatch", "PutMetricData", {"Namespace": "N"}, PLACE)["cloudwatch:namespace"] == "N"


@pytest.mark.parametrize(
    ("operation", "params", "want"),
    [
        ("GetItem", {"TableName": "t", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}, ["a"]),
        ("PutItem", {"TableName": "t", "Item": {"pk": {"S": "a"}}}, ["a"]),
        (
            "Query",
            {
                "TableName": "t",
                "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
                "ExpressionAttributeValues": {":p": {"S": "a"}, ":s": {"S": "x"}},
            },
            ["a"],
        ),
        (
            "Query",
            {
                "TableName": "t",
                "KeyConditionExpression": "(#k = :p)",
                "ExpressionAttributeNames": {"#k": "pk"},
                "ExpressionAttributeValues": {":p": {"S": "a"}},
            },
            ["a"],
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "t", "Item": {"pk": {"S": "a"}}}}]},
            ["a"],
        ),
        ("BatchGetItem", {"RequestItems": {"t": {"Keys": [{"pk": {"S": "a"}}, {"pk": {"S": "b"}}]}}}, ["a", "b"]),
        ("Scan", {"TableName": "t"}, []),
    ],
    ids=[
        "by key",
        "by item",
        "by key condition",
        "behind an alias",
        "in a transaction",
        "in a batch",
        "a scan names none",
    ],
)
def test_the_leading_keys_of_a_call(operation: str, params: dict[str, Any], want: list[str]) -> None:
    place = Place("111122223333", "us-east-1", hash_keys={"t": "pk"})
    assert conditions("dynamodb", operation, params, place)["dynamodb:LeadingKeys"] == want


def test_a_schedule_needs_its_role_to_be_passed() -> None:
    params = {"Name": "n", "Target": {"RoleArn": "arn:role"}}
    assert Need("iam:PassRole", ("arn:role",)) in needs("scheduler", "CreateSchedule", params, PLACE)
    known = conditions("scheduler", "CreateSchedule", params, PLACE)
    assert known["iam:PassedToService"] == "scheduler.amazonaws.com"


def test_an_encrypted_topic_needs_its_key() -> None:
    topic, key = f"arn:aws:sns:{HERE}:t", f"arn:aws:kms:{HERE}:key/k"
    place = Place("111122223333", "us-east-1", kms_keys={topic: key})
    actions = [need.action for need in needs("sns", "Publish", {"TopicArn": topic}, place)]
    assert actions == ["sns:Publish", "kms:GenerateDataKey", "kms:Decrypt"]
