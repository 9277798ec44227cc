"""`taskgov status`: what each team has, uses, borrows and lends, and what waits."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli.main import app
from tests.support.lab import Lab


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


def test_json_holds_the_same(snapshot: str) -> None:
    data = json.loads(CliRunner().invoke(app, ["status", "-s", snapshot, "--json"]).output)
    gpus = {each["usage"]["team"]: each["usage"] for each in data["teams"] if each["leading"]}
    assert (gpus["team-a"]["borrowed"], gpus["team-b"]["lent"]) == (2, 2)
    assert (data["cluster"], len(data["unhealthyNodes"])) == ("ml-cluster", 1)
    assert [(each["team"], each["accelerators"]) for each in data["pending"]] == [("team-a", 3)]
