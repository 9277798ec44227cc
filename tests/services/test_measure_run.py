"""The metrics of a run that has ended."""

from dataclasses import replace
from datetime import timedelta

import pytest

from taskgov.contracts.steps import Cause
from taskgov.services.end_of_run import EndOfRun, RunOutcome
from taskgov.services.measure_run import measure_run
from tests.support.memory import CLUSTER_ARN, NOON
from tests.support.plans import low_write, plan_of, second_write, update

TWO_CHANGES = plan_of(*(update(index, f"team-{index}", f"quota000000{index}", 2, 1) for index in range(2)))
CAUSE = Cause(event_id="e", source="aws.sagemaker", detail_type="x", at=NOON - timedelta(seconds=90))


def an_end(outcome: RunOutcome, applied: int = 0) -> EndOfRun:
    started = NOON - timedelta(seconds=60)
    return EndOfRun(CLUSTER_ARN, "ml-cluster", "run-1", outcome, applied, started, NOON, plan=TWO_CHANGES, cause=CAUSE)


def values(end: EndOfRun) -> dict[str, float]:
    measured = measure_run(end)
    assert all(measurement.dimensions == {} for measurement in measured)
    return {measurement.name: measurement.value for measurement in measured}


def test_a_run_that_applied_its_plan() -> None:
    assert values(an_end("applied", applied=2)) == {
        "PlansComputed": 1,
        "ChangesApplied": 2,
        "ChangesBlocked": 0,
        "RunsUnfinished": 0,
        "RunsFailed": 0,
        "QuotaDrift": 0,
        "EventToAppliedSeconds": 90,
    }


@pytest.mark.parametrize(
    ("outcome", "blocked", "counted"),
    [
        ("planned", 0, None),
        ("needs-approval", 0, None),
        ("blocked", 2, None),
        ("rejected", 2, None),
        ("expired", 2, None),
        ("progressing", 0, None),
        ("unfinished", 0, "RunsUnfinished"),
        ("failed", 0, "RunsFailed"),
    ],
)
def test_a_run_that_did_not_apply_leaves_all_its_changes_as_drift(
    outcome: RunOutcome, blocked: int, counted: str | None
) -> None:
    measured = values(an_end(outcome))
    assert measured["QuotaDrift"] == 2
    assert measured["ChangesBlocked"] == blocked
    outcomes = ("RunsUnfinished", "RunsFailed")
    assert [name for name in outcomes if measured[name]] == ([counted] if counted else [])
    assert "EventToAppliedSeconds" not in measured


def test_a_quota_that_is_written_twice_is_one_change() -> None:
    twice = plan_of(low_write(0, "team-a", "quota0000001", 4, 2), second_write(1, "team-a", "quota0000001", 2, 5))
    assert values(replace(an_end("applied", applied=1), plan=twice))["QuotaDrift"] == 0
    assert values(replace(an_end("blocked"), plan=twice))["ChangesBlocked"] == 1


def test_a_run_without_a_plan_says_nothing_of_drift() -> None:
    measured = values(replace(an_end("failed"), plan=None))
    assert measured["PlansComputed"] == 0
    assert "QuotaDrift" not in measured


def test_a_document_that_blocks_everything_counts_as_one_blocked_change() -> None:
    assert values(replace(an_end("blocked"), plan=plan_of()))["ChangesBlocked"] == 1


def test_an_event_of_a_clock_that_is_ahead_gives_no_negative_time() -> None:
    ahead = CAUSE.model_copy(update={"at": NOON + timedelta(seconds=2)})
    assert values(replace(an_end("applied", applied=2), cause=ahead))["EventToAppliedSeconds"] == 0


def test_a_run_that_nobody_caused_has_no_time_from_event_to_applied() -> None:
    assert "EventToAppliedSeconds" not in values(replace(an_end("applied", applied=2), cause=None))
