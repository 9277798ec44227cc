"""The commands that act on a stack where a plan waits for approval: approve and reject."""

import json
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from taskgov_embedded.deployable import TEMPLATE
from taskgov_embedded.walkthrough.world import World
from tests.support.operating import (
    AFTER,
    ASKS,
    BEFORE,
    DOCUMENT,
    HALF,
    be,
    counts,
    data,
    file_of,
    opened,
    pending_plan,
    played,
    taskgov,
    waiting,
    write_as,
)

pytestmark = pytest.mark.long


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


def test_a_plan_is_answered_once_and_the_second_is_answered_with_who_was_first(asking: World) -> None:
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


def test_history_shows_a_plan_that_waits_first_with_the_commands_that_answer_it(asking: World) -> None:
    plan = pending_plan(asking)
    (waits,) = data("history", "ml-cluster")
    assert (waits["outcome"], waits["planId"], waits["applied"]) == ("needs-approval", plan, 0)
    assert waits["waitsUntil"] == "2026-11-21T09:00:50Z"
    assert f"plans/ml-cluster/{plan}/" in waits["plan"]["key"]
    shown = " ".join(taskgov("history", "ml-cluster", "--format", "csv").stdout.split())
    assert f"waits until 2026-11-21 09:00 for: taskgov approve {plan}, or taskgov reject {plan}" in shown


@pytest.mark.parametrize("until", ["soon", -1, 10**20])
def test_history_leaves_out_a_request_that_cannot_be_read_and_says_so(asking: World, until: str | int) -> None:
    table = boto3.resource("dynamodb").Table(asking.stack.outputs["TableName"])
    (key,) = ({name: item[name] for name in ("pk", "sk")} for item in table.scan()["Items"] if item["sk"] == "STATE")
    values = {":until": until}
    table.update_item(Key=key, UpdateExpression="SET askedUntil = :until", ExpressionAttributeValues=values)
    result = taskgov("history", "ml-cluster", "--json")
    assert (result.exit_code, json.loads(result.stdout), "Left out: " in result.stderr) == (0, [], True)


def test_history_shows_the_outcome_of_an_answered_plan_before_runs_that_ended_earlier(asking: World) -> None:
    plan = pending_plan(asking)
    for _ in range(3):
        taskgov("reconcile", "ml-cluster")
        asking.stack.run_until_quiet(300)
    taskgov("reject", plan)
    asking.stack.run_until_quiet(300)
    shown = data("history", "ml-cluster", "--limit", "2")  # a run follows the answer
    assert [(run["outcome"], run["planId"]) for run in shown] == [("needs-approval", plan), ("rejected", plan)]


@pytest.mark.parametrize("answer", ["approve", "reject"])
def test_history_does_not_show_an_answered_plan_as_waiting(asking: World, answer: str) -> None:
    taskgov(answer, pending_plan(asking))
    asking.stack.run_until_quiet()
    assert all("waitsUntil" not in run for run in data("history", "ml-cluster"))


ASKS_ALWAYS = {"approveAbove": {"changedGpus": 0}}
APPROVERS = "arn:aws:iam::111122223333:role/Approvers,arn:aws:iam::111122223333:user/*"


@pytest.fixture
def guarded() -> Iterator[World]:
    """A stack that names approvers, with a document in force whose author nobody knows."""
    with opened({"policy": DOCUMENT}, {"waitMinutes": 2}, Approvers=APPROVERS) as world:
        yield played(world)


def newest(world: World) -> str:
    return str(max(waiting(world), key=lambda item: str(item["askedAt"]))["planId"])


def test_a_document_of_an_unknown_author_needs_an_approver_who_accepts_it(guarded: World) -> None:
    (request,) = waiting(guarded)
    assert "Who wrote version" in request["summary"]
    assert counts(guarded) == {}
    assert taskgov("approve", str(request["planId"])).exit_code == 0
    guarded.stack.run_until_quiet()
    assert counts(guarded) == BEFORE
    guarded.stack.fire("ResyncAllSchedule")
    guarded.stack.run_until_quiet()
    assert waiting(guarded) == []


