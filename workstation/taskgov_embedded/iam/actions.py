"""Name what an API call needs: the IAM actions, with the ARNs on which it needs them.

The wire's operation names are not IAM's: `Invoke` needs `lambda:InvokeFunction`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgov_embedded.iam import reference
from taskgov_embedded.iam.conditions import RETURN_ENCRYPTED, machine_of
from taskgov_embedded.iam.resources import resources_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.place import Place

SIGNING_TO_SERVICE = {"monitoring": "cloudwatch", "servicequotas": "service-quotas", "states": "stepfunctions"}
"""botocore's service for the name in a signature's credential scope, where the two differ."""

SERVICE_TO_PREFIX = {"service-quotas": "servicequotas", "stepfunctions": "states"}
"""IAM's prefix for botocore's service, where the two differ."""

RENAMED = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjects": "s3:ListBucket",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListObjectVersions": "s3:ListBucketVersions",
    "s3:DeleteObjects": "s3:DeleteObject",
    "s3:CopyObject": "s3:PutObject",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "sns:PublishBatch": "sns:Publish",
}


@dataclass(frozen=True, slots=True)
class Need:
    """One action on one of `resources` (any of them: some APIs are documented on more than one kind of resource)."""

    action: str
    resources: tuple[str, ...]
    known: tuple[tuple[str, str | tuple[str, ...]], ...] = ()
    """Condition keys that the service gives with this action, besides those of the call."""


def needs(service: str, operation: str, params: Mapping[str, Any], place: Place) -> tuple[Need, ...]:
    """Return what the call needs, in the order in which AWS would complain.

    >>> from taskgov_embedded.place import Place
    >>> needs("lambda", "Invoke", {"FunctionName": "plan"}, Place("111122223333", "us-east-1"))[0].resources
    ('arn:aws:lambda:us-east-1:111122223333:function:plan',)
    """
    if service == "dynamodb" and operation in {
        "TransactWriteItems",
        "TransactGetItems",
        "BatchWriteItem",
        "BatchGetItem",
    }:
        return _dynamodb_many(operation, params, place)
    action = _action(service, operation, params)
    resources = resources_of(service, operation, params, place)
    wanted = [Need(action, resources)]
    if reference.needs_each_resource(action):
        wanted = [Need(action, (resource,)) for resource in resources]
    wanted += [need for name in reference.dependents(action) for need in _dependent(name, resources, params, place)]
    if operation == "InvokeFunctionUrl":  # since October 2025
        wanted.append(Need("lambda:InvokeFunction", resources))
    if operation == "PutObject" and params.get("IfMatch"):  # it says whether the object is as it was
        wanted.append(Need("s3:GetObject", resources))
    if operation == "CopyObject":
        wanted.append(Need("s3:GetObject", (_copy_source(params["CopySource"]),)))
    if operation in {"Publish", "PublishBatch", "SendMessage", "SendMessageBatch"} and resources[0] in place.kms_keys:
        key = place.kms_keys[resources[0]]
        wanted += [Need("kms:GenerateDataKey", (key,)), Need("kms:Decrypt", (key,))]
    if operation in RETURN_ENCRYPTED and params.get("includedData") != "METADATA_ONLY":
        encrypting = place.kms_keys.get(machine_of(params))
        wanted += [Need("kms:Decrypt", (encrypting,))] if encrypting else []
    return tuple(wanted)


HYPERPOD_ROLE = "aws-service-role/hyperpod.sagemaker.amazonaws.com/AWSServiceRoleForSageMakerHyperPod"
HYPERPOD_ACCESS = "AmazonSagemakerHyperpodControllerPolicy"
"""Inferred: whose access entry SageMaker changes for task governance, and which of HyperPod's policies it adds."""


def _dependent(action: str, resources: tuple[str, ...], params: Mapping[str, Any], place: Place) -> tuple[Need, ...]:
    """Return what a call on `resources` needs of an action that its own depends on.

    Raises KeyError for one that is not known here.
    """
    if action == "iam:PassRole":
        return (Need(action, (params["Target"]["RoleArn"],)),)
    if action == "cloudformation:ListStacks":  # of a call that names no stack
        return () if "StackName" in params else (Need(action, ("*",)),)
    cluster = params["ClusterArn"]
    if action == "sagemaker:AddTags":
        tags = tuple(tag["Key"] for tag in params.get("Tags", ()))
        return tuple(Need(action, (created,), (("aws:TagKeys", tags),)) for created in resources if created != cluster)
    if action == "sagemaker:DescribeCluster":
        return (Need(action, (cluster,)),)
    eks = place.eks_names.get(cluster)
    if eks is None:
        return ()
    entry = place.arn("eks", f"access-entry/{eks}/role/{place.account}/{HYPERPOD_ROLE}/00000000")
    policy = f"arn:{place.partition}:eks::aws:cluster-access-policy/{HYPERPOD_ACCESS}"
    return {
        "eks:DescribeCluster": (Need(action, (place.arn("eks", f"cluster/{eks}"),)),),
        "eks:ListAssociatedAccessPolicies": (Need(action, (entry,)),),
        "eks:AssociateAccessPolicy": (Need(action, (entry,), (("eks:policyArn", policy),)),),
    }[action]


def _action(service: str, operation: str, params: Mapping[str, Any]) -> str:
    action = f"{SERVICE_TO_PREFIX.get(service, service)}:{operation}"
    action = RENAMED.get(action, action)
    if action in {"s3:GetObject", "s3:DeleteObject"} and params.get("VersionId"):
        return action + "Version"
    return action


_TRANSACTED = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Get": "dynamodb:GetItem",
}


def _dynamodb_many(operation: str, params: Mapping[str, Any], place: Place) -> tuple[Need, ...]:
    """Split a call on many items: a transaction needs its parts' actions, a batch its own action on each table."""
    if operation.startswith("Transact"):
        parts = [(kind, item[kind]["TableName"]) for item in params["TransactItems"] for kind in item]
        return tuple(dict.fromkeys(Need(_TRANSACTED[kind], _table(table, place)) for kind, table in parts))
    return tuple(Need(f"dynamodb:{operation}", _table(table, place)) for table in params["RequestItems"])


def _table(name: str, place: Place) -> tuple[str, ...]:
    return resources_of("dynamodb", "", {"TableName": name}, place)


def _copy_source(source: Any) -> str:
    path = source if isinstance(source, str) else f"{source['Bucket']}/{source['Key']}"
    return "arn:aws:s3:::" + path.removeprefix("/").split("?")[0]
