"""`taskgov demo`: what it prints, and its exit status."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from taskgov_cli.main import app
from taskgov_cli.onboarding import first_day
from taskgov_embedded.walkthrough import model
from taskgov_embedded.walkthrough.step_result import Check
from tests.support.golden import assert_section

SHORT = "13-order-of-submission"
PAGE = Path(__file__).parents[2] / "docs" / "onboarding.md"


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.mark.long
def test_it_ends_with_the_number_of_checks_and_exits_0(runner: CliRunner) -> None:
    result = runner.invoke(app, ["demo", SHORT])
    assert result.exit_code == 0, result.output
    assert "Order of submission" in result.output
    assert result.output.splitlines()[-1].startswith("demo: ")
    assert result.output.splitlines()[-1].endswith("0 failed")


def test_a_walkthrough_that_nobody_wrote_is_an_error_that_names_those_there_are(runner: CliRunner) -> None:
    result = runner.invoke(app, ["demo", "nonsense"])
    assert result.exit_code == 2
    assert "13-order-of-submission" in result.output.replace("\n", "").replace("│", "").replace(" ", "")


ASKING: dict[str, Any] = {
    "name": "A question in the middle",
    "source": "made up",
    "about": "One team.",
    "starts": "2026-11-20T09:00:00Z",
    "cluster": {"groups": [{"instanceType": "ml.g5.8xlarge", "count": 2}]},
    "steps": [{"title": "Nothing happens", "expect": {"deadLetters": 0}}],
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "small"},
    "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "train"}]}}},
}


@pytest.fixture
def another_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first day, which has a test of its own, be one step whose check fails."""
    check = Check("what", passed=False, wanted="this", got="that")
    monkeypatch.setattr(first_day, "play", lambda _app: iter([first_day.Step("So", "taskgov x", "out", (check,))]))


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *questions: Mapping[str, object]) -> None:
    """Let the demo have one walkthrough, with these questions after its only step."""
    step = ASKING["steps"][0] | {"ask": list(questions)}
    (tmp_path / "one.yaml").write_text(json.dumps(ASKING | {"steps": [step]}))
    monkeypatch.setattr(model, "HERE", tmp_path)


