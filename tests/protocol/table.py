"""The one item that the protocol is about, under DynamoDB's own expressions as moto reads them.

Nothing of a condition is repeated here: an operation carries the text that the product sends, and moto parses and
executes it. Items and operations are JSON texts with sorted keys, so that both can be remembered and compared.
"""

import json
from functools import cache
from typing import Any, NamedTuple

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError
from moto.dynamodb.exceptions import ConditionalCheckFailed
from moto.dynamodb.models import DynamoDBBackend

CONDITION_FAILED = "ConditionalCheckFailedException"
SORT_KEY = "STATE"
NO_ITEM = "{}"


class Updated(NamedTuple):
    """What an update left; `met` is False when its condition was not met, and then the item is as before."""

    item: str
    met: bool


def text(value: Any) -> str:
    """Write JSON that is the same for the same value."""
    return json.dumps(value, sort_keys=True, default=str)


@cache
def updated(item: str, operation: str) -> Updated:
    """Do one UpdateItem (typed, as the API has it) on an item."""
    backend, asked = _backend(), json.loads(operation)
    table = backend.tables["table"]
    table.items.clear()
    before = json.loads(item)
    if before:
        table.put_item(before)
    try:
        after = backend.update_item(
            table_name="table",
            key=asked["Key"],
            update_expression=asked["UpdateExpression"],
            expression_attribute_names=asked.get("ExpressionAttributeNames") or {},
            expression_attribute_values=asked.get("ExpressionAttributeValues") or {},
            condition_expression=asked.get("ConditionExpression"),
        )
    except ConditionalCheckFailed:
        return Updated(item, met=False)
    return Updated(text(after.to_json()["Attributes"]), met=True)


@cache
def _backend() -> Any:
    backend = DynamoDBBackend("us-east-1", "111122223333")
    backend.create_table(
        "table",
        schema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        throughput=None,
        attr=[{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"}],
        global_indexes=[],
        indexes=[],
        streams=None,
        billing_mode="PAY_PER_REQUEST",
        sse_specification=None,
        tags=[],
        warm_throughput=None,
        deletion_protection_enabled=False,
    )
    return backend


@cache
def plain(item: str) -> dict[str, Any]:
    """Return an item's values as Python has them."""
    values: dict[str, Any] = TypeDeserializer().deserialize({"M": json.loads(item)})
    return values


def number(item: str, name: str) -> int:
    """Return a number of an item, 0 when it has none of this name."""
    return int(plain(item).get(name, 0))


def typed(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of boto3's table as the API has them."""
    serialize = TypeSerializer().serialize
    made = dict(arguments)
    for name in ("Key", "ExpressionAttributeValues"):
        if name in made:
            made[name] = {key: serialize(value) for key, value in made[name].items()}
    return made


def condition_failed(operation: str) -> ClientError:
    """Return the error of boto3 for a condition that was not met."""
    return ClientError({"Error": {"Code": CONDITION_FAILED, "Message": "The conditional request failed"}}, operation)