def test_metadata_does_not_say_who_wrote_a_document(guarded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    taskgov("approve", newest(guarded))
    guarded.stack.run_until_quiet()
    write_as("arn:aws:iam::111122223333:user/ana", guarded)
    version = boto3.client("s3").head_object(Bucket=guarded.stack.outputs["BucketName"], Key="policies/ml-cluster.yaml")
    assert guarded.stack.invoke("ReadSnapshotFunction", _read_request(guarded)).is_error is False
    assert _behind(guarded, version["VersionId"]) is None


def _read_request(world: World) -> dict[str, str]:
    return {"clusterArn": world.cluster_arn, "runId": "by-hand"}


def _behind(world: World, version: str) -> object:
    table = boto3.resource("dynamodb").Table(world.stack.outputs["TableName"])
    return table.get_item(Key={"pk": "DOCUMENT#ml-cluster", "sk": f"VERSION#{version}"}).get("Item")


def put_into_force(person: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a person put a document into force that asks for an approval of what it changes."""
    be(person, world, monkeypatch)
    ended = taskgov(
        "apply", "--policy", file_of(world, tmp_path, teams=HALF, guardrails=ASKS_ALWAYS), "--wait", "300", "--yes"
    )
    assert "needs-approval" in ended.stdout, ended.output


def test_who_put_the_document_into_force_does_not_approve_what_follows_in_another_session_either(
    guarded: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taskgov("approve", newest(guarded))
    guarded.stack.run_until_quiet()
    put_into_force("Approvers/one", guarded, tmp_path, monkeypatch)
    plan = newest(guarded)
    be("Approvers/two", guarded, monkeypatch)
    own = taskgov("approve", plan)
    be("ben", guarded, monkeypatch)
    others = taskgov("approve", plan)
    guarded.stack.run_until_quiet()
    assert (own.exit_code, others.exit_code, counts(guarded)) == (1, 0, AFTER)
    assert "role/Approvers put the document into force" in " ".join(own.stderr.split())


def test_the_run_itself_refuses_an_approval_by_the_author(
    guarded: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taskgov("approve", newest(guarded))
    guarded.stack.run_until_quiet()
    put_into_force("ana", guarded, tmp_path, monkeypatch)
    (request,) = waiting(guarded)
    answer = {"approved": True, "by": "somebody", "person": "arn:aws:iam::111122223333:user/ana"}
    boto3.client("stepfunctions").send_task_success(taskToken=request["taskToken"], output=json.dumps(answer))
    guarded.stack.run_until_quiet(300)
    assert counts(guarded) == BEFORE
    assert [each["planId"] for each in waiting(guarded)] == [request["planId"]]


def test_an_approval_of_nobody_counts_for_nothing(guarded: World) -> None:
    (request,) = waiting(guarded)
    answer = {"approved": True, "by": "arn:aws:iam::111122223333:user/ben"}
    boto3.client("stepfunctions").send_task_success(taskToken=request["taskToken"], output=json.dumps(answer))
    guarded.stack.run_until_quiet(300)
    assert counts(guarded) == {}


def test_who_is_no_approver_cannot_answer(guarded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    be("Developers/ben", guarded, monkeypatch)
    for command in ("approve", "reject"):
        refused = taskgov(command, newest(guarded))
        assert refused.exit_code == 1
        assert "Approvers does not name this person" in refused.stderr
    assert len(waiting(guarded)) == 1


def test_a_right_that_is_revoked_is_revoked_at_once(guarded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = guarded.stack.parameters | {"Approvers": "arn:aws:iam::111122223333:user/lead"}
    guarded.stack.update(TEMPLATE, parameters)
    be("ben", guarded, monkeypatch)
    assert taskgov("approve", newest(guarded)).exit_code == 1
    be("lead", guarded, monkeypatch)
    assert taskgov("approve", newest(guarded)).exit_code == 0


def test_the_stop_switch_names_whom_aws_attests(asking: World, monkeypatch: pytest.MonkeyPatch) -> None:
    be("Ops/ana", asking, monkeypatch)
    switch = data("stop", "on", "--reason", "maintenance")
    assert (switch["on"], switch["by"]) == (True, "arn:aws:sts::111122223333:assumed-role/Ops/ana")
