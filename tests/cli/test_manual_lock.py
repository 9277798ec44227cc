"""The lock of a command that writes: answers that are lost, and runs that were turned away meanwhile."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from taskgov_cli import manual_lock
from taskgov_cli.deployed import RefusedError

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
KEY = {"pk": f"CLUSTER#{ARN}", "sk": "STATE"}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield boto3.resource("dynamodb", region_name="us-east-1").create_table(
            TableName="governance",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    monkeypatch.setattr(manual_lock, "request_run", lambda _, cluster_arn: asked.append(cluster_arn))
    return asked


class LosesAnswers:
    """A table whose first answer is lost after the call took effect, so that botocore sends the call again."""

    def __init__(self, table: Any) -> None:
        self._table, self._lost = table, False

    def update_item(self, **arguments: Any) -> Any:
        if not self._lost:
            self._lost = True
            self._table.update_item(**arguments)
        return self._table.update_item(**arguments)


def place(table: Any) -> Any:
    return SimpleNamespace(table=table, backends=SimpleNamespace(tags=lambda _: {}))


def test_a_command_whose_lock_was_taken_and_whose_answer_was_lost_has_the_lock(table: Any, requests: list[str]) -> None:
    with manual_lock.locked(place(LosesAnswers(table)), ARN, "ana rollback plan-1") as held:
        item = table.get_item(Key=KEY)["Item"]
        assert (item["lockOwner"], int(item["fencingToken"])) == (held.owner, held.token)
    assert "lockOwner" not in table.get_item(Key=KEY)["Item"]


def test_another_command_does_not_get_the_lock_meanwhile(table: Any, requests: list[str]) -> None:
    with (
        manual_lock.locked(place(table), ARN, "ana rollback plan-1"),
        pytest.raises(RefusedError, match="holds the lock"),
        manual_lock.locked(place(table), ARN, "ben rollback plan-1"),
    ):
        pass


def test_a_lock_without_an_end_is_taken(table: Any, requests: list[str]) -> None:
    table.put_item(Item={**KEY, "lockOwner": "nobody", "fencingToken": 7})
    with manual_lock.locked(place(table), ARN, "ana rollback plan-1") as held:
        assert held.token == 8


def test_a_run_follows_each_command_because_one_may_have_been_turned_away(table: Any, requests: list[str]) -> None:
    """The hint of that run came before the lock was taken, so that the generation says nothing of it."""
    with manual_lock.locked(place(table), ARN, "ana rollback plan-1"):
        assert requests == []
    assert requests == [ARN]
