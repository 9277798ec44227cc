"""A run that is stopped, at whatever state: its lock is freed, its record closed, and the next run repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest

from tests.support.forked import in_a_fork
from tests.support.operating import (
    AFTER,
    APPLIED,
    counts,
    data,
    opened,
    played,
    state,
    stop_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

SOON = 180
"""Seconds from the event to the next run, at most."""
LEASE = 300


@pytest.fixture(scope="module")
def governed() -> Iterator[World]:
    with opened(*APPLIED[:2]) as world:
        yield played(world)


def change(world: World) -> None:
    """Put the document into force that moves an instance, without waiting for the run."""
    client, bucket = boto3.client("s3"), world.stack.outputs["BucketName"]
    text = client.get_object(Bucket=bucket, Key="policies/ml-cluster.yaml")["Body"].read().decode()
    client.put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=text.replace("Count: 2", "Count: 1").encode())


def seconds_to_the_next_run(world: World, limit: int) -> int:
    seen = len(world.stack.timeline)
    for second in range(1, limit + 1):
        world.stack.advance(1, schedules=[])
        if any(one.kind == "state" and one.what == "Read snapshot" for one in world.stack.timeline.since(seen)):
            return second
    raise AssertionError(f"no run within {limit} s")


def outcomes() -> list[tuple[str, int]]:
    return [(run["outcome"], run["applied"]) for run in data("history", "ml-cluster")]


@pytest.mark.parametrize(
    ("where", "written"), [("Read snapshot", 0), ("Plan quotas", 0), ("Wait to settle", 1), ("Publish usage", 2)]
)
@in_a_fork
def test_a_run_that_is_stopped_is_followed_by_one_that_repairs(governed: World, where: str, written: int) -> None:
    change(governed)
    arn = stop_at(governed, where)
    assert seconds_to_the_next_run(governed, SOON) <= SOON
    governed.stack.run_until_quiet()
    assert counts(governed) == AFTER
    assert "lockOwner" not in state(governed)
    (closed,) = [run for run in data("history", "ml-cluster") if run["outcome"] == "stopped"]
    assert closed["applied"] == written
    assert f"the execution {arn.rpartition(':')[2]} ended ABORTED" in closed["error"]
    assert ("team-a at version 2" in closed["error"]) == (written > 0)
    assert ("plan" in closed) == (written > 0)
    if written:
        plan = governed.plan_at(closed["plan"])
        assert (plan.plan_id, closed["planId"]) == (closed["planId"], plan.plan_id)
        assert {change.team for change in plan.changes} == set(AFTER)
    assert sum(applied for _, applied in outcomes()) == 4  # the first run's two, and these two


@in_a_fork
def test_the_record_of_a_stopped_run_names_what_was_refused(governed: World) -> None:
    governed.stack.faults.fail(
        "sagemaker", "UpdateComputeQuota", code="ResourceLimitExceeded", message="the limit is reached", times=10**6
    )
    change(governed)
    stop_at(governed, "Publish usage")
    governed.stack.run_until_quiet()
    (closed,) = [run for run in data("history", "ml-cluster") if run["outcome"] == "stopped"]
    assert "; refused: " in closed["error"]
    assert "(limit-reached)" in closed["error"]


@in_a_fork
def test_a_change_is_applied_without_any_schedule(governed: World) -> None:
    change(governed)
    governed.stack.advance(SOON, schedules=[])
    assert (outcomes()[0], counts(governed)) == (("applied", 2), AFTER)


@pytest.mark.parametrize("with_input", [True, False], ids=["with its input", "without"])
@in_a_fork
def test_a_run_that_is_stopped_before_it_takes_the_lock_is_followed_by_another(
    governed: World, *, with_input: bool
) -> None:
    governed.stack.executions.includes_data = with_input
    change(governed)
    stop_at(governed, "Begin a run")
    assert "lockOwner" not in state(governed)
    assert seconds_to_the_next_run(governed, SOON) <= SOON
    governed.stack.run_until_quiet()
    assert counts(governed) == AFTER
    assert [outcome for outcome, _ in outcomes()] == ["applied", "applied"]  # what wrote nothing needs no record


@pytest.mark.parametrize("when", ["while the next run works", "after the next run"])
@in_a_fork
def test_a_run_that_is_redriven_after_its_lock_was_freed_finds_its_token_stale_and_writes_nothing(
    governed: World, when: str
) -> None:
    change(governed)
    arn = stop_at(governed, "Apply changes")
    seconds_to_the_next_run(governed, SOON)
    if when == "after the next run":
        governed.stack.run_until_quiet()
    seen = len(governed.stack.timeline)
    client = boto3.client("stepfunctions")
    client.redrive_execution(executionArn=arn)
    governed.stack.run_until_quiet()
    ended = client.describe_execution(executionArn=arn)
    left = "left-to-the-run-that-holds-the-lock" in ended.get("output", "")
    assert (left, ended["redriveCount"]) == (when == "while the next run works", 1)
    stale = [run for run in data("history", "ml-cluster") if "LockLostError" in run.get("error", "")]
    assert [run["outcome"] for run in stale] == ["failed"]
    written = [one for one in governed.stack.timeline.since(seen) if one.kind == "write" and "Quota" in one.what]
    assert when == "while the next run works" or not written
    assert counts(governed) == AFTER
    assert {governed.quota_named(team)["ComputeQuotaVersion"] for team in AFTER} == {2}
    assert "lockOwner" not in state(governed)


@in_a_fork
def test_a_run_that_is_redriven_before_its_end_is_noticed_continues_under_its_own_lock(governed: World) -> None:
    change(governed)
    arn = stop_at(governed, "Apply changes")
    token = state(governed)["fencingToken"]
    boto3.client("stepfunctions").redrive_execution(executionArn=arn)
    governed.stack.run_until_quiet()
    assert counts(governed) == AFTER
    assert (state(governed)["fencingToken"], "lockOwner" in state(governed)) == (token, False)
    assert outcomes() == [("applied", 2), ("applied", 2)]


@in_a_fork
def test_without_the_event_a_hint_frees_the_lock_of_a_run_that_is_over(governed: World) -> None:
    governed.stack.executions.sends_events = False
    change(governed)
    stop_at(governed, "Wait to settle")
    governed.stack.advance(130, schedules=[])
    assert data("reconcile", "ml-cluster")["clusterArn"] == governed.cluster_arn
    assert seconds_to_the_next_run(governed, SOON) < LEASE
    governed.stack.run_until_quiet()
    assert counts(governed) == AFTER
    assert [outcome for outcome, _ in outcomes()].count("stopped") == 1


@in_a_fork
def test_without_event_and_hint_the_resync_after_the_lease_starts_the_next_run(governed: World) -> None:
    governed.stack.executions.sends_events = False
    change(governed)
    stop_at(governed, "Wait to settle")
    left = int(state(governed)["lockExpires"]) - governed.clock.now.timestamp()
    assert 0 < left <= LEASE
    governed.stack.advance(left, schedules=[])
    governed.stack.fire("ResyncAllSchedule")
    assert seconds_to_the_next_run(governed, SOON) <= SOON
    governed.stack.run_until_quiet()
    assert counts(governed) == AFTER
    assert "lockOwner" not in state(governed)


@in_a_fork
def test_a_lock_without_an_end_is_freed_at_the_next_hint(governed: World) -> None:
    """Half an item, of whatever cause: before, executions succeeded without doing anything."""
    table = boto3.resource("dynamodb").Table(governed.stack.outputs["TableName"])
    key = {"pk": f"CLUSTER#{governed.cluster_arn}", "sk": "STATE"}
    table.update_item(Key=key, UpdateExpression="SET lockOwner = :o", ExpressionAttributeValues={":o": "nobody"})
    change(governed)
    governed.stack.run_until_quiet(300)
    assert counts(governed) == AFTER


@in_a_fork
def test_a_living_run_keeps_its_lock_whatever_is_hinted(governed: World) -> None:
    change(governed)
    seen = len(governed.stack.timeline)
    for _ in range(20):
        data("reconcile", "ml-cluster")
        governed.stack.advance(10, schedules=[])
    runs = [one for one in governed.stack.timeline.since(seen) if one.kind == "execution" and "ABORTED" in one.what]
    governed.stack.run_until_quiet()
    assert (runs, counts(governed)) == ([], AFTER)
    assert "stopped" not in [outcome for outcome, _ in outcomes()]
