"""`taskgov demo`: what it prints, and its exit status."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov_cli.main import app
from taskgov_embedded.walkthrough import model

SHORT = "13-order-of-submission"


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def test_it_ends_with_the_number_of_checks_and_exits_0(runner: CliRunner) -> None:
    result = runner.invoke(app, ["demo", SHORT])
    assert result.exit_code == 0, result.output
    assert "Order of submission" in result.output
    assert result.output.splitlines()[-1].startswith("demo: ")
    assert result.output.splitlines()[-1].endswith("0 failed")


def test_json_gives_the_same_as_data(runner: CliRunner) -> None:
    result = runner.invoke(app, ["demo", SHORT, "--json"])
    assert result.exit_code == 0
    data = json.loads(result.output)
    assert data["failed"] == 0
    assert data["passed"] == sum(len(step["checks"]) for step in data["walkthroughs"][0]["steps"])
    assert [step["title"] for step in data["walkthroughs"][0]["steps"]][-2] == "The third follows the second"


def test_an_expectation_that_does_not_hold_is_named_and_exits_1(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (model.HERE / f"{SHORT}.yaml").read_text()
    assert "admittedInOrder: [team-a/second]" in text
    changed = text.replace("admittedInOrder: [team-a/second]", "admittedInOrder: [team-a/third]")
    (tmp_path / f"{SHORT}.yaml").write_text(changed)
    monkeypatch.setattr(model, "HERE", tmp_path)
    result = runner.invoke(app, ["demo", "--brief"])
    assert result.exit_code == 1
    assert "The second follows the first" in result.output
    assert "admitted, in order" in result.output
    assert result.output.splitlines()[-1].endswith(", 1 failed")


def test_a_walkthrough_that_nobody_wrote_is_an_error_that_names_those_there_are(runner: CliRunner) -> None:
    result = runner.invoke(app, ["demo", "nonsense"])
    assert result.exit_code == 2
    assert "13-order-of-submission" in result.output.replace("\n", "").replace("│", "").replace(" ", "")
