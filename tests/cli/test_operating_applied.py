"""Commands that act on a stack whose plan was applied: rollback, stop, reconcile. Each test has a fork of one world."""

from collections.abc import Iterator

import boto3
import pytest

from taskgov.adapters.dynamodb import Table
from taskgov.allocation.refusals import wanted_digest
from taskgov.hyperpod.model import ComputeQuotaTarget
from taskgov_embedded.walkthrough.world import World
from tests.support.forked import in_a_fork
from tests.support.operating import (
    AFTER,
    APPLIED,
    BEFORE,
    G5,
    a_run_with_the_lock,
    counts,
    data,
    last_plan,
    opened,
    played,
    state,
    taskgov,
)
from tests.support.plans import instances
from tests.support.refusals import refused_for

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def applied() -> Iterator[World]:
    with opened(*APPLIED) as world:
        yield played(world)


def write_document(world: World, old: str, new: str) -> None:
    """Store the policy document with other words in it."""
    bucket, key = world.stack.outputs["BucketName"], "policies/ml-cluster.yaml"
    text = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=text.replace(old, new).encode())


@in_a_fork
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


@in_a_fork
def test_a_rollback_of_what_is_restored_already_leaves_no_record(applied: World) -> None:
    plan = last_plan()
    assert [change["gpusBefore"] for change in data("rollback", plan, "--yes", "--stop")["changes"]] == [2, 2]
    before = data("history", "ml-cluster")
    again = taskgov("rollback", plan, "--yes")
    assert (again.exit_code, "There is nothing to restore." in again.stdout) == (0, True)
    assert data("history", "ml-cluster") == before


@in_a_fork
def test_without_the_stop_switch_the_next_run_applies_the_document_again(applied: World) -> None:
    result = taskgov("rollback", last_plan(), "--yes")
    assert "The stop switch is off: in apply mode, the next run applies" in result.stdout
    applied.stack.run_until_quiet(300)
    assert counts(applied) == AFTER


@in_a_fork
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
    shown = taskgov("rollback", plan)
    assert "Nothing was written, and nothing can be: team-a-quota of plan" in " ".join(shown.stdout.split())
    assert "will be restored" not in shown.stdout
    result = taskgov("rollback", plan, "--yes")
    assert (result.exit_code, counts(applied)) == (1, AFTER | {"team-a": 0})
    assert "changed since" in result.stderr


@in_a_fork
def test_a_rollback_waits_for_no_run_and_releases_its_lock(applied: World) -> None:
    plan = last_plan()
    with a_run_with_the_lock(applied):
        busy = taskgov("rollback", plan, "--yes")
    assert (busy.exit_code, counts(applied)) == (1, AFTER)
    assert "a run holds the lock" in busy.stderr
    assert taskgov("rollback", plan, "--yes").exit_code == 0
    assert "lockOwner" not in state(applied)


@in_a_fork
def test_the_stop_switch_keeps_a_run_from_writing_until_it_is_turned_off(applied: World) -> None:
    assert taskgov("stop", "on", "--reason", "maintenance").exit_code == 0
    write_document(applied, "Count: 1", "Count: 2")
    applied.stack.run_until_quiet(300)
    assert (counts(applied), data("history", "ml-cluster")[0]["outcome"]) == (AFTER, "blocked")
    switch = data("stop")
    assert (switch["on"], switch["reason"]) == (True, "maintenance")
    taskgov("stop", "off")
    assert taskgov("reconcile", "ml-cluster").exit_code == 0
    applied.stack.run_until_quiet(300)
    assert counts(applied) == BEFORE


@in_a_fork
def test_the_operators_request_names_who_asked(applied: World) -> None:
    asked = data("reconcile", applied.cluster_arn)
    applied.stack.run_until_quiet(300)
    run = data("history", "ml-cluster")[0]
    assert (run["cause"]["eventId"], run["cause"]["by"]) == (asked["eventId"], asked["by"])


@in_a_fork
def test_a_refused_write_is_asked_for_again_when_an_operator_says_so(applied: World) -> None:
    summary = applied.quota_named("team-a")
    wanted = wanted_digest(instances(2, G5), ComputeQuotaTarget(team_name="team-a"))
    refused = refused_for(summary, applied.clock.now, wanted)
    store = Table(boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"]))
    store.record_refusal(applied.cluster_arn, refused)
    write_document(applied, "Count: 1", "Count: 2")
    applied.stack.run_until_quiet(300)
    assert counts(applied) == AFTER
    assert data("reconcile", "ml-cluster")["forgottenRefusals"] == []
    assert data("reconcile", "ml-cluster", "--retry-refused")["forgottenRefusals"] == [refused.subject]
    applied.stack.run_until_quiet(300)
    assert (counts(applied), store.refusals(applied.cluster_arn)) == (BEFORE, ())
    assert "no refused write is on record" in taskgov("reconcile", "ml-cluster", "--retry-refused").stdout
