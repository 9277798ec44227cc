"""The commands that act on a deployed stack: approve, reject, rollback, stop, reconcile."""

from collections.abc import Iterator

import boto3
import pytest

from taskgov_embedded.walkthrough.world import World
from tests.support.operating import (
    AFTER,
    APPLIED,
    ASKS,
    BEFORE,
    DOCUMENT,
    G5,
    be,
    counts,
    data,
    last_plan,
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


@pytest.fixture
def applied() -> Iterator[World]:
    with opened(*APPLIED) as world:
        yield played(world)


def test_an_approved_plan_is_applied_and_the_approver_is_on_record(asking: World) -> None:
    result = taskgov("approve", pending_plan(asking))
    asking.stack.run_until_quiet()
    assert (result.exit_code, counts(asking)) == (0, BEFORE)
    (run,) = data("history", "ml-cluster")
    assert run["outcome"] == "applied"
    assert "approved by arn:aws:iam::111122223333:user/operator" in run["cause"]["what"]


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


def test_a_rollback_restores_what_the_plan_changed_and_stays_while_the_stop_switch_is_on(applied: World) -> None:
    plan = last_plan()
    answer = data("rollback", plan, "--yes", "--stop")
    assert (answer["written"], answer["error"], answer["stopSwitch"]) == (2, None, True)
    applied.stack.run_until_quiet(300)
    assert counts(applied) == BEFORE
    records = data("history", "ml-cluster")
    ours = next(run for run in records if run["outcome"] == "rolled-back")
    assert (ours["planId"], ours["applied"], ours["cause"]["by"]) == (
        plan,
        2,
        "arn:aws:iam::111122223333:user/operator",
    )


def test_without_the_stop_switch_the_next_run_applies_the_document_again(applied: World) -> None:
    result = taskgov("rollback", last_plan(), "--yes")
    assert "The stop switch is off" in result.stdout
    applied.stack.run_until_quiet(300)
    assert counts(applied) == AFTER


def test_a_rollback_leaves_everything_when_somebody_changed_a_part_of_it(applied: World) -> None:
    plan = last_plan()
    taskgov("stop", "on")
    summary = applied.quota_named("team-a")
    applied.stack.client("sagemaker", person="ana").update_compute_quota(
        ComputeQuotaId=summary["ComputeQuotaId"],
        TargetVersion=summary["ComputeQuotaVersion"],
        ComputeQuotaConfig={"ComputeQuotaResources": [{"InstanceType": G5, "Count": 0}]},
        ComputeQuotaTarget={"TeamName": "team-a"},
    )
    applied.stack.run_until_quiet(300)
    result = taskgov("rollback", plan, "--yes")
    assert (result.exit_code, counts(applied)) == (1, AFTER | {"team-a": 0})
    assert "changed since" in result.stderr


def test_a_rollback_waits_for_no_run_and_releases_its_lock(applied: World) -> None:
    plan = last_plan()
    table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
    key = {"pk": f"CLUSTER#{applied.cluster_arn}", "sk": "STATE"}
    in_an_hour = int(applied.clock.now.timestamp()) + 3600
    table.update_item(
        Key=key,
        UpdateExpression="SET lockOwner = :run, lockExpires = :then",
        ExpressionAttributeValues={":run": "a run", ":then": in_an_hour},
    )
    busy = taskgov("rollback", plan, "--yes")
    table.update_item(Key=key, UpdateExpression="REMOVE lockOwner, lockExpires")
    assert (busy.exit_code, counts(applied)) == (1, AFTER)
    assert "a run holds the lock" in busy.stderr
    assert taskgov("rollback", plan, "--yes").exit_code == 0
    assert "lockOwner" not in table.get_item(Key=key)["Item"]


def test_the_stop_switch_keeps_a_run_from_writing_until_it_is_turned_off(applied: World) -> None:
    assert taskgov("stop", "on", "--reason", "maintenance").exit_code == 0
    bucket = applied.stack.outputs["BucketName"]
    text = boto3.client("s3").get_object(Bucket=bucket, Key="policies/ml-cluster.yaml")["Body"].read().decode()
    boto3.client("s3").put_object(
        Bucket=bucket, Key="policies/ml-cluster.yaml", Body=text.replace("Count: 1", "Count: 2").encode()
    )
    applied.stack.run_until_quiet(300)
    assert (counts(applied), data("history", "ml-cluster")[0]["outcome"]) == (AFTER, "blocked")
    switch = data("stop")
    assert (switch["on"], switch["reason"]) == (True, "maintenance")
    taskgov("stop", "off")
    assert taskgov("reconcile", "ml-cluster").exit_code == 0
    applied.stack.run_until_quiet(300)
    assert counts(applied) == BEFORE


def test_the_operators_request_names_who_asked(applied: World) -> None:
    asked = data("reconcile", applied.cluster_arn)
    applied.stack.run_until_quiet(300)
    run = data("history", "ml-cluster")[0]
    assert (run["cause"]["eventId"], run["cause"]["by"]) == (asked["eventId"], asked["by"])
