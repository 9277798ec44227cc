"""`taskgov review`: one comment that follows the document, and a verdict for the pipeline."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import time_machine
import typer
import yaml
from moto import mock_aws
from typer.testing import CliRunner, Result

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.planner import plan_quotas
from taskgov.errors import InvalidRequestError, UpstreamError
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.codec import snapshot_to_json, snapshot_to_store
from taskgov_cli.applying.document import NO_CHANGES, Review
from taskgov_cli.deployed import RefusedError
from taskgov_cli.main import app
from taskgov_cli.review import comment
from taskgov_cli.review.forge import forge_of
from tests.allocation.world import ARN, G5, NOW, document, fixed, nodes, quota, row, snapshot
from tests.review.fake_forge import OTHERS, FakeForge, served

WORLD = snapshot(None, nodes(4), [quota("team-a", row(G5, Count=2)), quota("team-b", row(G5, Count=2))])
FORGES = ("github", "gitlab")
STACK = """{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"BucketName": {"Value": "governance"}}}"""
LIMITED = {"maxDecreasePercent": 10}


def policy_file(folder: Path, a: int = 1, b: int = 3, **sections: Any) -> Path:
    """Write a document that gives team A `a` and team B `b` nodes."""
    teams = [fixed("team-a", row(G5, Count=a)), fixed("team-b", row(G5, Count=b))]
    text = {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": ARN}, "teams": teams, **sections}
    file = folder / "ml-cluster.yaml"
    file.write_text(yaml.safe_dump(text))
    return file


@pytest.fixture
def snapshot_file(tmp_path: Path) -> str:
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(WORLD))
    return str(file)


@pytest.fixture
def forge() -> Iterator[FakeForge]:
    with served(FakeForge()) as forge:
        yield forge


def environment(forge: FakeForge, kind: str) -> dict[str, str]:
    if kind == "github":
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": forge.url,
            "GITHUB_REPOSITORY": "org/quotas",
            "GITHUB_TOKEN": "token",
            "GITHUB_REF": "refs/heads/main" if forge.is_merged else "refs/pull/12/merge",
            "GITHUB_SHA": "abc123",
        }
    here = {} if forge.is_merged else {"CI_MERGE_REQUEST_IID": "12"}
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": forge.url,
        "CI_PROJECT_ID": "5",
        "CI_PROJECT_PATH": "org/quotas",
        "CI_COMMIT_SHA": "abc123",
        "TASKGOV_GITLAB_TOKEN": "token",
        **here,
    }


def review(forge: FakeForge, kind: str, *arguments: str) -> Result:
    unset = dict.fromkeys(("GITHUB_ACTIONS", "GITLAB_CI", "GITHUB_STEP_SUMMARY"))
    return CliRunner().invoke(app, ["review", *arguments], env=unset | environment(forge, kind))


@pytest.mark.parametrize("kind", FORGES)
def test_one_comment_follows_the_document(forge: FakeForge, kind: str, tmp_path: Path, snapshot_file: str) -> None:
    forge.add("a person says something")
    first = review(forge, kind, str(policy_file(tmp_path)), "--snapshot", snapshot_file)
    assert (first.exit_code, "comment written" in first.stderr) == (0, True), first.output
    again = review(forge, kind, str(policy_file(tmp_path)), "--snapshot", snapshot_file)
    assert "the comment stands" in again.stderr
    other = review(forge, kind, str(policy_file(tmp_path, a=2, b=1)), "--snapshot", snapshot_file)
    assert "comment replaced" in other.stderr
    assert len(forge.comments) == 2
    assert "2 -> 1" in forge.comments[1]["body"].replace("\\", "").replace("&gt;", ">")


@pytest.mark.parametrize("kind", FORGES)
def test_nothing_is_said_where_nothing_changes_and_a_comment_that_stands_is_put_right(
    forge: FakeForge, kind: str, tmp_path: Path, snapshot_file: str
) -> None:
    same = review(forge, kind, str(policy_file(tmp_path, 2, 2)), "--snapshot", snapshot_file, "--fail-on", "changes")
    assert (same.exit_code, forge.comments) == (0, []), same.output
    review(forge, kind, str(policy_file(tmp_path)), "--snapshot", snapshot_file)
    review(forge, kind, str(policy_file(tmp_path, 2, 2)), "--snapshot", snapshot_file)
    assert "nothing to change" in forge.comments[0]["body"]


@pytest.mark.parametrize("kind", FORGES)
def test_a_comment_of_somebody_else_is_neither_read_nor_replaced(
    forge: FakeForge, kind: str, tmp_path: Path, snapshot_file: str
) -> None:
    file = policy_file(tmp_path)
    fake = f"<!-- taskgov plan: {file} -->\n<!-- taskgov reviewed: plan-{'0' * 16}:{'0' * 64} -->"
    forge.add(fake, OTHERS)
    review(forge, kind, str(file), "--snapshot", snapshot_file)
    assert (len(forge.comments), forge.comments[0]["body"]) == (2, fake)
    found = forge_of(environment(forge, kind))
    assert comment.reviewed(found, found.request(), str(file)) != f"plan-{'0' * 16}:{'0' * 64}"


def test_our_comment_is_found_among_hundreds(forge: FakeForge, tmp_path: Path, snapshot_file: str) -> None:
    for number in range(250):
        forge.add(f"comment {number}", OTHERS)
    review(forge, "github", str(policy_file(tmp_path)), "--snapshot", snapshot_file)
    review(forge, "github", str(policy_file(tmp_path, 2, 1)), "--snapshot", snapshot_file)
    assert len(forge.comments) == 251


THRESHOLDS = {
    "blocked": ({"guardrails": LIMITED}, {"never": 0, "blocked": 1, "approval": 1, "preemption": 1, "changes": 1}),
    "needs approval": (
        {"guardrails": {"approveAbove": {"changedGpus": 0}}},
        {"never": 0, "blocked": 0, "approval": 1, "preemption": 0, "changes": 1},
    ),
    "changes": ({}, {"never": 0, "blocked": 0, "approval": 0, "preemption": 0, "changes": 1}),
}


@pytest.mark.parametrize(("sections", "codes"), THRESHOLDS.values(), ids=THRESHOLDS)
def test_the_verdict_depends_on_the_threshold(
    tmp_path: Path, snapshot_file: str, sections: dict[str, Any], codes: dict[str, int]
) -> None:
    file = str(policy_file(tmp_path, **sections))
    words = ("review", file, "--no-comment", "--snapshot", snapshot_file, "--fail-on")
    assert {threshold: CliRunner().invoke(app, [*words, threshold]).exit_code for threshold in codes} == codes


def test_a_document_that_breaks_rules_is_said_so_in_the_comment(
    forge: FakeForge, tmp_path: Path, snapshot_file: str
) -> None:
    file = policy_file(tmp_path, handEdits="maybe")
    result = review(forge, "github", str(file), "--snapshot", snapshot_file, "--fail-on", "never")
    assert (result.exit_code, "handEdits" in forge.comments[0]["body"]) == (1, True)
    review(forge, "github", str(policy_file(tmp_path)), "--snapshot", snapshot_file)
    assert ("team" in forge.comments[0]["body"], len(forge.comments)) == (True, 1)


def test_a_thousand_broken_rules_fit_into_a_comment(forge: FakeForge, tmp_path: Path, snapshot_file: str) -> None:
    file = tmp_path / "ml-cluster.yaml"
    file.write_text(yaml.safe_dump({f"unknown-{number}-{'x' * 60}": number for number in range(1500)}))
    result = review(forge, "github", str(file), "--snapshot", snapshot_file)
    assert (result.exit_code, len(forge.comments)) == (1, 1), result.output
    assert len(forge.comments[0]["body"]) <= 65_536


def test_a_forge_that_does_not_say_who_we_are_is_not_taken_for_a_pipeline(
    forge: FakeForge, tmp_path: Path, snapshot_file: str
) -> None:
    forge.failing = {"GET": [404]}  # of the request itself
    assert review(forge, "github", str(policy_file(tmp_path)), "--snapshot", snapshot_file).exit_code == 3
    found = forge_of(environment(forge, "github"))
    request = found.request()
    forge.failing = {"GET": [500]}
    with pytest.raises(UpstreamError, match="500"):
        list(found.comments(request))


@pytest.mark.parametrize("kind", FORGES)
def test_what_is_merged_is_held_to_the_plan_of_its_comment(
    forge: FakeForge, kind: str, tmp_path: Path, snapshot_file: str
) -> None:
    file = policy_file(tmp_path)
    review(forge, kind, str(file), "--snapshot", snapshot_file)
    forge.is_merged = True
    read = Review.on(forge_of(environment(forge, kind)), str(file), "")
    plan = plan_quotas(_with(_document()), mode="apply")
    assert (read.changes, read.plan_id) == (changes_sha256(plan), plan.plan_id)
    assert read.claim.startswith("alice, org/quotas")
    read.require(plan)
    with pytest.raises(RefusedError, match="was reviewed"):
        read.require(plan_quotas(_with(document(fixed("team-a", row(G5, Count=1)), pool=False)), mode="apply"))


@pytest.mark.parametrize("kind", FORGES)
def test_without_a_comment_only_a_plan_without_changes_goes_through(forge: FakeForge, kind: str) -> None:
    forge.is_merged = True
    read = Review.on(forge_of(environment(forge, kind)), "ml-cluster.yaml", "")
    assert read.changes == NO_CHANGES
    read.require(plan_quotas(_with(None), mode="apply"))
    with pytest.raises(RefusedError, match="a plan without changes was reviewed"):
        read.require(plan_quotas(_with(_document()), mode="apply"))


@pytest.mark.parametrize("kind", FORGES)
def test_a_commit_that_no_request_brought_is_refused(forge: FakeForge, kind: str) -> None:
    forge.is_merged = True
    environ = environment(forge, kind)
    forge.is_merged = False
    with pytest.raises(InvalidRequestError, match="merged with 0 requests"):
        forge_of(environ).request()


def _document() -> PolicyDocument:
    return document(fixed("team-a", row(G5, Count=1)), fixed("team-b", row(G5, Count=3)), pool=False)


def _with(policy: PolicyDocument | None) -> Any:
    return snapshot(policy, WORLD.nodes, WORLD.quotas)


def test_variables_that_are_missing_are_named_all_at_once() -> None:
    with pytest.raises(typer.BadParameter, match="GITHUB_API_URL and GITHUB_REPOSITORY and GITHUB_TOKEN"):
        forge_of({"GITHUB_ACTIONS": "true"})
    with pytest.raises(typer.BadParameter, match="CI_API_V4_URL and CI_PROJECT_ID and TASKGOV_GITLAB_TOKEN"):
        forge_of({"GITLAB_CI": "true"})
    with pytest.raises(typer.BadParameter, match="not a pipeline"):
        forge_of({})


def test_outside_a_pipeline_a_review_is_not_understood(tmp_path: Path, snapshot_file: str) -> None:
    unset = dict.fromkeys(("GITHUB_ACTIONS", "GITLAB_CI"))
    words = ["review", str(policy_file(tmp_path)), "--snapshot", snapshot_file]
    result = CliRunner().invoke(app, words, env=unset)
    assert (result.exit_code, "this is not a pipeline" in result.output) == (2, True), result.output


def test_an_answer_of_another_form_is_a_sentence(forge: FakeForge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeForge, "_pull", lambda _: {"number": "no number"})
    with pytest.raises(UpstreamError, match="does not have the documented form"):
        forge_of(environment(forge, "github")).request()


def test_a_forge_that_refuses_is_a_sentence_and_reads_are_tried_again(
    forge: FakeForge, tmp_path: Path, snapshot_file: str
) -> None:
    forge.failing = {"GET": [503], "POST": [403]}
    result = review(forge, "github", str(policy_file(tmp_path)), "--snapshot", snapshot_file)
    assert (result.exit_code, "403" in result.stderr, forge.comments) == (3, True, []), result.output


def test_without_a_snapshot_the_newest_of_the_stack_is_planned_on(tmp_path: Path) -> None:
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="governance")
        boto3.client("cloudformation").create_stack(StackName="taskgov", TemplateBody=STACK)
        file = str(policy_file(tmp_path))
        none = CliRunner().invoke(app, ["review", file, "--no-comment"])
        assert (none.exit_code, "taskgov reconcile ml-cluster" in none.output) == (3, True), none.output
        for number, known in enumerate((snapshot(None, nodes(1)), WORLD)):
            with time_machine.travel(NOW + timedelta(minutes=number), tick=False):
                key = f"snapshots/ml-cluster/{9 - number}-1.json"
                boto3.client("s3").put_object(Bucket="governance", Key=key, Body=snapshot_to_store(known))
        boto3.client("s3").put_object(Bucket="governance", Key="snapshots/ml-cluster-2/1.json", Body=b"{}")
        result = CliRunner().invoke(app, ["review", file, "--no-comment"])
    assert (result.exit_code, "2 quotas change" in result.stdout) == (0, True), result.output


# The published files


def steps_of(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(Path(path).read_text())["runs"]["steps"]
    return found


def test_the_steps_of_the_action_comment_in_a_shell(forge: FakeForge, tmp_path: Path, snapshot_file: str) -> None:
    """The installation is left out: `taskgov` here is the one under test."""
    place = tmp_path / "taskgov" / "bin"
    place.mkdir(parents=True)
    program = place / "taskgov"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m taskgov_cli.main "$@"\n')
    program.chmod(0o755)
    policy_file(tmp_path)
    summary = tmp_path / "summary.md"
    inputs = {
        "inputs.policy": "ml-cluster.yaml",
        "inputs.stack": "taskgov",
        "inputs.snapshot": snapshot_file,
        "inputs.fail-on": "changes",
        "inputs.token": "token",
    }
    (step,) = [step for step in steps_of("action.yml") if step.get("name") == "Plan and comment"]
    given = {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: inputs[found[1]], text) for name, text in step["env"].items()
    }
    path = os.pathsep.join(str(Path(place).resolve()) for place in sys.path if place)
    ran = subprocess.run(  # noqa: S603 - the step of our own action
        [shutil.which("bash") or "bash", "-euo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": path,
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(summary),
            **environment(forge, "github"),
            **given,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, len(forge.comments)) == (1, 1), ran.stderr
    assert forge.comments[0]["body"].startswith("<!-- taskgov plan: ml-cluster.yaml -->")
    assert forge.comments[0]["body"].strip() in summary.read_text()


def test_no_input_of_the_action_reaches_a_shell_but_by_the_environment() -> None:
    assert [step["run"] for step in steps_of("action.yml") if "${{" in step.get("run", "")] == []


PIPELINES = sorted(Path("examples/pipelines").glob("*.yml"))


@pytest.mark.parametrize("file", PIPELINES, ids=[file.name for file in PIPELINES])
def test_every_command_of_the_pipelines_is_understood(file: Path) -> None:
    """Each is parsed with the program's own options; `--help` after it keeps it from doing anything."""
    commands = re.findall(r"(?:run: |- )(taskgov .*)", file.read_text())
    for command in commands:
        words = command.replace('"$POLICY"', "policies/ml-cluster.yaml").split()[1:]
        result = CliRunner().invoke(app, [*words, "--help"])
        assert (result.exit_code, "No such" in result.output) == (0, False), command
        names = set(re.findall(r"--[a-z-]+", command))
        assert names <= set(re.findall(r"--[a-z-]+", result.output)), command
    uses = re.findall(r"uses: your-organization/taskgov@", file.read_text())
    assert commands or uses


def test_the_inputs_that_the_example_gives_are_those_of_the_action() -> None:
    inputs = yaml.safe_load(Path("action.yml").read_text())["inputs"]
    jobs = yaml.safe_load(Path("examples/pipelines/github-review.yml").read_text())["jobs"]
    (given,) = [step["with"] for step in jobs["review"]["steps"] if "taskgov@" in step.get("uses", "")]
    assert set(given) <= set(inputs)
    assert {name for name, about in inputs.items() if about.get("required")} <= set(given)


def test_the_hook_of_pre_commit_validates_each_file(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load(Path(".pre-commit-hooks.yaml").read_text())
    good = policy_file(tmp_path)
    bad = tmp_path / "bad.yaml"
    bad.write_text("teams: 3\n")
    words = hook["entry"].split()[1:]
    assert CliRunner().invoke(app, [*words, str(good)]).exit_code == 0
    result = CliRunner().invoke(app, [*words, str(good), str(bad)])
    assert (result.exit_code, "breaks" in result.output) == (1, True)
