"""Which runs people hear of."""

from dataclasses import replace
from datetime import timedelta

import pytest

from taskgov.allocation.plan import GuardrailVerdict, Plan
from taskgov.contracts.steps import Cause
from taskgov.findings import Finding, Severity
from taskgov.services.end_of_run import EndOfRun, RunOutcome
from taskgov.services.run_notices import notice_of
from tests.support.memory import CLUSTER_ARN, NOON
from tests.support.plans import plan_of, update

STOP = GuardrailVerdict("freeze", False, "team-a is frozen.", "take it out of freeze")
PLAN = replace(plan_of(update(0, "team-a", "quota0000001", 4, 3)), guardrails=(STOP,))
INCIDENT = Finding(
    "floors-above-capacity", Severity.INCIDENT, "ml.g5.8xlarge", "Floors are 4 above capacity.", "Repair."
)
CAUSE = Cause(event_id="e", source="aws.sagemaker", detail_type="x", at=NOON, by="jane", what="UpdateComputeQuota")


def an_end(outcome: RunOutcome, plan: Plan | None = PLAN, error: str | None = None, run: str = "run-1") -> EndOfRun:
    return EndOfRun(CLUSTER_ARN, "ml-cluster", run, outcome, 0, NOON, NOON, plan=plan, cause=CAUSE, error=error)


@pytest.mark.parametrize(
    "outcome", ["nothing-to-do", "planned", "needs-approval", "applied", "progressing", "rejected"]
)
def test_a_run_that_needs_nobody_sends_nothing(outcome: RunOutcome) -> None:
    assert notice_of(an_end(outcome)) is None


@pytest.mark.parametrize(
    ("outcome", "subject"),
    [
        ("blocked", "taskgov: quota changes blocked on ml-cluster"),
        ("expired", "taskgov: quota changes not approved in time on ml-cluster"),
        ("unfinished", "taskgov: quota changes unfinished on ml-cluster"),
        ("failed", "taskgov: run failed on ml-cluster"),
    ],
)
def test_a_run_that_needs_somebody_says_so_in_its_subject(outcome: RunOutcome, subject: str) -> None:
    notice = notice_of(an_end(outcome))
    assert notice
    assert notice.subject == subject


def test_a_notice_names_the_cause_the_changes_and_what_would_let_them_through() -> None:
    notice = notice_of(an_end("blocked", error="ConflictError: somebody else"))
    assert notice
    for part in (
        "Cause: UpdateComputeQuota by jane at 2026-11-20 12:00:00 UTC",
        "Error: ConflictError: somebody else",
        "- team-a: team-a 4 -> 3",
        "! freeze: team-a is frozen. To continue: take it out of freeze.",
    ):
        assert part in notice.text


def test_a_notice_names_who_caused_a_run_before_who_approved_its_plan() -> None:
    approved = CAUSE.model_copy(update={"what": "UpdateComputeQuota; plan plan-1 approved by ana"})
    notice = notice_of(EndOfRun(CLUSTER_ARN, "ml-cluster", "run-1", "failed", 0, NOON, NOON, cause=approved))
    assert notice
    assert "Cause: UpdateComputeQuota by jane at 2026-11-20 12:00:00 UTC; plan plan-1 approved by ana" in notice.text


def test_a_request_is_said_in_words_and_not_by_the_name_of_its_event() -> None:
    ordered = CAUSE.model_copy(update={"detail_type": "Run Ordered", "what": "Run Ordered"})
    notice = notice_of(EndOfRun(CLUSTER_ARN, "ml-cluster", "run-1", "failed", 0, NOON, NOON, cause=ordered))
    assert notice
    assert "Cause: run requested by jane at 2026-11-20 12:00:00 UTC" in notice.text.splitlines()


def test_an_incident_is_reported_whatever_the_outcome() -> None:
    notice = notice_of(an_end("applied", replace(PLAN, findings=(INCIDENT,))))
    assert notice
    assert notice.subject == "taskgov: incident on ml-cluster"
    assert "INCIDENT ml.g5.8xlarge: Floors are 4 above capacity.\nRepair." in notice.text


def identity(end: EndOfRun) -> str:
    notice = notice_of(end)
    assert notice
    return notice.identity


def test_the_same_changes_blocked_in_another_run_are_the_same_notice_until_the_next_day() -> None:
    first = an_end("blocked")
    assert identity(first) == identity(replace(first, run_id="run-2", ended_at=NOON + timedelta(hours=3)))
    assert identity(first) != identity(replace(first, ended_at=NOON + timedelta(days=1)))


def test_other_changes_or_another_reason_are_another_notice() -> None:
    other = replace(PLAN, changes=(update(0, "team-a", "quota0000001", 4, 2),))
    found = replace(PLAN, findings=(INCIDENT,))
    assert len({identity(an_end("blocked", plan)) for plan in (PLAN, other, found)}) == 3


def test_the_same_writes_refused_are_one_notice_and_others_are_another() -> None:
    refused = "refused: team-{} (validation): update compute quota x at version {}: no"
    errors = (refused.format("a", 1), refused.format("a", 12), refused.format("b", 1))
    assert len({identity(an_end("unfinished", PLAN, error, run)) for run, error in enumerate_runs(errors)}) == 2


@pytest.mark.parametrize("outcome", ["failed", "unfinished"])
def test_the_same_kind_of_failure_is_one_notice(outcome: RunOutcome) -> None:
    errors = ("UpstreamError: list nodes: 503", "UpstreamError: list nodes: 500", "NotFoundError: cluster x")
    assert len({identity(an_end(outcome, None, error, run)) for run, error in enumerate_runs(errors)}) == 2


def test_a_plan_without_progress_is_one_notice_a_day() -> None:
    ends = [an_end("failed", PLAN, "no-progress: the run before wrote the same", run) for run in ("run-1", "run-2")]
    assert len({identity(end) for end in ends}) == 1
    assert identity(ends[0]) != identity(an_end("failed", None, "UpstreamError: list nodes: 503"))


def enumerate_runs(errors: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(f"run-{number}", error) for number, error in enumerate(errors)]


def lost(since: str, until: str) -> Finding:
    evidence: dict[str, str | int | float | bool] = {"since": since, "until": until}
    return Finding("mass-loss", Severity.INCIDENT, "ml.g5.8xlarge", "2 of 4 were lost.", "Look.", evidence)


def identity_of(*incidents: Finding, days: int = 0) -> str:
    end = an_end("nothing-to-do", replace(PLAN, findings=incidents))
    notice = notice_of(replace(end, ended_at=NOON + timedelta(days=days)))
    assert notice
    return notice.identity


def test_a_loss_that_lowers_nothing_is_reported_once_and_a_further_loss_again() -> None:
    first, more = lost("11:00", "11:00"), lost("11:00", "11:05")
    assert identity_of(first) == identity_of(first, days=3)
    assert identity_of(first) != identity_of(more)


def test_an_incident_that_lasts_is_reported_once_a_day_beside_a_loss_too() -> None:
    for incidents in ([INCIDENT], [INCIDENT, lost("11:00", "11:00")]):
        assert identity_of(*incidents) == identity_of(*incidents)
        assert identity_of(*incidents) != identity_of(*incidents, days=1)
