"""`taskgov explain`: what people and programs are shown, and what is said of a name that nobody has."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli.main import app
from tests.support.lab import Lab


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    lab = Lab().team("team-a", 2, borrow=200).team("team-b", 4).machines(6)
    lab.submit("team-b", "b-own", pods=2).submit("team-a", "a-own", pods=4).submit("team-a", "waits", pods=2)
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(lab.snapshot()))
    return str(file)


def test_the_reason_comes_first_and_what_would_help_after_it(runner: CliRunner, snapshot: str) -> None:
    result = runner.invoke(app, ["explain", "waits", "-s", snapshot])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == "team-a/waits: WaitingForQuota"
    for text in ("Ways to start it", "team-b/b-own finishes", "Who holds what", "Kueue's message"):
        assert text in result.output


@pytest.mark.parametrize("command", [["explain", "waits"], ["what-if", "--lose-nodes", "1xml.g5.8xlarge"], ["status"]])
def test_over_quota_has_a_column_of_its_own_beside_borrowed(
    tmp_path: Path, runner: CliRunner, command: list[str]
) -> None:
    lab = Lab().team("team-a", 2, borrow=0).team("team-b", 4).machines(6).submit("team-a", "a-own", pods=2)
    snapshot = lab.submit("team-a", "waits", pods=2).snapshot()
    [queue] = [queue for queue in snapshot.kueue.cluster_queues if "team-a" in queue["metadata"]["name"]]
    for group in queue["spec"]["resourceGroups"]:
        for resource in group["flavors"][0]["resources"]:
            resource["nominalQuota"] = "1"  # lowered under running work, which may not borrow
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(snapshot))
    result = runner.invoke(app, [*command, "-s", str(file)])
    assert result.exit_code == 0, result.output
    assert re.search(r"used +borrowed +over quota +lent", result.output)
    assert re.search(r" 2 +0 +1 +0 ", result.output)  # used, borrowed, over quota, lent


def test_run_times_tell_when(runner: CliRunner, snapshot: str) -> None:
    result = runner.invoke(app, ["explain", "waits", "-s", snapshot, "--runs", "team-a/a-own=2h", "--json"])
    data = json.loads(result.output)
    assert (data["earliest"], data["earliestBecause"]) == ("2026-11-20T13:00:00Z", "in 1 h, with the known run times")


def test_json_is_the_same_for_programs(runner: CliRunner, snapshot: str) -> None:
    data = json.loads(runner.invoke(app, ["explain", "a-own", "-s", snapshot, "--json"]).output)
    assert (data["reason"], data["risks"][0]["lender"]) == ("Admitted", "team-b")


def test_a_team_is_explained_by_its_quota_and_its_share(runner: CliRunner, snapshot: str) -> None:
    result = runner.invoke(app, ["explain", "--team", "team-a", "-s", snapshot])
    assert result.exit_code == 0
    for text in ("Why this quota", "Where each unit comes from", "borrows 2 from team-b"):
        assert text in result.output
    data = json.loads(runner.invoke(app, ["explain", "-t", "team-a", "-s", snapshot, "--json"]).output)
    assert data["shares"][0]["borrowed"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "wait"], "did you mean team-a/waits"),
        (["explain", "--team", "team-c"], "did you mean team-b or team-a?"),
        (["explain"], "give a workload, or --team NAME"),
        (["explain", "waits", "--runs", "waits=soon"], "not a duration such as 2h30m"),
    ],
)
def test_what_is_not_understood_says_what_to_do(
    runner: CliRunner, snapshot: str, arguments: list[str], said: str
) -> None:
    result = runner.invoke(app, [*arguments, "-s", snapshot])
    assert (result.exit_code, said in _flat(result.output)) == (2, True), result.output


def test_without_a_source_the_ways_to_give_one_are_named(runner: CliRunner) -> None:
    result = runner.invoke(app, ["explain", "waits"])
    assert (result.exit_code, "--cluster NAME" in _flat(result.output)) == (2, True)


def test_a_file_that_is_no_snapshot_says_how_to_write_one(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    result = runner.invoke(app, ["explain", "waits", "-s", str(tmp_path / "other.json")])
    assert (result.exit_code, "taskgov snapshot NAME" in _flat(result.output)) == (2, True)


def _flat(output: str) -> str:
    """Undo the frame and the line breaks of an error."""
    return " ".join(output.replace("│", " ").split())
