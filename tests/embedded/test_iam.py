from __future__ import annotations

from typing import Any

import pytest

from taskgov_embedded.iam import evaluation, reference
from taskgov_embedded.iam.actions import needs
from taskgov_embedded.place import Place

TABLE = "arn:aws:dynamodb:us-east-1:111122223333:table/t"


def policy(*listed: dict[str, Any]) -> tuple[evaluation.Statement, ...]:
    return evaluation.statements("role/r", "p", {"Statement": [{"Effect": "Allow", **one} for one in listed]})


def allowed(statements: tuple[evaluation.Statement, ...], action: str, resource: str, **context: str) -> bool:
    return evaluation.evaluate(
        statements, action, resource, {key.replace("__", ":"): v for key, v in context.items()}
    ).allowed


@pytest.mark.parametrize(
    ("statement", "action", "resource", "want"),
    [
        ({"Action": "dynamodb:GetItem", "Resource": TABLE}, "dynamodb:GetItem", TABLE, True),
        ({"Action": "dynamodb:getitem", "Resource": TABLE}, "dynamodb:GetItem", TABLE, True),
        ({"Action": "dynamodb:GetItem", "Resource": TABLE}, "dynamodb:GetItem", TABLE + "2", False),
        ({"Action": "dynamodb:GetItem", "Resource": TABLE}, "dynamodb:GetItem", "*", False),
        ({"Action": "dynamodb:*", "Resource": TABLE + "*"}, "dynamodb:Query", TABLE + "/index/i", True),
        ({"Action": "s3:GetObject?", "Resource": "*"}, "s3:GetObject", "arn:aws:s3:::b/k", False),
        ({"NotAction": "s3:*", "Resource": "*"}, "s3:GetObject", "arn:aws:s3:::b/k", False),
        ({"NotAction": "s3:*", "Resource": "*"}, "sns:Publish", "arn:aws:sns:::t", True),
        ({"Action": "*", "NotResource": TABLE}, "dynamodb:GetItem", TABLE, False),
    ],
    ids=[
        "the action on the resource",
        "actions ignore case",
        "another resource",
        "a scoped grant does not cover everything",
        "wildcards",
        "a question mark is one character",
        "an action that is excepted",
        "an action that is not excepted",
        "a resource that is excepted",
    ],
)
def test_a_statement_allows(statement: dict[str, Any], action: str, resource: str, *, want: bool) -> None:
    assert allowed(policy(statement), action, resource) is want


def test_an_explicit_deny_wins_and_is_named() -> None:
    statements = policy(
        {"Action": "*", "Resource": "*"},
        {"Sid": "NoDelete", "Effect": "Deny", "Action": "s3:Delete*", "Resource": "*"},
    )
    verdict = evaluation.evaluate(statements, "s3:DeleteObject", "arn:aws:s3:::b/k", {})
    assert (verdict.allowed, verdict.denied_by) == (False, "NoDelete")


def test_a_condition_is_met_with_the_value_it_wants() -> None:
    statements = policy(
        {
            "Action": "cloudwatch:PutMetricData",
            "Resource": "*",
            "Condition": {"StringEquals": {"cloudwatch:namespace": "TaskGovernance"}},
        }
    )
    assert allowed(statements, "cloudwatch:PutMetricData", "*", cloudwatch__namespace="TaskGovernance")
    assert not allowed(statements, "cloudwatch:PutMetricData", "*", cloudwatch__namespace="Other")


def test_a_key_that_is_unknown_leaves_the_condition_unmet_and_is_reported() -> None:
    statements = policy({"Action": "*", "Resource": "*", "Condition": {"StringEquals": {"aws:Strange": "x"}}})
    verdict = evaluation.evaluate(statements, "s3:GetObject", "*", {})
    assert not verdict.allowed
    assert verdict.unknown_keys == {"aws:Strange"}


