"""What commands show of a deployed stack without changing it, and how they say that they could not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import boto3
import pytest

from taskgov.keys import STOP_SWITCH
from taskgov.services.end_of_run import RunOutcome
from taskgov_cli.history import STYLES, _cause, _written
from taskgov_embedded.walkthrough.world import World
from tests.support.operating import AFTER, APPLIED, counts, data, last_plan, opened, played, taskgov


@pytest.fixture(scope="module")
def applied() -> Iterator[World]:
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        with opened(*APPLIED) as world:
            yield played(world)


def test_history_shows_the_newest_runs_first(applied: World) -> None:
    assert [run["outcome"] for run in data("history", "ml-cluster", "--limit", "1")] == ["applied"]
    starts = [run["startedAt"] for run in data("history", "ml-cluster")]
    assert starts == sorted(starts, reverse=True)
    assert len(starts) == 2
    shown = taskgov("history", applied.cluster_arn)
    assert "Object Created: policies/ml-cluster.yaml" in " ".join(shown.stdout.split())


def test_a_record_whose_time_has_no_offset_is_left_out_and_named(applied: World) -> None:
    table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
    (kept, *_) = [item for item in table.scan()["Items"] if str(item["sk"]).startswith("RUN#")]
    odd = kept | {"sk": "RUN#2026-11-20T09:00:00#odd", "startedAt": "2026-11-20T09:00:00"}
    table.put_item(Item=odd)
    try:
        result = taskgov("history", "ml-cluster", "--json")
    finally:
        table.delete_item(Key={name: odd[name] for name in ("pk", "sk")})
    assert (result.exit_code, len(json.loads(result.stdout))) == (0, 2)
    assert "its startedAt is 2026-11-20T09:00:00, without an offset from UTC" in result.stderr


def test_a_stop_switch_with_a_time_that_cannot_be_read_is_shown(applied: World) -> None:
    table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
    table.put_item(Item={**STOP_SWITCH, "on": True, "by": "ana", "at": "noon"})
    try:
        result = taskgov("stop")
    finally:
        table.delete_item(Key=dict(STOP_SWITCH))
    assert (result.exit_code, "on, turned on by ana at noon" in " ".join(result.stdout.split())) == (0, True)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("UpdateComputeQuota", "UpdateComputeQuota by ana"),
        ("UpdateComputeQuota; plan plan-1 approved by ben", "UpdateComputeQuota by ana; plan plan-1 approved by ben"),
        ("Run Ordered", "run requested by ana"),
        ("Resync Due", "run of the schedule by ana"),
        ("", "a kind by ana"),
    ],
)
def test_a_cause_names_who_caused_the_run_before_who_approved_its_plan(what: str, said: str) -> None:
    assert _cause({"cause": json.dumps({"what": what, "detailType": "a kind", "by": "ana"})}) == said


@pytest.mark.parametrize(
    ("named", "applied", "end"),
    [
        (20, 20, "team-19"),
        (30, 30, "team-19 and 10 more: --json shows all"),
        (100, 1000, "team-19 and 980 more: the plan in the bucket names them"),
    ],
)
def test_what_an_unfinished_run_wrote_is_named_as_far_as_it_is_on_record(named: int, applied: int, end: str) -> None:
    run = {"outcome": "unfinished", "written": [f"team-{number}" for number in range(named)], "applied": applied}
    (said,) = _written(run)
    assert said.endswith(end)


def test_every_outcome_that_is_documented_has_its_colour() -> None:
    text = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    (line,) = (part for part in text.split("\n\n") if part.startswith("`outcome` is one of "))
    outcomes = set(re.findall(r"`([a-z-]+)`", line)) - {"outcome", "error"}
    plain = {"nothing-to-do", "planned", "apply", "no-progress"}  # nothing was changed; the last two are no run's end
    assert outcomes - plain == set(STYLES)
    assert set(get_args(RunOutcome)) <= outcomes
    assert (STYLES["stopped"], STYLES["unlocked"]) == ("red", "yellow")


def test_a_rollback_is_only_shown_unless_it_is_asked_for(applied: World) -> None:
    result = taskgov("rollback", last_plan())
    assert (result.exit_code, counts(applied)) == (0, AFTER)
    assert "Nothing was written" in result.stdout


def test_a_plan_that_nobody_asked_about_is_refused(applied: World) -> None:
    assert applied.quotas()
    result = taskgov("approve", "plan-of-nobody", "--cluster", "ml-cluster")
    assert (result.exit_code, "no plan plan-of-nobody waits" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("history", "nobody"), "Cluster with name nobody not found"),
        (("history", "ml-cluster", "--stack", "nobody"), "check --stack, the account and the Region"),
    ],
)
def test_what_cannot_be_reached_is_reported_with_exit_code_3(
    applied: World, arguments: tuple[str, ...], says: str
) -> None:
    assert applied.quotas()
    result = taskgov(*arguments)
    assert (result.exit_code, says in result.stderr) == (3, True)
