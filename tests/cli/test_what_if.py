"""`taskgov what-if`: both sides in one table, the same as JSON, and options that say their form."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.allocation import planner
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import Snapshot
from taskgov_cli.main import app
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_explain import sides
from tests.allocation.test_loops import weight_zero
from tests.support.lab import Lab
from tests.support.memory import CLUSTER_ARN

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: urgent}
spec: {parallelism: 4, template: {spec: {containers: [{name: main, resources: {requests: {nvidia.com/gpu: 1}}}]}}}
"""
POLICY = f"""
apiVersion: taskgov/v1
cluster: {{name: ml-cluster, arn: "{CLUSTER_ARN}"}}
teams:
  - {{name: team-a, share: [{{instanceType: ml.g5.8xlarge, percent: 75}}]}}
  - {{name: team-b, share: [{{instanceType: ml.g5.8xlarge, percent: 25}}]}}
"""


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    lab = Lab().team("team-a", 4).team("team-b", 4).machines(8)
    lab.submit("team-a", "borrows", pods=6).submit("team-a", "waits", pods=2)
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(lab.snapshot()))
    return str(file)


def test_teams_are_shown_side_by_side(runner: CliRunner, snapshot: str) -> None:
    result = runner.invoke(app, ["what-if", "-s", snapshot, "--set", "team-b.ml.g5.8xlarge=6"])
    assert result.exit_code == 0, result.output
    for text in ("Teams, before -> after", "4 -> 6", "At risk"):
        assert text in result.output


def test_only_programs_get_a_digest_of_the_supposed_snapshot(
    runner: CliRunner, snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Snapshot]()

    def digest(of: Snapshot) -> str:
        asked.append(of)
        return "digest"

    monkeypatch.setattr(planner, "snapshot_sha256", digest)
    arguments = ["what-if", "-s", snapshot, "--set", "team-b.ml.g5.8xlarge=6"]
    assert runner.invoke(app, arguments).exit_code == 0
    assert asked == []
    data = json.loads(runner.invoke(app, [*arguments, "--json"]).output)
    assert (data["plan"]["snapshotSha256"], len(asked)) == ("digest", 1)


