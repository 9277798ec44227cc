"""Orders over the table: which lock is freed, and what a request says that somebody damaged."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from moto import mock_aws

from taskgov.adapters.order_book import DynamoOrderBook
from taskgov.contracts.orders import UnlockOrder
from taskgov.errors import ConflictError, UpstreamError
from taskgov.people import person_of
from tests.support.governance_table import governance_table
from tests.support.memory import CLUSTER_ARN, NOON

STATE = {"pk": f"CLUSTER#{CLUSTER_ARN}", "sk": "STATE"}
PLAN = "plan-0123456789abcdef"
ACCOUNT = "arn:aws:iam::111122223333"
REQUEST = {
    "pk": f"APPROVAL#{CLUSTER_ARN}",
    "sk": f"APPROVAL#{PLAN}",
    "clusterArn": CLUSTER_ARN,
    "clusterName": "ml-cluster",
    "planId": PLAN,
    "plan": '{"bucket": "governance", "key": "plans/1.json", "sha256": "' + "a" * 64 + '"}',
    "taskToken": "token-1",
    "summary": "2 GPUs change hands",
    "askedAt": "2026-11-20T12:00:00Z",
    "expiresAt": 1795176000,
}


@pytest.fixture
def table() -> Iterator[Any]:
    with mock_aws():
        yield governance_table()


@pytest.fixture
def book(table: Any) -> DynamoOrderBook:
    nothing = cast("Any", None)
    return DynamoOrderBook(table, nothing, "governance", nothing, nothing)


def order(**lock: Any) -> UnlockOrder:
    given = {"action": "unlock", "clusterArn": CLUSTER_ARN, "owner": "a run", "fencingToken": 0, "reason": "gone"}
    return UnlockOrder.parse(given | lock)


LOCKS = {
    "as it was shown": ({"fencingToken": 7, "lockExpires": 9}, {"fencingToken": 7, "expires": 9}, True),
    "taken anew": ({"fencingToken": 8, "lockExpires": 9}, {"fencingToken": 7, "expires": 9}, False),
    "renewed": ({"fencingToken": 7, "lockExpires": 10}, {"fencingToken": 7, "expires": 9}, False),
    "without a token": ({"lockExpires": 9}, {"fencingToken": 0, "expires": 9}, True),
    "with a token that the order does not say": ({"fencingToken": 7, "lockExpires": 9}, {"expires": 9}, False),
    "without a token and an end": ({}, {}, True),
}


@pytest.mark.parametrize(("stands", "shown", "is_freed"), LOCKS.values(), ids=LOCKS)
def test_a_lock_is_freed_only_as_it_was_shown(
    table: Any, book: DynamoOrderBook, stands: dict[str, int], shown: dict[str, int], *, is_freed: bool
) -> None:
    table.put_item(Item={**STATE, "lockOwner": "a run", **stands})
    if is_freed:
        book.free_lock(order(**shown))
    else:
        with pytest.raises(ConflictError, match="changed meanwhile"):
            book.free_lock(order(**shown))
    assert ("lockOwner" in table.get_item(Key=STATE)["Item"]) is not is_freed


@pytest.mark.parametrize(
    "damage",
    [
        {"plan": "{"},
        {"plan": None},
        {"expiresAt": "soon"},
        {"taskToken": None},
        {"schema": 99},
        {"planId": "plan-another"},
        {"clusterArn": CLUSTER_ARN[:-1] + "m"},
    ],
)
def test_a_request_that_cannot_be_read_or_is_of_another_plan_is_an_error_with_its_name(
    table: Any, book: DynamoOrderBook, damage: dict[str, Any]
) -> None:
    item = {**REQUEST, **damage}
    table.put_item(Item={name: value for name, value in item.items() if value is not None})
    with pytest.raises(UpstreamError, match="cannot be read"):
        book.request(CLUSTER_ARN, PLAN)


@pytest.mark.parametrize(("by", "accepted"), [("ana", None), ("ben", f"{ACCOUNT}:user/ana")])
def test_an_acceptance_is_withdrawn_by_who_gave_it_alone(
    table: Any, book: DynamoOrderBook, by: str, accepted: str | None
) -> None:
    ana = person_of(f"{ACCOUNT}:user/ana")
    book.record_acceptance("ml-cluster", "v1", ana, NOON)
    book.withdraw_acceptance("ml-cluster", "v1", person_of(f"{ACCOUNT}:user/{by}"))
    known = book.authorship("ml-cluster", "v1")
    assert known is not None
    assert known.accepted_by == accepted
