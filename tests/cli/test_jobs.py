"""`taskgov jobs`: every task, by team and state."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli.main import app
from tests.support.lab import Lab


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    lab = Lab().team("team-a", 2).team("team-b", 4).machines(6)
    lab.submit("team-a", "borrows", pods=4).submit("team-a", "waits", pods=3, ago=30).submit("team-b", "own", ago=20)
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(lab.snapshot()))
    return str(file)


def lines(*arguments: str) -> list[str]:
    result = CliRunner().invoke(app, ["jobs", *arguments])
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.output.splitlines()]


def test_every_task_is_listed_with_its_state_and_what_it_holds_beyond_quota(snapshot: str) -> None:
    head, _, *rows = lines("-s", snapshot)
    assert head == "ml-cluster, 2026-11-20 12:00:00 UTC: 2 running, 1 pending"
    assert rows == [
        "team-b own PyTorchJob training-priority (50) running 20 min ml.g5.8xlarge 1 GPU 20 min",
        "team-a waits PyTorchJob training-priority (50) pending 30 min 3 GPUs 30 min",
        "team-a borrows PyTorchJob training-priority (50) running 1 h ml.g5.8xlarge 4 GPUs 2 GPUs 1 h",
    ]


def test_team_and_state_choose(snapshot: str) -> None:
    assert len(lines("-s", snapshot, "--team", "team-a", "--state", "pending")) == 3
    assert len(lines("-s", snapshot, "--state", "pending", "--state", "running")) == 5
    assert lines("-s", snapshot, "--state", "preempted") == ["ml-cluster, 2026-11-20 12:00:00 UTC: no tasks"]


def test_json_holds_the_same_and_explain_takes_its_names(snapshot: str) -> None:
    data = json.loads(CliRunner().invoke(app, ["jobs", "-s", snapshot, "--json"]).output)
    assert [(each["job"], each["state"], each["beyondQuota"]) for each in data["tasks"]] == [
        ("own", "running", {}),
        ("waits", "pending", {}),
        ("borrows", "running", {"nvidia.com/gpu": 2}),
    ]
    for each in data["tasks"]:
        assert CliRunner().invoke(app, ["explain", f"{each['team']}/{each['job']}", "-s", snapshot]).exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--team", "team-c"], "there is no team named team-c; did you mean team-"),
        (["--state", "lost"], "'lost' is not one of"),
        (["--watch"], "--watch reads a live cluster"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(snapshot: str, options: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["jobs", "-s", snapshot, *options])
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("command", ["jobs", "status", "audit"])
def test_an_object_of_the_file_that_cannot_be_read_is_left_out_and_named(snapshot: str, command: str) -> None:
    data = json.loads(Path(snapshot).read_text())
    del data["kueue"]["workloads"][0]["metadata"]["name"]
    Path(snapshot).write_text(json.dumps(data))
    result = CliRunner().invoke(app, [command, "-s", snapshot])
    assert result.exit_code == 0, result.output
    assert "left out: Workload" in result.stderr


def test_an_owner_that_names_no_kind_is_listed(snapshot: str) -> None:
    data = json.loads(Path(snapshot).read_text())
    del data["kueue"]["workloads"][0]["metadata"]["ownerReferences"][0]["kind"]
    Path(snapshot).write_text(json.dumps(data))
    assert any(" Workload training-priority" in line for line in lines("-s", snapshot))
