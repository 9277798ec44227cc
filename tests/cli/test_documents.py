"""`taskgov validate` and `taskgov plan`: offline answers for people and for programs."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import ClusterFacts, Node, Snapshot
from taskgov_cli.main import app
from tests.support.lab import Lab
from tests.support.memory import CLUSTER_ARN, NOON

GOOD = f"""
apiVersion: taskgov/v1
cluster: {{name: ml-cluster, arn: "{CLUSTER_ARN}"}}
teams:
  - name: team-a
    share: [{{instanceType: ml.g5.8xlarge, percent: 50}}]
sharedPool: {{team: shared-pool, takes: remainder}}
capacity: {{growAfterMinutes: 0}}
"""


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    nodes = tuple(
        Node(f"hyperpod-i-{number}", "ml.g5.8xlarge", healthy_since=NOON - timedelta(days=1)) for number in range(4)
    )
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON, nodes)))
    return file


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    return file


def test_a_good_document_is_valid(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(app, ["validate", str(written(tmp_path, GOOD))])
    assert (result.exit_code, "valid policy document" in result.output) == (0, True)


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (GOOD.replace("50", "500"), 1)])
def test_a_document_may_come_from_standard_input(runner: CliRunner, text: str, code: int) -> None:
    result = runner.invoke(app, ["validate", "-"], input=text)
    assert result.exit_code == code, result.output
    assert result.output.startswith("standard input ")


def test_standard_input_is_read_once_and_a_file_that_is_missing_is_named(runner: CliRunner, tmp_path: Path) -> None:
    for words, rule in ((["-", "-"], "standard input can be read once"), (["no.yaml"], "'no.yaml' does not exist")):
        result = runner.invoke(app, ["validate", *words], input=GOOD, env={"COLUMNS": "200"})
        assert (result.exit_code, rule in result.output) == (2, True)


def test_a_bad_document_gets_every_violation_at_once(runner: CliRunner, tmp_path: Path) -> None:
    bad = GOOD.replace("taskgov/v1", "taskgov/v2").replace("percent: 50", "percent: 500").replace("team-a", "Team A")
    result = runner.invoke(app, ["validate", str(written(tmp_path, bad)), "--json"])
    assert result.exit_code == 1
    data = json.loads(result.output)
    assert not data["valid"]
    assert {each["path"] for each in data["violations"]} >= {
        "apiVersion",
        "teams[0].name",
        "teams[0].share[0].percent",
    }
    assert all(each["value"] and each["rule"] for each in data["violations"])


def test_a_snapshot_is_planned_as_if_the_document_were_in_force(
    runner: CliRunner, tmp_path: Path, snapshot: Path
) -> None:
    policy = written(tmp_path, GOOD)
    result = runner.invoke(app, ["plan", "--snapshot", str(snapshot), "--policy", str(policy), "--json"])
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert plan["outcome"] == "planned"
    after = {each["team"]: each["after"] for each in plan["allocations"]}
    assert after == {"team-a": 2, "shared-pool": 2}


def test_a_document_under_another_name_than_its_cluster_has_is_refused(
    runner: CliRunner, tmp_path: Path, snapshot: Path
) -> None:
    policy = written(tmp_path, GOOD.replace("name: ml-cluster", "name: dev-cluster"))
    result = runner.invoke(app, ["plan", "-s", str(snapshot), "-p", str(policy)], env={"COLUMNS": "400"})
    assert result.exit_code == 2
    assert "cluster.name is dev-cluster, but arn:" in result.output


def test_a_plan_is_shown_as_tables_with_reasons(runner: CliRunner, tmp_path: Path, snapshot: Path) -> None:
    policy = written(tmp_path, GOOD)
    result = runner.invoke(app, ["plan", "-s", str(snapshot), "-p", str(policy)])
    assert result.exit_code == 0
    for text in ("Capacity", "Changes, in this order", "team-a", "because"):
        assert text in result.output


def test_a_plan_with_a_document_that_breaks_rules_is_a_no_and_says_so_of_each_quota(
    runner: CliRunner, tmp_path: Path
) -> None:
    snapshot = tmp_path / "governed.json"
    snapshot.write_bytes(snapshot_to_json(Lab().team("team-a", 2).machines(4).snapshot()))
    policy = written(tmp_path, GOOD.replace("percent: 50", "percent: 500"))
    result = runner.invoke(app, ["plan", "-s", str(snapshot), "-p", str(policy)], env={"COLUMNS": "400"})
    assert result.exit_code == 1
    assert ": the policy document breaks rules" in result.output
    assert "there is no policy document" not in result.output


def test_a_document_of_another_cluster_is_refused(runner: CliRunner, tmp_path: Path, snapshot: Path) -> None:
    policy = written(tmp_path, GOOD.replace("abcdefghijkl", "zyxwvutsrqpo"))
    for command in ("plan", "audit", "what-if"):
        result = runner.invoke(app, [command, "-s", str(snapshot), "-p", str(policy)], env={"COLUMNS": "400"})
        assert result.exit_code == 2
        assert "cluster/zyxwvutsrqpo, but the cluster is" in result.output
