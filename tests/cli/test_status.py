"""`taskgov status`: what each team has, uses, borrows and lends, and what waits."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli.main import app
from tests.allocation.world import document, fixed, row
from tests.support.lab import G5, GPU, Lab
from tests.support.memory import NOON


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    lab = Lab().team("team-a", 2).team("team-b", 4).machines(5).machines(1, cordoned=True)
    lab.submit("team-a", "borrows", pods=4).submit("team-a", "waits", pods=3)
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(lab.snapshot()))
    return str(file)


def test_teams_capacity_and_faulty_nodes_are_shown(snapshot: str) -> None:
    result = CliRunner().invoke(app, ["status", "-s", snapshot])
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "team-a ml.g5.8xlarge 2 4 2 0 0 4 1 (3)" in lines
    assert "team-b ml.g5.8xlarge 4 0 0 2 2 0 0" in lines
    assert "ml.g5.8xlarge nvidia.com/gpu 5 of 6 5 6 1" in lines
    assert lines[-1].endswith("ml.g5.8xlarge cordoned")


def test_what_a_team_holds_over_a_lowered_quota_is_shown_where_a_team_does(snapshot: str, tmp_path: Path) -> None:
    lab = Lab().team("team-a", 3).team("team-b", 1).machines(4)
    lab.submit("team-a", "runs", pods=3).submit("team-b", "runs", pods=1)
    known = json.loads(snapshot_to_json(lab.snapshot()))
    queue = next(one for one in known["kueue"]["clusterQueues"] if "team-a" in one["metadata"]["name"])
    resources = [row for group in queue["spec"]["resourceGroups"] for row in group["flavors"][0]["resources"]]
    next(row for row in resources if row["name"] == GPU)["nominalQuota"] = "2"
    file = tmp_path / "lowered.json"
    file.write_text(json.dumps(known))
    lines = [
        " ".join(line.split()) for line in CliRunner().invoke(app, ["status", "-s", str(file)]).output.splitlines()
    ]
    assert "team instance type quota leased used borrowed over quota lent idle fair waiting (GPUs)" in lines
    assert "team-a ml.g5.8xlarge 2 3 0 1 0 0 2 0" in lines
    assert "over quota" not in CliRunner().invoke(app, ["status", "-s", snapshot]).output


def test_json_holds_the_same(snapshot: str) -> None:
    data = json.loads(CliRunner().invoke(app, ["status", "-s", snapshot, "--json"]).output)
    gpus = {each["usage"]["team"]: each["usage"] for each in data["teams"] if each["leading"]}
    assert (gpus["team-a"]["borrowed"], gpus["team-b"]["lent"]) == (2, 2)
    assert (data["cluster"], len(data["unhealthyNodes"])) == ("ml-cluster", 1)
    assert [(each["team"], each["accelerators"]) for each in data["pending"]] == [("team-a", 3)]


@pytest.fixture
def leased(tmp_path: Path) -> str:
    """Team A has 2 of its own and 1 of team B's until one o'clock; from two o'clock it is to have another."""
    lab = Lab().team("team-a", 3).team("team-b", 3).machines(6)
    named = {"to": "team-a", "from": "team-b", "instanceType": G5, "count": 1, "reason": "deadline"}
    held = named | {"start": NOON - timedelta(hours=1), "end": NOON + timedelta(hours=1)}
    due = named | {"start": NOON + timedelta(hours=2), "end": NOON + timedelta(hours=3)}
    teams = (fixed("team-a", row(G5, Count=2)), fixed("team-b", row(G5, Count=4)))
    lab.policy = document(*teams, pool=False, leases=[held, due])
    lab.submit("team-a", "waits", pods=7)
    file = tmp_path / "leased.json"
    file.write_bytes(snapshot_to_json(lab.snapshot()))
    return str(file)


LEASES = ["active team-a team-b 1", "due team-a team-b 1"]


@pytest.mark.parametrize(
    "command", [["status"], ["explain", "waits"], ["what-if", "--lose-nodes", f"0x{G5}"]], ids=lambda each: str(each[0])
)
def test_leases_are_shown_wherever_quota_is(leased: str, command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "-s", leased])
    assert result.exit_code == 0, result.output
    shown = [" ".join(line.split()[:4]) for line in result.output.splitlines()]
    assert [line for line in shown if line.startswith(("active ", "due "))] == LEASES
    data = json.loads(CliRunner().invoke(app, [*command, "-s", leased, "--json"]).output)
    assert [each["state"] for each in data["leases"]] == ["active", "due"]


def test_a_quota_says_how_much_of_it_is_leased(leased: str) -> None:
    lines = [" ".join(line.split()) for line in CliRunner().invoke(app, ["status", "-s", leased]).output.splitlines()]
    assert any(line.startswith(f"team-a {G5} 3 +1 ") for line in lines)
    assert any(line.startswith(f"team-b {G5} 3 -1 ") for line in lines)