@pytest.mark.parametrize(
    ("condition", "have", "want"),
    [
        ({"StringLike": {"k:v": "a*"}}, "abc", True),
        ({"StringNotEquals": {"k:v": "a"}}, "a", False),
        ({"StringNotEquals": {"k:v": ["a", "b"]}}, "b", False),
        ({"StringNotEquals": {"k:v": ["a", "b"]}}, "c", True),
        ({"Bool": {"k:v": "true"}}, "true", True),
        ({"Bool": {"k:v": False}}, "true", False),
        ({"StringEqualsIfExists": {"k:other": "x"}}, "a", True),
        ({"Null": {"k:other": "true"}}, "a", True),
        ({"ArnLike": {"k:v": "arn:aws:events:*:*:rule/*"}}, "arn:aws:events:us-east-1:1:rule/r", True),
        ({"NumericLessThanEquals": {"k:v": "5"}}, "6", False),
    ],
    ids=str,
)
def test_an_operator(condition: dict[str, Any], have: str, *, want: bool) -> None:
    statements = policy({"Action": "*", "Resource": "*", "Condition": condition})
    assert evaluation.evaluate(statements, "s3:GetObject", "*", {"k:v": have}).allowed is want


@pytest.mark.parametrize(
    ("operator", "want"),
    [("ForAnyValue:StringLike", True), ("ForAllValues:StringLike", False), ("StringLike", False)],
)
def test_a_key_with_many_values_needs_a_set_operator(operator: str, *, want: bool) -> None:
    statements = policy({"Action": "*", "Resource": "*", "Condition": {operator: {"events:source": "taskgov*"}}})
    verdict = evaluation.evaluate(statements, "events:PutEvents", "*", {"events:source": ["taskgov", "another"]})
    assert verdict.allowed is want
    assert verdict.unknown_keys == (set() if ":" in operator else {"StringLike events:source"})


CLUSTER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"


def test_a_create_needs_both_resources_and_what_it_depends_on() -> None:
    place = Place("111122223333", "us-east-1", eks_names={CLUSTER: "eks"})
    needed = needs("sagemaker", "CreateComputeQuota", {"ClusterArn": CLUSTER, "Name": "a"}, place)
    quota = "arn:aws:sagemaker:us-east-1:111122223333:compute-quota/*"
    assert [(need.action, need.resources) for need in needed[:2]] == [
        ("sagemaker:CreateComputeQuota", (CLUSTER,)),
        ("sagemaker:CreateComputeQuota", (quota,)),
    ]
    rest = {need.action: need for need in needed[2:]}
    assert set(rest) == set(reference.dependents("sagemaker:CreateComputeQuota"))
    assert rest["sagemaker:AddTags"].resources == (quota,)
    assert "arn:aws:eks::aws:" in str(rest["eks:AssociateAccessPolicy"].known)


def test_a_cluster_without_eks_needs_nothing_of_eks() -> None:
    needed = needs("sagemaker", "CreateComputeQuota", {"ClusterArn": CLUSTER}, Place("111122223333", "us-east-1"))
    assert [need.action for need in needed if need.action.startswith("eks:")] == []


def test_a_resource_policy_is_for_its_principal() -> None:
    document = {
        "Statement": {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage"}
    }
    statements = evaluation.statements("queue", "p", document)
    assert evaluation.evaluate(statements, "sqs:SendMessage", "q", {}, principal="events.amazonaws.com").allowed
    assert not evaluation.evaluate(statements, "sqs:SendMessage", "q", {}, principal="s3.amazonaws.com").allowed


def test_grants_are_reported_one_by_one() -> None:
    statements = policy({"Sid": "S", "Action": ["s3:Get*", "s3:Put*"], "Resource": "*"})
    assert [grant.action for grant in evaluation.grants_of(statements)] == ["s3:Get*", "s3:Put*"]
    used = evaluation.evaluate(statements, "s3:GetObject", "*", {}).grants
    assert used == (evaluation.Grant("role/r", "S", "s3:Get*", ("*",)),)
