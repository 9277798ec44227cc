"""Return which condition keys of IAM can be known for an API call, with their values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.place import Place

RETURN_ENCRYPTED = {
    "DescribeStateMachine",
    "DescribeStateMachineForExecution",
    "DescribeExecution",
    "GetExecutionHistory",
}
"""Calls of Step Functions whose caller needs `kms:Decrypt`, from the developer guide, "Data at rest encryption"."""

OF_MACHINE = "kms:EncryptionContext:aws:states:stateMachineArn"
"""The condition key that says whose data a key is used for: Step Functions gives the ARN to each call of KMS."""


def machine_of(params: Mapping[str, Any]) -> str:
    """Return the ARN of the state machine that a call of Step Functions concerns, or nothing."""
    execution = str(params.get("executionArn", ""))
    return str(params.get("stateMachineArn") or execution.replace(":execution:", ":stateMachine:").rpartition(":")[0])


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
    if operation in RETURN_ENCRYPTED:
        known |= {"kms:ViaService": f"states.{place.region}.amazonaws.com", OF_MACHINE: machine_of(params)}
    if operation == "PutMetricData":
        known["cloudwatch:namespace"] = params["Namespace"]
    if service == "s3" and operation.startswith("ListObject"):
        known["s3:prefix"] = params.get("Prefix", "")
    if operation == "PutEvents":
        known["events:source"] = [entry["Source"] for entry in params["Entries"] if "Source" in entry]
        known["events:detail-type"] = [entry["DetailType"] for entry in params["Entries"] if "DetailType" in entry]
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
        parts = [part for item in params["TransactItems"] for part in item.values()]
        return [key for part in parts for key in _leading_keys("", part, place)]
    if operation.startswith("Batch"):
        asked = [(table, key) for table, many in params["RequestItems"].items() for key in many.get("Keys", ())]
        return [value for table, key in asked for value in _leading_keys("", {"TableName": table, "Key": key}, place)]
    name = place.hash_keys.get(params.get("TableName", "").rpartition("/")[2])
    attributes = params.get("Key") or params.get("Item") or {}
    if name in attributes:
        return [str(value) for value in attributes[name].values()]
    return _leading_keys_of_query(name, params)


def _leading_keys_of_query(name: str | None, params: Mapping[str, Any]) -> list[str]:
    """Find `pk = :value` in a key condition, also behind an alias of the key's name."""
    condition = params.get("KeyConditionExpression", "")
    aliases = [alias for alias, meant in params.get("ExpressionAttributeNames", {}).items() if meant == name]
    for key_name in (name, *aliases):
        found = re.search(rf"(?<![\w#]){re.escape(key_name or '')}\s*=\s*(:\w+)", condition)
        if key_name and found:
            return [str(value) for value in params["ExpressionAttributeValues"][found[1]].values()]
    return []
