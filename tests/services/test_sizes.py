"""What travels in a state, an event, a message or an item stays small at 1,000 teams with 15 rows each."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import GuardrailVerdict, Outcome, Plan
from taskgov.contracts.steps import PlanQuotasResult, Pointer, VerifyPlanResult
from taskgov.findings import Finding, Severity
from taskgov.services.end_of_run import EndOfRun, RunOutcome, record_of
from taskgov.services.plan_quotas import summary
from taskgov.services.run_events import event_of
from taskgov.services.run_notices import notice_of
from taskgov.services.told_plan import MOST_OF_A_GUARDRAIL, stopped_by
from taskgov.services.wording import cut
from tests.support.memory import CLUSTER_ARN, NOON
from tests.support.plans import plan_of, update

KIB = 1024
TEAMS, ROWS = 1000, 15
EVERYBODY = ", ".join(f"team-{number}" for number in range(TEAMS))
POINTER = Pointer(bucket="bucket", key="plans/ml-cluster/plan-1.json", sha256="0" * 64)
GUARDRAILS = tuple(f"guardrail-{number}" for number in range(15))
"""As many as there are: each of them stops the plan for every row of every team."""


def a_plan_that_everything_stops(outcome: Outcome) -> Plan:
    changes = [update(index, f"team-{index}", f"quota{index:07}", 2, 1) for index in range(TEAMS)]
    long = [replace(change, because=f"{change.because}, as for {EVERYBODY}") for change in changes]
    verdicts = [
        GuardrailVerdict(guardrail, False, f"team-{number} loses 50 %, as {EVERYBODY} do.", f"Ask {EVERYBODY}.")
        for number in range(TEAMS)
        for guardrail in GUARDRAILS
    ]
    findings = [
        Finding("mass-loss", Severity.INCIDENT, f"team-{n}", f"It is lost, with {EVERYBODY}.", f"Look at {EVERYBODY}.")
        for n in range(TEAMS * ROWS)
    ]
    return replace(plan_of(*long, outcome=outcome), guardrails=tuple(verdicts), findings=tuple(findings))


PLAN = a_plan_that_everything_stops(Outcome.BLOCKED)


def an_end(outcome: RunOutcome) -> EndOfRun:
    return EndOfRun(
        cluster_arn=CLUSTER_ARN,
        cluster_name="ml-cluster",
        run_id="ml-cluster-12-7bf73129-1",
        outcome=outcome,
        applied=TEAMS,
        started_at=NOON - timedelta(seconds=64),
        ended_at=NOON,
        plan=PLAN,
        plan_pointer=POINTER,
        error=f"the plan did not take effect: {EVERYBODY}" * 20,
        written=tuple(f"team-{number}/team-{number}-quota" for number in range(TEAMS)),
    )


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_state_of_a_planned_run_stays_below_64_kib(outcome: Outcome) -> None:
    plan = replace(PLAN, outcome=outcome)
    result = PlanQuotasResult(
        outcome=outcome,
        plan_id=plan.plan_id,
        plan=POINTER,
        change_count=TEAMS,
        wave_count=20,
        changes_sha256=changes_sha256(plan),
        summary=summary(plan),
        recheck_at=None,
    )
    assert len(json.dumps(result.to_json())) <= 64 * KIB


def test_the_state_of_a_wave_that_is_wrong_everywhere_stays_below_64_kib() -> None:
    told = cut([f"team-{number}-quota is not as {EVERYBODY}" for number in range(TEAMS)])
    assert told[-1] == "and 980 more"
    result = VerifyPlanResult(settled=False, pending=told, refused=told, edited=told, problems=told)
    assert len(json.dumps(result.to_json())) <= 64 * KIB


@pytest.mark.parametrize("outcome", get_args(RunOutcome))
def test_event_notice_and_record_of_a_run_stay_small(outcome: RunOutcome) -> None:
    end = an_end(outcome)
    assert len(json.dumps(event_of(end))) <= 128 * KIB
    notice = notice_of(end)
    assert notice is not None
    assert len(notice.text.encode()) <= 128 * KIB
    record = record_of(end)
    assert len(json.dumps([record.written, record.error])) <= 200 * KIB


def test_what_is_left_out_is_counted() -> None:
    told = stopped_by(PLAN)
    assert len(told) == len(GUARDRAILS) * (MOST_OF_A_GUARDRAIL + 1)
    assert {verdict.because for verdict in told[-len(GUARDRAILS) :]} == {"and 997 more"}
    lines = summary(PLAN).splitlines()
    assert "- and 980 more changes" in lines
    assert lines[-1] == "! and 14,980 more findings"
