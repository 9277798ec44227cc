"""`taskgov snapshot`: read a live cluster (the embedded one), then ask offline."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov_cli.main import app
from taskgov_cli.output import UNREACHABLE
from taskgov_embedded.walkthrough.model import HERE, load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World

STACK = "taskgov"


@pytest.fixture(scope="module")
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture(scope="module")
def live() -> Iterator[World]:
    """The cluster of a walkthrough in which a task of four waits because of its team's borrow limit."""
    walkthrough = load(HERE / "08-lend-and-borrow.yaml")
    with World(walkthrough) as world:
        steps = Runner(walkthrough, world).run()
        for _ in range(3):
            next(steps)
        yield world


def test_a_live_cluster_becomes_a_file_that_answers_offline(runner: CliRunner, live: World, tmp_path: Path) -> None:
    file = tmp_path / "ml-cluster.json"
    result = runner.invoke(app, ["snapshot", "ml-cluster", "-o", str(file)])
    assert result.exit_code == 0, result.output
    answer = json.loads(runner.invoke(app, ["explain", "b-more", "-s", str(file), "--json"]).output)
    assert (answer["workload"], answer["reason"]) == ("team-b/b-more", "WaitingForQuota")
    limits = {each["because"] for each in answer["remedies"] if each["kind"] == "borrow-limit"}
    assert limits == {"the borrow limit of team-b is 3 GPUs of ml.g5.8xlarge (BorrowLimit 60)"}  # as documented


def test_questions_may_be_put_to_the_live_cluster_itself(runner: CliRunner, live: World) -> None:
    data = json.loads(runner.invoke(app, ["status", "--cluster", "ml-cluster", "--json"]).output)
    used = {each["usage"]["team"]: each["usage"]["used"] for each in data["teams"] if each["leading"]}
    assert used == {"team-a": 2, "team-b": 4}


def test_a_live_cluster_is_audited_with_the_stack_s_document(runner: CliRunner, live: World, tmp_path: Path) -> None:
    result = runner.invoke(app, ["audit", "--cluster", "ml-cluster", "--stack", STACK, "-o", str(tmp_path), "--json"])
    data = json.loads(result.output)
    assert (data["header"]["clusterName"], data["totals"]["used"]) == ("ml-cluster", 6.0)
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".html", ".json"]


def test_the_deployed_stack_adds_its_document_and_its_memory(runner: CliRunner, live: World) -> None:
    body = json.dumps({"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": live.cluster_arn}})
    bucket = live.stack.physical("GovernanceBucket")
    live.stack.client("s3").put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=body.encode())
    with_stack = json.loads(runner.invoke(app, ["snapshot", "ml-cluster", "--stack", STACK]).output)
    by_default = json.loads(runner.invoke(app, ["snapshot", "ml-cluster"]).output)
    without = json.loads(runner.invoke(app, ["snapshot", "ml-cluster", "--stack", ""]).output)
    assert (with_stack["policy"]["apiVersion"], without.get("policy")) == ("taskgov/v1", None)
    assert by_default["policy"] == with_stack["policy"]


def test_a_live_plan_says_that_no_document_was_read_where_none_is_named(
    runner: CliRunner, live: World, tmp_path: Path
) -> None:
    document = tmp_path / "policy.yaml"
    document.write_text(f"apiVersion: taskgov/v1\ncluster: {{name: ml-cluster, arn: {live.cluster_arn!r}}}\n")
    asked = ["plan", "--cluster", "ml-cluster"]
    assert runner.invoke(app, [*asked, "--stack", ""]).stderr.startswith("No policy document was read: no stack")
    for named in ([], ["--stack", STACK], ["--policy", str(document)]):
        assert runner.invoke(app, [*asked, *named]).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["snapshot", "gpu"], "not found; there is ml-cluster"),
        (["status", "--cluster", "ml-clutser"], "not found; did you mean ml-cluster?"),
        (["history", "ml-clutser", "--stack", STACK], "not found; did you mean ml-cluster?"),
        (["snapshot", "ml-cluster", "--stack", "no-such-stack"], "no-such-stack"),
        (["snapshot", "ml-cluster", "--context", "no-such-context"], "kubectl config get-contexts"),
    ],
)
def test_what_cannot_be_read_ends_with_a_sentence_and_its_own_exit_code(
    runner: CliRunner, live: World, arguments: list[str], said: str
) -> None:
    result = runner.invoke(app, arguments)
    assert (result.exit_code, said in result.output) == (UNREACHABLE, True), result.output


