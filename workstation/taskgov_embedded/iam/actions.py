"""Name what an API call needs: the IAM actions, and the ARNs on which it needs them.

The wire's operation names are not IAM's (`Invoke` needs `lambda:InvokeFunction`), and parameters hold names rather than
ARNs. A call that is not listed here is checked on `*`, which fails closed for a grant that is scoped to a resource.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.place import Place


SIGNING_TO_SERVICE = {"monitoring": "cloudwatch", "states": "stepfunctions"}
"""botocore's service for the name in a signature's credential scope, where the two differ."""

SERVICE_TO_PREFIX = {"stepfunctions": "states", "cloudwatch": "cloudwatch"}
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


def needs(service: str, operation: str, params: Mapping[str, Any], place: Place) -> tuple[Need, ...]:
    """Return what the call needs, in the order in which AWS would complain.

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
    name_resources = _RESOURCES.get(service)
    resources = ("*",) if name_resources is None else name_resources(operation, params, place)
    wanted = [Need(action, resources)]
    if operation == "InvokeFunctionUrl":  # since October 2025
        wanted.append(Need("lambda:InvokeFunction", resources))
    if operation == "PutObject" and params.get("IfMatch"):  # it says whether the object is as it was
        wanted.append(Need("s3:GetObject", resources))
    if operation == "CopyObject":
        wanted.append(Need("s3:GetObject", (_copy_source(params["CopySource"]),)))
    if service == "scheduler" and operation in {"CreateSchedule", "UpdateSchedule"}:
        wanted.append(Need("iam:PassRole", (params["Target"]["RoleArn"],)))
    if operation in {"Publish", "PublishBatch", "SendMessage", "SendMessageBatch"} and resources[0] in place.kms_keys:
        key = place.kms_keys[resources[0]]
        wanted += [Need("kms:GenerateDataKey", (key,)), Need("kms:Decrypt", (key,))]
    if operation in _RETURN_ENCRYPTED and params.get("includedData") != "METADATA_ONLY":
        encrypting = place.kms_keys.get(_machine_of(params))
        wanted += [Need("kms:Decrypt", (encrypting,))] if encrypting else []
    return tuple(wanted)


_RETURN_ENCRYPTED = {
    "DescribeStateMachine",
    "DescribeStateMachineForExecution",
    "DescribeExecution",
    "GetExecutionHistory",
}
"""Calls of Step Functions whose caller needs `kms:Decrypt`, from the developer guide, "Data at rest encryption"."""

OF_MACHINE = "kms:EncryptionContext:aws:states:stateMachineArn"
"""The condition key that says whose data a key is used for: Step Functions gives the ARN to each call of KMS."""


def _machine_of(params: Mapping[str, Any]) -> str:
    """Return the ARN of the state machine that a call of Step Functions concerns, or nothing."""
    execution = str(params.get("executionArn", ""))
    return str(params.get("stateMachineArn") or execution.replace(":execution:", ":stateMachine:").rpartition(":")[0])


def url_id(url: str) -> str:
    """Return what tells a function URL from any other.

    >>> url_id("https://abc.lambda-url.us-east-1.on.aws/")
    'abc'
    """
    return url.removeprefix("https://").partition(".")[0]