def test_json_gives_the_same_as_data(runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(tmp_path, monkeypatch)
    result = runner.invoke(app, ["demo", "one", "--json"])
    assert result.exit_code == 0
    data = json.loads(result.output)
    assert data["failed"] == 0
    assert data["passed"] == sum(len(step["checks"]) for step in data["walkthroughs"][0]["steps"]) > 0
    assert [step["title"] for step in data["walkthroughs"][0]["steps"]] == ["Nothing happens"]


def test_an_expectation_that_does_not_hold_is_named_and_exits_1(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ASKING["steps"][0], "expect", {"deadLetters": 1})
    asked(tmp_path, monkeypatch)
    result = runner.invoke(app, ["demo", "one"])
    assert result.exit_code == 1
    assert "Nothing happens" in result.output
    assert "messages in the dead-letter queue: wanted 1, got 0" in result.output
    assert result.output.splitlines()[-1].endswith(", 1 failed")


def test_a_question_is_shown_as_it_is_typed_with_its_answer(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = {"command": "status {live}", "shows": ["2 of 2"]}
    offline = {"command": "audit -s {snapshot} --fail-on never", "shows": ["GPUs: 2 healthy"]}
    asked(tmp_path, monkeypatch, live, offline)
    result = runner.invoke(app, ["demo", "one"])
    assert result.exit_code == 0, result.output
    assert "$ taskgov status --cluster ml-cluster --stack taskgov" in result.output
    assert "$ taskgov audit -s ml-cluster.json --fail-on never" in result.output
    assert "GPUs: 2 healthy" in result.output


def test_an_answer_that_does_not_say_it_or_ends_otherwise_is_a_failed_check(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = {"command": "status -s {snapshot}", "shows": ["a sentence that nobody prints"]}
    unknown = {"command": "explain nobody -s {snapshot}", "shows": [""]}
    asked(tmp_path, monkeypatch, silent, unknown)
    result = runner.invoke(app, ["demo", "one", "--json"])
    data = json.loads(result.output)
    assert (result.exit_code, data["failed"]) == (1, 2)
    answers = data["walkthroughs"][0]["steps"][0]["asked"]
    failed = [check["what"] for answer in answers for check in answer["checks"] if not check["passed"]]
    assert failed == ["the answer", "exit code"]


def test_files_and_the_series_of_snapshots_can_be_asked_about(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = {"command": "what-if -s {snapshot} --submit {folder}/job.yaml", "files": {"job.yaml": JOB}, "exitCode": 2}
    replay = {"command": "replay {series}", "exitCode": 2}
    asked(tmp_path, monkeypatch, submit | {"shows": [""]}, replay | {"shows": [""]})
    data = json.loads(runner.invoke(app, ["demo", "one", "--json"]).output)
    assert data["failed"] == 0
    assert data["walkthroughs"][0]["steps"][0]["asked"][0]["command"].endswith("--submit job.yaml")


@pytest.mark.long
def test_a_command_may_be_anybodys_and_name_plans_and_the_world_continues_after_it(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"}}
    quota = {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}]}
    asks = {"approveAbove": {"changedGpus": 0}}
    whole = document | {"teams": [{"name": "team-a", "quota": quota}], "guardrails": asks}
    apply = {"command": "apply -p {folder}/p.yaml --yes", "files": {"p.yaml": whole}, "exitCode": 1}
    approve = {"command": "approve {plan[waiting]}", "by": "ben", "waitMinutes": 2, "shows": ["user/ben"]}
    monkeypatch.setitem(ASKING, "mode", "apply")
    rollback = {"command": "rollback {plan[applied]}", "shows": ["will be restored"]}
    asked(tmp_path, monkeypatch, apply | {"shows": ["taskgov approve plan-"]}, approve, rollback)
    data = json.loads(runner.invoke(app, ["demo", "one", "--json"]).output)
    answers = data["walkthroughs"][0]["steps"][0]["asked"]
    assert [check for answer in answers for check in answer["checks"] if not check["passed"]] == []
    assert answers[1]["command"].endswith("  # ben")


def test_a_plan_that_there_is_not_is_an_error(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(tmp_path, monkeypatch, {"command": "rollback {plan[waiting]}", "shows": [""]})
    assert isinstance(runner.invoke(app, ["demo", "one"]).exception, LookupError)


@pytest.mark.long
def test_the_first_day_holds_and_the_page_about_it_shows_what_is_printed() -> None:
    steps = list(first_day.play(app))
    assert [check for step in steps for check in step.checks if not check.passed] == []
    init, _, _, well, broken = (_named(fenced(step.output)) for step in steps)
    assert_section(PAGE, "init", init)
    assert_section(PAGE, "document", fenced(steps[0].document, "yaml"))
    assert_section(PAGE, "doctor", well)
    assert_section(PAGE, "broken", broken)


def _named(text: str) -> str:
    """Return what is printed with the lineage of the page: each state has one of its own, made at random."""
    return re.sub(r"(?<=lineage )[0-9a-f]{16}", "4f1c09d2a7e35b68", text)


def fenced(text: str, language: str = "text") -> str:
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return f"```{language}\n{lines}\n```"


@pytest.mark.usefixtures("another_day")
def test_the_first_day_can_be_asked_for(runner: CliRunner) -> None:
    result = runner.invoke(app, ["demo", "first-day"])
    assert (result.exit_code, "what: wanted this, got that" in result.output) == (1, True)
    assert result.output.splitlines()[-1] == "demo: 0 checks passed, 1 failed"


@pytest.mark.usefixtures("another_day")
def test_all_walkthroughs_have_a_line_each_and_details_where_a_check_failed(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(tmp_path, monkeypatch)
    result = runner.invoke(app, ["demo", "--all"], terminal_width=200)
    said = " ".join(result.output.split())
    assert result.output.startswith("ok      one  3 checks\nFAILED  the dashboard  0 checks passed, ")
    assert "Nothing happens" not in said
    assert "the widget Findings of the last audit has data: wanted some of its metrics, got" in said
    assert "FAILED 00-the-first-day 0 checks passed, 1 failed" in said
    assert f"{first_day.TITLE}" in said
    assert "$ taskgov x out" in said
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "demo: 3 checks passed, 21 failed"  # nothing is measured in no time


@pytest.mark.usefixtures("another_day")
def test_all_walkthroughs_are_shown_with_every_step_on_request(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(tmp_path, monkeypatch)
    result = runner.invoke(app, ["demo", "--all", "--verbose"])
    titles = (
        "A question in the middle",
        "1. Nothing happens",
        "The dashboard of these walkthroughs",
        first_day.TITLE,
    )
    places = [result.output.index(title) for title in titles]
    assert places == sorted(places)


def test_names_and_all_exclude_each_other(runner: CliRunner) -> None:
    assert runner.invoke(app, ["demo", SHORT, "--all"]).exit_code == 2