def test_the_live_cluster_was_only_looked_at(runner: CliRunner, live: World) -> None:
    before = len(live.stack.calls)
    runner.invoke(app, ["snapshot", "ml-cluster", "--stack", STACK])
    runner.invoke(app, ["audit", "--cluster", "ml-cluster", "--stack", STACK])
    actions = {call.action for call in live.stack.calls[before:]}
    assert all(action.split(":")[1].startswith(("Describe", "List", "Get", "Query")) for action in actions), actions


def test_what_is_wrong_with_a_file_is_named_member_by_member(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"cluster": 3, "takenAt": "x", "nodes": [{"name": 1}] * 9}))
    result = CliRunner().invoke(app, ["status", "--snapshot", str(file)], env={"COLUMNS": "400"})
    assert result.exit_code == 2
    for words in (
        "cluster: 3 must be an object",
        'takenAt: "x" must be a time such',
        "nodes[0].name: 1 must be",
        "more);",
    ):
        assert words in result.output


def test_an_object_with_a_version_of_an_api_is_not_a_snapshot(tmp_path: Path) -> None:
    sample = json.loads((Path(__file__).parents[2] / "examples/snapshot.json").read_text())
    file = tmp_path / "other.json"
    file.write_text(json.dumps({"apiVersion": "taskgov/v9", **sample}))
    result = CliRunner().invoke(app, ["status", "--snapshot", str(file)], env={"COLUMNS": "400"})
    assert (result.exit_code, 'apiVersion is "taskgov/v9": a snapshot has none' in result.output) == (2, True)


@pytest.mark.parametrize("command", [["status"], ["plan"], ["jobs"], ["audit"], ["explain", "--team", "team-a"]])
def test_a_time_without_a_zone_is_refused_with_its_place(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "zoneless.json"
    cluster = {"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}
    file.write_text(json.dumps({"cluster": cluster, "takenAt": "2026-11-20T09:00:00"}))
    result = CliRunner().invoke(app, [*command, "--snapshot", str(file)], env={"COLUMNS": "400"})
    assert result.exit_code == 2
    assert 'takenAt: "2026-11-20T09:00:00" must say its time zone' in result.output


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ('"takenAt": "2026\\u002d11\\u002d20T09:00:00"', "takenAt"),
        ('"takenAt": "2026-11-20 09:00"', "takenAt"),
        (
            (
                '"takenAt": "2026-11-20T09:00Z", '
                '"nodes": [{"name": "n", "instanceType": "t", "joinedAt": "2026-11-20t09:00"}]'
            ),
            "nodes[0].joinedAt",
        ),
        (
            (
                '"takenAt": "2026-11-20T09:00Z", "applied": [{"computeQuotaId": "q", "version": 1, "config": {}, '
                '"target": {"TeamName": "team-a"}, "planId": "plan-1", "at": "2026-11-20T09:00Z", '
                '"acceptedLosses": {"ml.g5.8xlarge": "2026-11-21T09:00"}}]'
            ),
            'applied[0].acceptedLosses["ml.g5.8xlarge"]',
        ),
    ],
    ids=["in escapes", "with a space", "in a list", "in a mapping"],
)
def test_no_form_of_a_time_passes_without_a_zone(members: str, place: str, tmp_path: Path) -> None:
    cluster = '{"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}'
    file = tmp_path / "zoneless.json"
    file.write_text(f'{{"cluster": {cluster}, {members}}}')
    result = CliRunner().invoke(app, ["plan", "--snapshot", str(file)], env={"COLUMNS": "400"})
    assert result.exit_code == 2, result.output
    assert f"{place}: " in result.output
    assert "must say its time zone" in result.output


def test_a_file_that_cannot_be_written_is_named_as_it_was_typed(
    runner: CliRunner, live: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["snapshot", "ml-cluster", "--output", "nope/s.json"])
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "FileNotFoundError: nope/s.json: No such file or directory",
    )


def test_what_a_snapshot_lacks_and_what_is_passed_over_is_said(tmp_path: Path) -> None:
    file = tmp_path / "poor.json"
    cluster = {"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}
    file.write_text(json.dumps({"cluster": cluster, "takenAt": "2026-11-20T09:00:00Z", "release": "v9"}))
    result = CliRunner().invoke(app, ["status", "--snapshot", str(file), "--json"])
    assert (result.exit_code, json.loads(result.stdout)["teams"]) == (0, [])
    said = [line.removeprefix(f"{file}: ") for line in result.stderr.splitlines()]
    assert [line.split(",")[0] for line in said] == ["ignored", "it has no nodes", "it has no Kueue objects"]
    assert said[0].endswith(": release")
