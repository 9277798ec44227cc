"""`taskgov unlock`: who holds a lock, and how it is freed."""

from collections.abc import Iterator

import boto3
import pytest

from taskgov.ports import Execution, Lock
from taskgov_cli import unlock
from taskgov_embedded.walkthrough.world import World
from tests.support.forked import in_a_fork
from tests.support.operating import APPLIED, a_run_with_the_lock, data, opened, played, state, taskgov

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def applied() -> Iterator[World]:
    with opened(*APPLIED[:2]) as world:
        yield played(world)


@in_a_fork
def test_a_lock_that_nobody_holds_is_said_to_be_free(applied: World) -> None:
    result = taskgov("unlock", "ml-cluster")
    assert (result.exit_code, result.stdout.strip()) == (0, "The lock of ml-cluster is free.")
    assert data("unlock", applied.cluster_arn)["owner"] is None


@in_a_fork
def test_without_yes_the_holder_is_shown_and_keeps_the_lock(applied: World) -> None:
    with a_run_with_the_lock(applied):
        result = taskgov("unlock", "ml-cluster")
        assert "The lock of ml-cluster is held by a run until 2026-11-20 10:0" in result.stdout
        assert " UTC (fencing token " in result.stdout
        assert data("unlock", "ml-cluster")["held"]
        assert "Nothing was changed" in result.stdout
        assert state(applied)["lockOwner"] == "a run"


@in_a_fork
def test_freeing_needs_a_reason(applied: World) -> None:
    with a_run_with_the_lock(applied):
        result = taskgov("unlock", "ml-cluster", "--yes")
        assert (result.exit_code, state(applied)["lockOwner"]) == (1, "a run")
        assert "--yes needs --reason TEXT" in result.stderr


@in_a_fork
def test_a_lock_that_is_freed_is_on_record_with_who_and_why_and_a_run_follows(applied: World) -> None:
    with a_run_with_the_lock(applied):
        answer = data("unlock", "ml-cluster", "--yes", "--reason", "its execution was deleted")
        assert (answer["owner"], answer["freed"]) == ("a run", True)
        assert "lockOwner" not in state(applied)
        applied.stack.run_until_quiet(300)
    unlocked, after = data("history", "ml-cluster")[1::-1]
    assert unlocked["outcome"] == "unlocked"
    assert unlocked["cause"]["by"] == "arn:aws:iam::111122223333:user/operator"
    assert unlocked["cause"]["what"] == "lock of a run freed by hand: its execution was deleted"
    assert after["outcome"] == "nothing-to-do"
    assert after["cause"]["by"] == "arn:aws:iam::111122223333:user/operator"


@in_a_fork
def test_a_person_needs_no_right_to_write_the_table_or_to_put_events(applied: World) -> None:
    before = len(applied.stack.calls)
    with a_run_with_the_lock(applied):
        assert data("unlock", "ml-cluster", "--yes", "--reason", "gone")["freed"]
    assert data("reconcile", "ml-cluster")["by"] == "arn:aws:iam::111122223333:user/operator"
    of_person = {call.action for call in applied.stack.calls[before:] if call.principal.role_arn is None}
    of_person.discard("dynamodb:UpdateItem")  # of `a_run_with_the_lock`
    assert not {action for action in of_person if action.startswith(("dynamodb:Put", "dynamodb:Update", "events:"))}


@in_a_fork
def test_a_lock_that_changed_after_it_was_shown_is_not_freed(applied: World) -> None:
    own = unlock._execution

    def meanwhile(lock: Lock) -> Execution | None:
        table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
        table.update_item(Key={"pk": f"CLUSTER#{applied.cluster_arn}", "sk": "STATE"}, **change)
        return own(lock)

    renewed = {"UpdateExpression": "SET lockExpires = lockExpires + :s", "ExpressionAttributeValues": {":s": 300}}
    another = {"UpdateExpression": "SET lockOwner = :o", "ExpressionAttributeValues": {":o": "another run"}}
    taken_anew = {"UpdateExpression": "ADD fencingToken :one", "ExpressionAttributeValues": {":one": 1}}
    freed = {"UpdateExpression": "REMOVE lockOwner, lockExpires"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unlock, "_execution", meanwhile)
        for change in (renewed, another, taken_anew, freed):
            with a_run_with_the_lock(applied):
                result = taskgov("unlock", "ml-cluster", "--yes", "--reason", "it looks dead")
                assert result.exit_code == 1, result.stdout
                assert "changed meanwhile" in " ".join(result.stderr.split())
                assert ("lockOwner" in state(applied)) == (change is not freed)
    assert "unlocked" not in [run["outcome"] for run in data("history", "ml-cluster")]


@in_a_fork
def test_the_execution_that_holds_the_lock_is_shown_with_its_status(applied: World) -> None:
    machine = applied.stack.outputs["ReconcileStateMachineArn"]
    started = boto3.client("stepfunctions").list_executions(stateMachineArn=machine)["executions"][0]
    table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
    table.update_item(
        Key={"pk": f"CLUSTER#{applied.cluster_arn}", "sk": "STATE"},
        UpdateExpression="SET lockOwner = :o",
        ExpressionAttributeValues={":o": started["executionArn"]},
    )
    shown = data("unlock", "ml-cluster")
    assert (shown["execution"], shown["until"], shown["held"]) == ("SUCCEEDED", None, False)
    told = taskgov("unlock", "ml-cluster").stdout
    assert f"Nobody holds the lock of ml-cluster: the lock of {started['executionArn']} has no end" in told
    assert "its status is SUCCEEDED" in told
    assert data("unlock", "ml-cluster", "--yes", "--reason", "no end")["freed"]
    assert "lockOwner" not in state(applied)


@in_a_fork
def test_a_lock_that_ran_out_is_not_called_held(applied: World) -> None:
    machine = applied.stack.outputs["ReconcileStateMachineArn"].replace(":stateMachine:", ":execution:")
    table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
    table.update_item(
        Key={"pk": f"CLUSTER#{applied.cluster_arn}", "sk": "STATE"},
        UpdateExpression="SET lockOwner = :o, lockExpires = :past",
        ExpressionAttributeValues={":o": f"{machine}:gone", ":past": 1_700_000_000},
    )
    shown = taskgov("unlock", "ml-cluster").stdout
    assert f"Nobody holds the lock of ml-cluster: the lock of {machine}:gone ended at 2023-11-14 22:13:20 UTC" in shown
    assert "Step Functions does not have its execution any more." in shown
    assert "nothing has to be freed" in shown
