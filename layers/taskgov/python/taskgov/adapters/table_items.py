"""Items of the table: how they are read and written. What is kept in them is `dynamodb` and `coordination`."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from boto3.dynamodb.conditions import Key

from taskgov import keys
from taskgov.adapters.errors import translated
from taskgov.adapters.items import Item, in_form, read
from taskgov.errors import ThrottledError
from taskgov.ports import OnUnreadable
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableItemError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table as DynamoDBTable

Record = TypeVar("Record")
BATCH: Final = 100
"""Keys that one BatchGetItem takes."""


class TableItems:
    """One DynamoDB table, strongly consistent. All methods raise ThrottledError and UpstreamError."""

    def __init__(self, table: "DynamoDBTable") -> None:
        self._table = table

    def _item(self, key: dict[str, str]) -> Mapping[str, Any]:
        with translated(f"read {key['pk']} {key['sk']}"):
            return self._table.get_item(Key=key, ConsistentRead=True).get("Item", {})

    def _read(
        self, cluster_arn: str, prefix: str, form: Callable[[Item], Record], on_unreadable: OnUnreadable | None
    ) -> tuple[Record, ...]:
        found = (read(item, form, on_unreadable) for item in self._items(cluster_arn, prefix))
        return tuple(record for record in found if record is not None)

    def _items(self, cluster_arn: str, prefix: str) -> list[Mapping[str, Any]]:
        condition = Key("pk").eq(keys.cluster(cluster_arn)) & Key("sk").begins_with(prefix)
        items: list[Mapping[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            with translated(f"list {prefix} of {cluster_arn}"):
                page = self._table.query(KeyConditionExpression=condition, ConsistentRead=True, **start)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _many(self, wanted: list[dict[str, str]]) -> Iterator[Mapping[str, Any]]:
        """Yield the items at these keys that are there, a hundred with each call, in any order."""
        name, client = self._table.name, self._table.meta.client
        while wanted:
            asked, rest = wanted[:BATCH], wanted[BATCH:]
            with translated(f"read {len(asked)} items"):
                answer = client.batch_get_item(RequestItems={name: {"Keys": asked, "ConsistentRead": True}})
            yield from answer["Responses"].get(name, ())
            unprocessed: Mapping[str, Any] = answer.get("UnprocessedKeys", {})
            left = unprocessed.get(name, {}).get("Keys", [])
            if len(left) == len(asked):
                raise ThrottledError("the table gives none of the items that were requested")
            wanted = [*left, *rest]

    def _put(self, item: dict[str, Any], **condition: Any) -> None:
        with translated(f"write {item['pk']} {item['sk']}"):
            self._table.put_item(Item=in_form(item), **condition)


def integer(item: Item, name: str) -> int:
    """Return an attribute of an item, which is a whole number. Raises UnreadableItemError, which names both."""
    try:
        return int(str(item[name]))
    except ValueError as error:
        because = f"{name} is {str(item[name])[:40]!r}, which is not a whole number"
        raise UnreadableItemError(UnreadableItem(str(item.get("pk")), str(item.get("sk")), because)) from error


def expiry(at: datetime, days: int) -> int:
    """Return when an item of that moment expires: epoch seconds, so many days later."""
    return int(at.timestamp() + timedelta(days=days).total_seconds())  # also where the last year of the calendar ends


def moment(text: object) -> datetime:
    """Return a moment as the table holds it, in UTC. Raises ValueError."""
    return datetime.fromisoformat(str(text)).astimezone(UTC)