def conditions(service: str, operation: str, params: Mapping[str, Any], place: Place) -> dict[str, str | list[str]]:
    """Return the condition keys that can be known for the call."""
    known: dict[str, str | list[str]] = {
        "aws:SecureTransport": "true",
        "aws:RequestedRegion": place.region,
        "aws:ResourceAccount": place.account,
    }
    if operation == "InvokeFunctionUrl":
        known |= {"lambda:FunctionUrlAuthType": "AWS_IAM", "lambda:InvokedViaFunctionUrl": "true"}
    if service == "scheduler":
        known["iam:PassedToService"] = "scheduler.amazonaws.com"
    if service in {"sns", "sqs"}:
        known["kms:ViaService"] = f"{service}.{place.region}.amazonaws.com"
    if operation in _RETURN_ENCRYPTED:
        known |= {"kms:ViaService": f"states.{place.region}.amazonaws.com", OF_MACHINE: _machine_of(params)}
    if operation == "PutMetricData":
        known["cloudwatch:namespace"] = params["Namespace"]
    if service == "s3" and operation.startswith("ListObject"):
        known["s3:prefix"] = params.get("Prefix", "")
    if operation == "PutEvents":
        known["events:source"] = [one["Source"] for one in params["Entries"] if "Source" in one]
        known["events:detail-type"] = [one["DetailType"] for one in params["Entries"] if "DetailType" in one]
    if service == "dynamodb":
        known["dynamodb:LeadingKeys"] = _leading_keys(operation, params, place)
        known["dynamodb:Attributes"] = _attributes(params)
        known["dynamodb:ReturnValues"] = params.get("ReturnValues", "NONE")
    tags = _tags(service, params)
    known |= {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    named = [*tags, *(params.get("TagKeys") or params.get("tagKeys") or [])]
    return known | ({"aws:TagKeys": named} if named else {})


def _tags(service: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that a call sets: EKS takes a map, the others a list."""
    if service == "eks":
        return dict(params.get("tags") or {})
    listed = (tag for tag in params.get("Tags") or [] if isinstance(tag, dict) and "Key" in tag)
    return {tag["Key"]: tag.get("Value", "") for tag in listed}


def _action(service: str, operation: str, params: Mapping[str, Any]) -> str:
    action = f"{SERVICE_TO_PREFIX.get(service, service)}:{operation}"
    action = RENAMED.get(action, action)
    if action in {"s3:GetObject", "s3:DeleteObject"} and params.get("VersionId"):
        return action + "Version"
    return action


def _as_arn(value: str, made: str) -> str:
    return value if value.startswith("arn:") else made


def _dynamodb(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    table = params.get("TableName")
    if table is None:
        return ("*",)
    arn = _as_arn(table, place.arn("dynamodb", f"table/{table}"))
    return (f"{arn}/index/{params['IndexName']}",) if params.get("IndexName") else (arn,)


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
        parts = [(kind, one[kind]["TableName"]) for one in params["TransactItems"] for kind in one]
        return tuple(
            dict.fromkeys(
                Need(_TRANSACTED[kind], (_dynamodb("", {"TableName": table}, place))) for kind, table in parts
            )
        )
    return tuple(Need(f"dynamodb:{operation}", _dynamodb("", {"TableName": t}, place)) for t in params["RequestItems"])


_NO_ATTRIBUTES = frozenset(
    {
        *("SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "BETWEEN", "IN"),
        *("attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"),
        *("if_not_exists", "list_append"),
    }
)
"""Words of expressions that name no attribute."""


def _attributes(params: Mapping[str, Any]) -> list[str]:
    """Return the attributes that a call on one item names: those of its key or item, and those in expressions."""
    said = " ".join(str(params.get(f"{kind}Expression", "")) for kind in ("Update", "Condition", "Projection"))
    aliases = params.get("ExpressionAttributeNames") or {}
    words = (word for word in re.findall(r"(?<![:\w#.])#?[A-Za-z_]\w*", said) if word not in _NO_ATTRIBUTES)
    named = {*(params.get("Key") or ()), *(params.get("Item") or ()), *(aliases.get(word, word) for word in words)}
    return sorted(named)


def _leading_keys(operation: str, params: Mapping[str, Any], place: Place) -> list[str]:
    """Return the partition keys that a call on a table names; a scan names none."""
    if operation.startswith("Transact"):
        parts = [part for one in params["TransactItems"] for part in one.values()]
        return [key for part in parts for key in _leading_keys("", part, place)]
    name = place.hash_keys.get(params.get("TableName", "").rpartition("/")[2])
    attributes = params.get("Key") or params.get("Item") or {}
    if name in attributes:
        return [str(value) for value in attributes[name].values()]
    return _leading_keys_of_query(name, params)


def _leading_keys_of_query(name: str | None, params: Mapping[str, Any]) -> list[str]:
    """Find `pk = :value` in a key condition, also behind an alias of the key's name."""
    condition = params.get("KeyConditionExpression", "")
    aliases = [alias for alias, meant in params.get("ExpressionAttributeNames", {}).items() if meant == name]
    for one in (name, *aliases):
        found = re.search(rf"(?<![\w#]){re.escape(one or '')}\s*=\s*(:\w+)", condition)
        if one and found:
            return [str(value) for value in params["ExpressionAttributeValues"][found[1]].values()]
    return []


def _s3(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    bucket = params.get("Bucket")
    if bucket is None:
        return ("*",)
    arn = f"arn:{place.partition}:s3:::{bucket}"
    return (f"{arn}/{params['Key']}",) if params.get("Key") else (arn,)


def _copy_source(source: Any) -> str:
    path = source if isinstance(source, str) else f"{source['Bucket']}/{source['Key']}"
    return "arn:aws:s3:::" + path.removeprefix("/").split("?")[0]


def _sqs(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("QueueName") or params.get("QueueUrl", "").rsplit("/", 1)[-1]
    return (place.arn("sqs", name),) if name else ("*",)


def _sns(_operation: str, params: Mapping[str, Any], _place: Place) -> tuple[str, ...]:
    return (params.get("TopicArn") or params.get("TargetArn") or "*",)


def _lambda(operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """Name the function, with the version or alias that is called.

    For calls on an alias itself the reference names the function, and Lambda's own guide the alias: either will do.
    """
    if operation == "InvokeFunctionUrl":
        return (params["Arn"],)
    name = params.get("FunctionName")
    if not name:
        return ("*",)
    arn = _as_arn(name, place.arn("lambda", f"function:{name}"))
    if operation in {"GetAlias", "UpdateAlias"}:
        return (arn, f"{arn}:{params['Name']}")
    return (f"{arn}:{params['Qualifier']}" if "Qualifier" in params else arn,)


def _execute_api(_operation: str, params: Mapping[str, Any], _place: Place) -> tuple[str, ...]:
    return (params["Arn"],)


def _states(operation: str, params: Mapping[str, Any], _place: Place) -> tuple[str, ...]:
    if operation.startswith("SendTask"):
        return ("*",)  # documented: these three have no resource
    return (params.get("stateMachineArn") or params.get("executionArn") or "*",)


def _events(operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    if operation == "PutEvents":
        buses = dict.fromkeys(one.get("EventBusName", "default") for one in params["Entries"])
        return tuple(_as_arn(bus, place.arn("events", f"event-bus/{bus}")) for bus in buses)
    return (place.arn("events", f"rule/{params['Name']}"),) if "Name" in params else ("*",)


def _scheduler(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    if "Name" not in params:
        return ("*",)
    return (place.arn("scheduler", f"schedule/{params.get('GroupName', 'default')}/{params['Name']}"),)


_BY_ARN_OR_ID = {
    "ComputeQuotaId": "compute-quota",
    "ClusterSchedulerConfigId": "cluster-scheduler-config",
}


def _sagemaker(operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """Name the cluster or the governance object; lists of an account need `*`.

    A Create is allowed by a grant on the cluster or on the kind of object: the reference lists both.
    """
    for key, kind in _BY_ARN_OR_ID.items():
        if key in params:
            return (place.arn("sagemaker", f"{kind}/{params[key]}"),)
    if operation.startswith("Create") and "ClusterArn" in params:
        kind = "compute-quota" if "Quota" in operation else "cluster-scheduler-config"
        return (params["ClusterArn"], place.arn("sagemaker", f"{kind}/*"))
    if "ResourceArn" in params:
        return (params["ResourceArn"],)
    name = params.get("ClusterName")
    if name is None:
        return ("*",)
    return (_as_arn(name, place.cluster_arns.get(name, place.arn("sagemaker", f"cluster/{name}"))),)


def _cloudformation(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("StackName")
    return (_as_arn(name, place.stacks.get(name, place.arn("cloudformation", f"stack/{name}"))),) if name else ("*",)


def _eks(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    if "addonName" in params and "clusterName" in params:
        return (place.arn("eks", f"addon/{params['clusterName']}/{params['addonName']}/*"),)
    if "resourceArn" in params:
        return (params["resourceArn"],)
    name = params.get("name") or params.get("clusterName")
    return (place.arn("eks", f"cluster/{name}"),) if name else ("*",)


def _logs(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("logGroupName")
    return (place.arn("logs", f"log-group:{name}:*"),) if name else ("*",)


def _ssm(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("Name")
    return (place.arn("ssm", f"parameter/{name.removeprefix('/')}"),) if name else ("*",)


_RESOURCES: dict[str, Callable[[str, Mapping[str, Any], Place], tuple[str, ...]]] = {
    "dynamodb": _dynamodb,
    "s3": _s3,
    "sqs": _sqs,
    "sns": _sns,
    "lambda": _lambda,
    "execute-api": _execute_api,
    "stepfunctions": _states,
    "events": _events,
    "scheduler": _scheduler,
    "sagemaker": _sagemaker,
    "eks": _eks,
    "cloudformation": _cloudformation,
    "logs": _logs,
    "ssm": _ssm,
}