def test_a_submitted_job_says_whom_it_would_preempt(runner: CliRunner, snapshot: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    arguments = ["what-if", "-s", snapshot, "--submit", str(tmp_path / "job.yaml"), "--as", "team-b"]
    result = runner.invoke(app, arguments)
    assert "preempted by team-b/urgent (InCohortReclamation)" in result.output
    data = json.loads(runner.invoke(app, [*arguments, "--json"]).output)
    assert {each["workload"]: each["after"] for each in data["workloads"]}["team-b/urgent"] == "runs"


def test_run_times_may_be_of_submitted_work(runner: CliRunner, snapshot: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    arguments = ["what-if", "-s", snapshot, "--submit", str(tmp_path / "job.yaml"), "--as", "team-b"]
    data = json.loads(runner.invoke(app, [*arguments, "--runs", "urgent=1h", "--json"]).output)
    [course] = [each for each in data["courses"] if each["workload"] == "team-b/urgent"]
    assert (course["startsBefore"], course["endsAfter"]) == (None, "2026-11-20T13:00:00Z")


def test_another_document_is_planned_as_if_it_were_in_force(runner: CliRunner, snapshot: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    result = runner.invoke(app, ["what-if", "-s", snapshot, "-p", str(tmp_path / "policy.yaml"), "--json"])
    data = json.loads(result.output)
    assert {each["team"]: each["gpusAfter"] for each in data["plan"]["changes"]} == {"team-a": 6, "team-b": 2}
    assert {each["team"]: each["after"]["quota"] for each in data["teams"]} == {"team-a": 6, "team-b": 2}


def test_a_loop_is_reported_with_what_ends_it(runner: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(weight_zero(weight=10)))
    arguments = ["what-if", "-s", str(file), "--weight", "team-a=0"]
    shown = " ".join(runner.invoke(app, arguments).output.split())
    assert "These workloads would preempt each other forever: team-a/home" in shown
    assert "It ends in the model with FairShareWeight of team-a: 10 (then waits: team-b/big, team-b/huge)" in shown
    loop = json.loads(runner.invoke(app, [*arguments, "--json"]).output)["loop"]
    assert (loop["workloads"], loop["searched"]) == (["team-a/home", "team-a/late"], True)
    assert loop["remedies"][0]["settings"][0]["value"] == "10"


def test_nodes_lost_and_added_are_counted(runner: CliRunner, snapshot: str) -> None:
    arguments = ["--lose-nodes", "4xml.g5.8xlarge", "--add-nodes", "1xml.g5.8xlarge"]
    data = json.loads(runner.invoke(app, ["what-if", "-s", snapshot, *arguments, "--json"]).output)
    assert (data["plan"]["capacity"][0]["usable"], data["shortfalls"][0]["offered"]) == (5, 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lose-nodes", "four"], "'four' is not of the form 4xml.p5.48xlarge"),
        (["--set", "team-a=4"], "not of the form team-a.ml.p5.48xlarge=6"),
        (
            ["--set", "team-a.ml.g5.8xlarge:gpus=4"],
            "'team-a.ml.g5.8xlarge:gpus=4': 'gpus' is none of accelerators, vcpu",
        ),
        (["--set", "team-a.ml.g5.8xlarge=four"], "'four' is not a number such as 6"),
        (["--set", "team-a.ml.g5.8xlarge=-1"], "--set 'team-a.ml.g5.8xlarge=-1': must be from 0 to 10,000,000"),
        (["--set", "team-a.ml.g5.8xlarge:accelerators=0.5"], "must be a whole number"),
        (["--set", "team-a.ml.g5.9xlarge=1"], "there is no instance type named ml.g5.9xlarge; did you mean ml.g5"),
        (["--weight", "team-a=101"], "--weight 'team-a=101': must be from 0 to 100"),
        (["--weight", "team-a"], "not of the form team-b=50"),
        (["--weight", "team-c=4"], "there is no team named team-c"),
        (["--as", "team-c"], "--as 'team-c': there is no team named team-c"),
        (["--as", "team-b"], "--as team-b: nothing is submitted; --submit FILE names the job"),
        (["--lose-nodes", "9xml.g5.8xlarge"], "8 are healthy"),
    ],
)
def test_what_is_not_understood_says_the_form(
    runner: CliRunner, snapshot: str, arguments: list[str], said: str
) -> None:
    result = runner.invoke(app, ["what-if", "-s", snapshot, *arguments])
    assert (result.exit_code, said in " ".join(result.output.replace("│", " ").split())) == (2, True), result.output


def test_all_that_is_wrong_is_said_at_once(runner: CliRunner, snapshot: str) -> None:
    wrong = ["--set", "team-x.ml.g5.8xlarge=1", "--set", "team-a=2", "--weight", "team-y=5", "--lose-nodes", "2"]
    wrong += ["--lose-nodes", "99xml.g5.8xlarge"]
    result = runner.invoke(app, ["what-if", "-s", snapshot, *wrong])
    words = " ".join(result.output.replace("│", " ").split())
    assert result.exit_code == 2
    for said in (
        "there is no team named team-x",
        "'team-a=2' is not of the form",
        "team-y",
        "'2' is not of the form",
        "8 are healthy",
    ):
        assert said in words


def test_a_quota_is_supposed_in_parts(runner: CliRunner, snapshot: str) -> None:
    arguments = ["--set", "team-b.ml.g5.8xlarge:accelerators=6", "--set", "team-b.ml.g5.8xlarge:vcpu=64", "--json"]
    data = json.loads(runner.invoke(app, ["what-if", "-s", snapshot, *arguments]).output)
    assert {each["team"]: each["after"]["quota"] for each in data["teams"]} == {"team-a": 4, "team-b": 6}


def test_a_manifest_that_cannot_be_used_is_named(runner: CliRunner, snapshot: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    for text, said in ((JOB, "has no namespace"), ("- a list", "has no manifest"), ("{", "is not YAML")):
        file.write_text(text)
        result = runner.invoke(app, ["what-if", "-s", snapshot, "--submit", str(file)])
        assert (result.exit_code, said in " ".join(result.output.replace("│", " ").split())) == (2, True)


def test_a_manifest_of_a_namespace_without_a_queue_is_refused_with_the_nearest_team(
    runner: CliRunner, snapshot: str, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(job_manifest("team-aa", "new", {"nvidia.com/gpu": "1"})))
    for command in ("what-if", "when"):
        result = runner.invoke(app, [command, "-s", snapshot, "--submit", str(file)])
        words = " ".join(result.output.replace("│", " ").split())
        assert (result.exit_code, "namespace hyperpod-ns-team-aa has no LocalQueue: did you mean team-" in words) == (
            2,
            True,
        ), words
        assert runner.invoke(app, [command, "-s", snapshot, "--submit", str(file), "--as", "team-b"]).exit_code == 0


def test_a_manifest_that_is_not_utf_8_is_named(runner: CliRunner, snapshot: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(b"kind: Job  # f\xfcr team-a\n")
    result = runner.invoke(app, ["what-if", "-s", snapshot, "--submit", str(file)], env={"COLUMNS": "400"})
    words = " ".join(result.output.replace("│", " ").split())
    said = "job.yaml: a manifest must be UTF-8 text, and byte 14 is not"
    assert (result.exit_code, said in words) == (2, True), words


def test_a_prediction_that_ends_early_says_so(
    runner: CliRunner, snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "steps_for", lambda _model: 1)
    (tmp_path / "job.yaml").write_text(JOB)
    arguments = ["what-if", "-s", snapshot, "--submit", str(tmp_path / "job.yaml"), "--as", "team-b"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "At least this: the supposed cluster: not settled within 1 model steps" in " ".join(result.output.split())
    assert json.loads(runner.invoke(app, [*arguments, "--json"]).output)["notSettled"]


def test_each_quota_is_one_row_from_its_first_write_to_its_last(
    runner: CliRunner, snapshot: str, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    result = runner.invoke(app, ["what-if", "-s", snapshot, "--policy", str(tmp_path / "policy.yaml"), "--json"])
    rows = json.loads(result.output)["quotas"]
    assert {each["team"]: (each["gpusBefore"], each["gpusAfter"]) for each in rows} == {
        "team-a": (4, 6),
        "team-b": (4, 2),
    }
    assert all(each["waves"] and each["because"] for each in rows)


@pytest.mark.parametrize("command", [["what-if"], ["explain", "--team", "team-a"]])
@pytest.mark.parametrize(
    ("body", "said"), [(b"apiVersion: taskgov/v1\nteams: 3\n", "teams"), (b"\xff\xfe\x00", "UTF-8")]
)
def test_a_document_that_breaks_rules_is_refused_with_them(
    runner: CliRunner, snapshot: str, tmp_path: Path, command: list[str], body: bytes, said: str
) -> None:
    document = tmp_path / "broken.yaml"
    document.write_bytes(body)
    result = runner.invoke(app, [*command, "-s", snapshot, "-p", str(document)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "breaks" in result.stderr
    assert said in result.stderr
