"""`taskgov apply`: a document by the stack's own run, one plan under the lock; nothing without being told."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
import yaml

from taskgov_cli.applying import document
from taskgov_embedded.walkthrough.world import World
from tests.support.operating import (
    AFTER,
    APPLIED,
    BEFORE,
    DOCUMENT,
    HALF,
    be,
    counts,
    data,
    file_of,
    opened,
    played,
    taskgov,
)

pytestmark = pytest.mark.long

KEY = "policies/ml-cluster.yaml"
ASKS_FOR_ALL = {"approveAbove": {"changedGpus": 0}}


@pytest.fixture(scope="module")
def one_world() -> Iterator[World]:
    with opened(*APPLIED) as world:
        yield played(world)


@pytest.fixture
def applied(one_world: World) -> World:
    """A stack in `apply` mode, its document in force: team A has 1 of 4, the pool the rest."""
    boto3.setup_default_session()
    taskgov("stop", "off")
    text = yaml.safe_dump(DOCUMENT | {"teams": HALF}).replace("${clusterArn}", one_world.cluster_arn)
    if stored(one_world) != text:
        bucket = one_world.stack.outputs["BucketName"]
        boto3.client("s3").put_object(Bucket=bucket, Key=KEY, Body=text.encode())
        one_world.stack.run_until_quiet(300)
    assert counts(one_world) == AFTER
    return one_world


def stored(world: World) -> str:
    bucket = world.stack.outputs["BucketName"]
    return boto3.client("s3").get_object(Bucket=bucket, Key=KEY)["Body"].read().decode()


def test_without_yes_the_plan_is_shown_and_nothing_is_written(applied: World, tmp_path: Path) -> None:
    before, calls = stored(applied), len(applied.stack.calls)
    result = taskgov("apply", "--policy", file_of(applied, tmp_path))
    assert (result.exit_code, "Nothing was written" in result.stdout) == (0, True), result.output
    assert "shared-pool 3 -> 2" in result.stdout
    reads = ("Describe", "List", "Get", "Head", "Query")
    assert [str(call) for call in applied.stack.calls[calls:] if not call.operation.startswith(reads)] == []
    assert (stored(applied), counts(applied)) == (before, AFTER)


def test_a_document_goes_through_the_stacks_own_run_which_names_who_put_it_there(
    applied: World, tmp_path: Path
) -> None:
    answer = data("apply", "--policy", file_of(applied, tmp_path), "--yes")
    assert (answer["ended"]["outcome"], counts(applied)) == ("applied", BEFORE)
    run = next(run for run in data("history", "ml-cluster") if run["planId"] == answer["ended"]["planId"])
    assert (run["outcome"], run["cause"]["what"]) == ("applied", f"Object Created: {KEY}")
    version = boto3.client("s3").head_object(Bucket=applied.stack.outputs["BucketName"], Key=KEY)["VersionId"]
    table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
    behind = table.get_item(Key={"pk": "DOCUMENT#ml-cluster", "sk": f"VERSION#{version}"})["Item"]
    assert behind["author"] == behind["storedBy"] == "arn:aws:iam::111122223333:user/operator"
    writes = [call for call in applied.stack.calls if call.operation == "UpdateComputeQuota"]
    assert {call.principal.name.split("-")[1] for call in writes} == {"ApplyChangeRole"}


def test_a_document_that_changes_nothing_is_put_into_force_and_its_run_finds_nothing(
    applied: World, tmp_path: Path
) -> None:
    shown = taskgov("apply", "--policy", file_of(applied, tmp_path, teams=HALF, handEdits="adopt"))
    assert "No quota would change. To put the document into force, repeat the command with --yes" in shown.stdout
    answer = data("apply", "--policy", file_of(applied, tmp_path, teams=HALF, handEdits="adopt"), "--yes")
    assert (answer["plan"]["changes"], answer["ended"]["outcome"]) == ([], "nothing-to-do")
    assert "handEdits: adopt" in stored(applied)


def test_a_document_that_needs_approval_waits_for_a_person(
    applied: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = taskgov("apply", "--policy", file_of(applied, tmp_path, guardrails=ASKS_FOR_ALL))
    assert "To put the document into force and request the approval, repeat the command with --yes" in shown.stdout
    calls = len(applied.stack.calls)
    result = taskgov("apply", "--policy", file_of(applied, tmp_path, guardrails=ASKS_FOR_ALL), "--yes")
    assert (result.exit_code, "taskgov approve plan-" in result.stdout) == (1, True), result.output
    plan = result.stdout.rsplit("taskgov approve ", 1)[1].split(",")[0]
    seen = [str(call.params) for call in applied.stack.calls[calls:] if call.principal.role_arn is None]
    assert not any("APPROVAL#" in each for each in seen)  # where the task token is
    again = data("apply", "--policy", file_of(applied, tmp_path, guardrails=ASKS_FOR_ALL, handEdits="adopt"), "--yes")
    assert again["ended"] == {"outcome": "needs-approval", "planId": plan, "error": None}  # it is asked for once
    be("ben", applied, monkeypatch)
    assert taskgov("approve", plan).exit_code == 0
    applied.stack.run_until_quiet()
    assert counts(applied) == BEFORE


def test_a_document_that_a_guardrail_would_stop_is_not_put_into_force(applied: World, tmp_path: Path) -> None:
    before = stored(applied)
    taskgov("stop", "on")
    shown = taskgov("apply", "--policy", file_of(applied, tmp_path))
    assert (shown.exit_code, "It would be blocked" in shown.stdout) == (1, True)
    result = taskgov("apply", "--policy", file_of(applied, tmp_path), "--yes")
    assert (result.exit_code, "would be blocked" in result.stderr, stored(applied)) == (1, True, before)
    assert "stop-switch" in result.stdout
    for_programs = data("apply", "--policy", file_of(applied, tmp_path), "--yes")
    assert (for_programs["plan"]["outcome"], for_programs["done"], for_programs["ended"]) == ("blocked", False, None)


def test_a_document_that_breaks_rules_is_shown_with_them_and_not_put_into_force(applied: World, tmp_path: Path) -> None:
    before = stored(applied)
    result = taskgov("apply", "--policy", file_of(applied, tmp_path, handEdits="maybe"), "--yes")
    assert (result.exit_code, "handEdits" in result.stderr, stored(applied)) == (1, True, before)


def test_a_document_of_another_cluster_is_refused(applied: World, tmp_path: Path) -> None:
    other = {"name": "ml-cluster", "arn": applied.cluster_arn[:-12] + "zzzzzzzzzzzz"}
    result = taskgov("apply", "--policy", file_of(applied, tmp_path, cluster=other), "--yes")
    assert (result.exit_code, f"new.yaml: cluster.arn is {other['arn']}, but" in result.stderr) == (1, True)


def test_a_document_that_somebody_wrote_meanwhile_is_not_overwritten(
    applied: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "tag_of", lambda *_: '"the-one-that-was-seen"')
    before = stored(applied)
    result = taskgov("apply", "--policy", file_of(applied, tmp_path), "--yes")
    assert (result.exit_code, "somebody wrote" in result.stderr, stored(applied)) == (1, True, before)


def test_without_a_stack_it_says_that_one_is_needed(applied: World, tmp_path: Path) -> None:
    result = taskgov("apply", "--policy", file_of(applied, tmp_path), "--stack", "another", "--yes")
    assert (result.exit_code, "sam deploy" in result.stderr) == (3, True), result.output


def test_a_run_that_does_not_end_in_time_is_said_to_be_under_way(applied: World, tmp_path: Path) -> None:
    result = taskgov("apply", "--policy", file_of(applied, tmp_path), "--yes", "--wait", "1")
    assert (result.exit_code, "is in force" in result.stderr) == (1, True)


def test_a_plan_that_a_run_wrote_is_not_written_again(applied: World) -> None:
    plan = next(run["planId"] for run in data("history", "ml-cluster") if run["outcome"] == "applied")
    result = taskgov("apply", plan, "--yes")
    assert (result.exit_code, "ended `applied`, and only a plan" in result.stderr) == (1, True)


@pytest.mark.parametrize("arguments", [[], ["plan-1", "--policy", __file__]])
def test_it_takes_either_a_plan_or_a_document(arguments: list[str]) -> None:
    assert taskgov("apply", *arguments).exit_code == 2


def reviewed_in(applied: World, file: str) -> str:
    """Return the plan and digest that the comment of `taskgov plan` ends with."""
    comment = taskgov("plan", "--cluster", "ml-cluster", "--policy", file, "--format", "markdown").stdout
    return comment.rsplit("<!-- taskgov reviewed: ", 1)[1].split()[0]


def test_a_document_whose_plan_was_reviewed_is_put_into_force_with_the_claim_of_its_author(
    applied: World, tmp_path: Path
) -> None:
    file = file_of(applied, tmp_path)
    words = ("--reviewed", reviewed_in(applied, file), "--claim", "alice, pull request 12")
    answer = data("apply", "--policy", file, "--yes", *words)
    assert (answer["ended"]["outcome"], counts(applied)) == ("applied", BEFORE)
    head = boto3.client("s3").head_object(Bucket=applied.stack.outputs["BucketName"], Key=KEY)
    assert words[1].endswith(head["Metadata"]["taskgov-reviewed"])
    table = boto3.resource("dynamodb").Table(applied.stack.outputs["TableName"])
    behind = table.get_item(Key={"pk": "DOCUMENT#ml-cluster", "sk": f"VERSION#{head['VersionId']}"})["Item"]
    assert (str(behind["author"]).endswith("user/operator"), behind["claim"]) == (True, "alice, pull request 12")


def test_a_document_whose_plan_moved_since_the_review_is_not_put_into_force(applied: World, tmp_path: Path) -> None:
    before = stored(applied)
    other = reviewed_in(applied, file_of(applied, tmp_path, teams=HALF))
    result = taskgov("apply", "--policy", file_of(applied, tmp_path), "--yes", "--reviewed", other)
    assert (result.exit_code, "was reviewed" in result.stderr, stored(applied)) == (1, True, before), result.output
    assert "Store a new snapshot (taskgov reconcile ml-cluster)" in " ".join(result.stderr.split())


@pytest.mark.parametrize("reviewed", ["plan-1", "plan-0123456789abcdef", "plan-0123456789abcdef:xyz", ""])
def test_a_review_that_names_no_plan_and_digest_is_not_understood(
    applied: World, tmp_path: Path, reviewed: str
) -> None:
    result = taskgov("apply", "--policy", file_of(applied, tmp_path), "--yes", "--reviewed", reviewed)
    assert (result.exit_code, "PLAN_ID:DIGEST" in result.output) == (2, True), result.output
