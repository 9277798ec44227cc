"""The commands that act on a stack where a plan waits for approval: approve and reject."""

from collections.abc import Iterator

import boto3
import pytest

from taskgov_embedded.walkthrough.world import World
from tests.support.operating import (
    ASKS,
    BEFORE,
    DOCUMENT,
    be,
    counts,
    data,
    opened,
    pending_plan,
    played,
    taskgov,
    waiting,
    write_as,
)


@pytest.fixture
def asking() -> Iterator[World]:
    """A plan that waits for approval."""
    with opened({"policy": DOCUMENT | ASKS}, {"waitMinutes": 2}) as world:
        yield played(world)


def test_an_approved_plan_is_applied_and_the_approver_is_on_record(asking: World) -> None:
    plan = pending_plan(asking)
    result = taskgov("approve", plan)
    asking.stack.run_until_quiet()
    assert (result.exit_code, counts(asking)) == (0, BEFORE)
    (run,) = data("history", "ml-cluster")
    assert (run["outcome"], run["planId"]) == ("applied", plan)
    assert f"plan {plan} approved by arn:aws:iam::111122223333:user/operator" in run["cause"]["what"]


def test_a_rejected_plan_is_not_applied_and_says_by_whom(asking: World) -> None:
    answer = data("reject", pending_plan(asking))
    asking.stack.run_until_quiet()
    assert (answer["approved"], answer["by"]) == (False, "arn:aws:iam::111122223333:user/operator")
    (run,) = data("history", "ml-cluster")
    assert (run["outcome"], run["error"]) == ("rejected", f"rejected by {answer['by']}")
    assert asking.quotas() == {}


def test_a_plan_is_answered_once_and_the_second_hears_who_was_first(asking: World) -> None:
    plan = pending_plan(asking)
    taskgov("approve", plan)
    second = taskgov("reject", plan)
    assert second.exit_code == 1
    assert "was approved by arn:aws:iam::111122223333:user/operator" in second.stderr


def test_a_request_that_nobody_waits_for_any_more_is_refused_with_the_way_to_a_new_plan(asking: World) -> None:
    plan = pending_plan(asking)
    steps = boto3.client("stepfunctions")
    machine = asking.stack.outputs["ReconcileStateMachineArn"]
    (running,) = steps.list_executions(stateMachineArn=machine, statusFilter="RUNNING")["executions"]
    asking.stack.advance(25 * 3600, schedules=())
    assert steps.describe_execution(executionArn=running["executionArn"])["status"] == "SUCCEEDED"
    result = taskgov("approve", plan)
    assert result.exit_code == 1
    assert "taskgov reconcile ml-cluster" in result.stderr


def test_who_wrote_the_document_does_not_approve_what_follows_from_it(
    asking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    taskgov("reject", pending_plan(asking))
    asking.stack.run_until_quiet()
    asking.stack.advance(25 * 3600, schedules=())  # the rejection stands as long as the request would have
    write_as("ana", asking)
    plan = max(waiting(asking), key=lambda item: str(item["askedAt"]))["planId"]
    be("ana", asking, monkeypatch)
    own = taskgov("approve", plan)
    be("ben", asking, monkeypatch)
    others = taskgov("approve", plan)
    assert (own.exit_code, others.exit_code) == (1, 0)
    assert "ana wrote the policy document" in own.stderr
