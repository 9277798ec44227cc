"""A plan on a terminal: its waves, and quotas that are written twice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from taskgov.allocation.plan import GuardrailVerdict, Outcome, Plan, Prediction, WorkloadEffect
from taskgov_cli import plans
from taskgov_cli.main import app
from tests.support.plans import low_write, plan_of, second_write, update

PATH = plan_of(low_write(0, "team-a", "q1", 4, 2), second_write(1, "team-a", "q1", 2, 5))


def shown(plan: Plan) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        for part in plans.shown(plan):
            console.print(part)
    return capture.get()


def test_a_quota_that_is_written_twice_says_so_with_the_wave_of_each_write() -> None:
    first, second = (line.split() for line in shown(PATH).splitlines() if "of two writes" in line)
    assert first[:4] == ["1", "1", "team-a", "update-quota,"]
    assert (first[4], second[1], second[4]) == ("first", "2", "second")


def test_a_plan_from_before_there_were_waves_shows_a_dash() -> None:
    (line,) = [line.split() for line in shown(plan_of(update(0, "team-a", "q1", 2, 1))).splitlines() if "->" in line]
    assert line[:4] == ["1", "-", "team-a", "update-quota"]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_can_be_shown(outcome: Outcome) -> None:
    assert outcome.value in shown(replace(PATH, outcome=outcome))


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_what_is_stopped_is_a_no_and_changes_count_where_they_are_asked_for(outcome: Outcome) -> None:
    plan = replace(PATH, outcome=outcome)
    codes = plans.exit_code_of(plan, changes=0), plans.exit_code_of(plan, changes=4)
    stopped, changes = {Outcome.BLOCKED, Outcome.NO_PROGRESS}, {Outcome.PLANNED, Outcome.APPLY, Outcome.NEEDS_APPROVAL}
    assert codes == ((1, 1) if outcome in stopped else (0, 4 if outcome in changes else 0))


@pytest.mark.parametrize(("guardrail", "code", "said"), [("max-decrease", 1, True), ("approval", 0, False)])
def test_what_stops_a_plan_stops_it_in_plan_mode_too(guardrail: str, code: int, said: bool) -> None:
    verdict = GuardrailVerdict(guardrail, passed=False, because="50 % is more than 25 %", remedy="raise it")
    plan = replace(PATH, outcome=Outcome.PLANNED, guardrails=(verdict,))
    assert plans.exit_code_of(plan, changes=0) == code
    assert (f"planned, and stopped by {guardrail}" in shown(plan)) == said


def test_a_cluster_without_nodes_is_a_no_in_each_mode(tmp_path: Path) -> None:
    sample = json.loads((Path(__file__).parents[2] / "examples/snapshot.json").read_text())
    file = tmp_path / "no-nodes.json"
    file.write_text(json.dumps({key: value for key, value in sample.items() if key != "nodes"}))
    for mode in ("plan", "apply"):
        for flag in ([], ["--exit-code"]):
            result = CliRunner().invoke(app, ["plan", "-s", str(file), "--mode", mode, *flag])
            assert (result.exit_code, "max-decrease" in result.stdout) == (1, True), result.output


def test_a_prediction_says_in_which_wave_and_that_it_is_not_complete() -> None:
    effect = WorkloadEffect("ns", "job-1", "team-b", "preempted", 2, "reclaimed", wave=2)
    complete = Prediction(simulated=True, effects=(effect,), preempted_gpus=2)
    text = shown(replace(PATH, prediction=complete))
    assert "preempted in wave 2" in text
    assert "at least" not in text
    text = shown(replace(PATH, prediction=replace(complete, not_predicted=("Wave 3 was not played.",))))
    assert "What the scheduler would do, at least" in text
    assert "Wave 3 was not played." in text


def test_a_prediction_says_who_may_be_preempted_and_what_is_not_modelled() -> None:
    effect = WorkloadEffect("ns", "job-1", "team-b", "may be preempted", 2, "", uncertain=("MultiKueue",))
    unsure = Prediction(
        simulated=True, effects=(effect,), not_modelled=("MultiKueue (Workload ns/job-1)",), may_be_preempted_gpus=2
    )
    text = shown(replace(PATH, prediction=unsure))
    assert "may be preempted" in text
    assert "Not modelled: MultiKueue (Workload ns/job-1)" in text
