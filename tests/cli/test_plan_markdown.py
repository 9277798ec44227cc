"""A plan as a comment: headline, changes, details folded, plan and digest, within the limit of the forges."""

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import GuardrailVerdict, Outcome, Plan, Prediction, WorkloadEffect
from taskgov.findings import Finding, Severity
from taskgov_cli.plan_markdown import MOST, headline, plan_markdown
from tests.support.plans import plan_of, update

PLAN = plan_of(update(0, "team-a", "q1", 4, 2), update(1, "team-b", "q2", 2, 4))
PREEMPTED = WorkloadEffect("ns", "job-1", "team-b", "preempted", 2, "reclaimed", wave=1)
PREDICTED = replace(PLAN, prediction=Prediction(simulated=True, effects=(PREEMPTED,), preempted_gpus=2))
GUARDRAIL = GuardrailVerdict("max-decrease", passed=False, because="50 % is more than 25 %", remedy="raise it")


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (replace(plan_of(), outcome=Outcome.NOTHING_TO_DO), "nothing to change"),
        (replace(PREDICTED, outcome=Outcome.APPLY), "2 quotas change, 2 GPUs move, 1 job preempted; would be applied"),
        (
            replace(
                PREDICTED, prediction=replace(PREDICTED.prediction, not_predicted=("Wave 2.",)), outcome=Outcome.PLANNED
            ),
            "2 quotas change, 2 GPUs move, at least 1 job preempted; planned",
        ),
        (
            replace(PREDICTED, outcome=Outcome.PLANNED, guardrails=(GUARDRAIL,)),
            "2 quotas change, 2 GPUs move, 1 job preempted; blocked by max-decrease",
        ),
        (
            replace(PREDICTED, outcome=Outcome.PLANNED, guardrails=(replace(GUARDRAIL, guardrail="approval"),)),
            "2 quotas change, 2 GPUs move, 1 job preempted; needs approval",
        ),
        (
            replace(PLAN, prediction=Prediction(simulated=False), outcome=Outcome.BLOCKED),
            "2 quotas change, 2 GPUs move, preemptions not predicted; blocked",
        ),
    ],
)
def test_the_headline_has_the_verdict_what_moves_and_who_is_preempted(plan: Plan, words: str) -> None:
    assert headline(plan) == words


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_comment(outcome: Outcome) -> None:
    text = plan_markdown(replace(PLAN, outcome=outcome))
    assert text.startswith(f"<!-- taskgov plan: {PLAN.cluster_name} -->\n### ")


def test_the_changes_are_open_the_rest_is_folded_and_the_foot_names_plan_and_digest() -> None:
    text = plan_markdown(PREDICTED)
    before, _, folded = text.partition("<details>")
    assert "team-a 4 -&gt; 2" in MarkdownIt("gfm-like", {"linkify": False}).render(before)
    assert "job-1" in folded
    assert f"`{PLAN.plan_id}`" in folded
    assert text.rstrip().endswith(f"<!-- taskgov reviewed: {PLAN.plan_id}:{changes_sha256(PLAN)} -->")


def test_what_stops_a_plan_is_above_the_changes_with_its_remedy() -> None:
    text = plan_markdown(replace(PLAN, outcome=Outcome.BLOCKED, guardrails=(GUARDRAIL,)))
    head, _, _ = text.partition("| ")
    assert "* **max-decrease**: 50 % is more than 25 % To unblock it: raise it" in head


@pytest.mark.parametrize("teams", [10, 2000])
def test_a_comment_is_never_longer_than_a_forge_takes_and_names_what_is_left_out(teams: int) -> None:
    changes = [update(number, f"team-{number}", f"q{number}", 4, 2) for number in range(teams)]
    findings = tuple(Finding("over-commitment", Severity.WARNING, f"t{n}", "x" * 50, "y" * 50) for n in range(teams))
    text = plan_markdown(replace(plan_of(*changes), findings=findings))
    assert len(text) <= MOST
    assert ("Too long for a comment: the changes, findings." in text) == (teams == 2000)
    assert "taskgov reviewed" in text


def test_guardrails_without_end_leave_room_for_the_plan_that_is_reviewed() -> None:
    verdicts = tuple(replace(GUARDRAIL, because="no " * 300) for _ in range(500))
    text = plan_markdown(replace(PLAN, outcome=Outcome.BLOCKED, guardrails=verdicts))
    assert len(text) <= MOST
    assert ("more lines, too long" in text, "taskgov reviewed" in text) == (True, True)
