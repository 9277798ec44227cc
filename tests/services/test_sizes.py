"""What travels in a state, an event, a message or an item stays small at 1,000 teams with 15 rows each."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import GuardrailVerdict, Outcome, Plan
from taskgov.audit.notices import cluster_notice, team_notice
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
from tests.support.reports import a_report

KIB = 1024
TEAMS, ROWS = 1000, 15
SCRIPTS = ("team", "팀", "\N{CROSSED SWORDS}\N{ROCKET}", '"', "\x1b")
"""Texts that others write, whose letters take one byte, three or four, and two or six in JSON."""
POINTER = Pointer(bucket="bucket", key="plans/ml-cluster/plan-1.json", sha256="0" * 64)
GUARDRAILS = tuple(f"guardrail-{number}" for number in range(15))
"""As many as there are: each of them stops the plan for every row of every team."""


def everybody(script: str) -> str:
    return ", ".join(f"{script}-{number}" for number in range(TEAMS))


def a_plan_that_everything_stops(script: str) -> Plan:
    because, remedy = f"All lose 50 %, as {everybody(script)} do.", f"Ask {everybody(script)}."
    changes = [update(index, f"team-{index}", f"quota{index:07}", 2, 1) for index in range(TEAMS)]
    verdicts = [GuardrailVerdict(name, False, because, remedy) for name in GUARDRAILS] * TEAMS
    findings = [
        Finding("mass-loss", Severity.INCIDENT, f"team-{number}", because, remedy) for number in range(TEAMS * ROWS)
    ]
    return replace(
        plan_of(*(replace(change, because=because) for change in changes), outcome=Outcome.BLOCKED),
        guardrails=tuple(verdicts),
        findings=tuple(findings),
    )


PLANS = {script: a_plan_that_everything_stops(script) for script in SCRIPTS}
SCRIPTS_NAMED = ("ASCII", "Korean", "emoji", "quotes", "control")
in_each_script = pytest.mark.parametrize("script", SCRIPTS, ids=SCRIPTS_NAMED)


def size(data: object) -> int:
    """Bytes as Lambda, Step Functions and EventBridge count them."""
    return len(json.dumps(data, ensure_ascii=False).encode())


def an_end(outcome: RunOutcome, script: str) -> EndOfRun:
    return EndOfRun(
        cluster_arn=CLUSTER_ARN,
        cluster_name="ml-cluster",
        run_id="ml-cluster-12-7bf73129-1",
        outcome=outcome,
        applied=TEAMS,
        started_at=NOON - timedelta(seconds=64),
        ended_at=NOON,
        plan=PLANS[script],
        plan_pointer=POINTER,
        error=f"the plan did not take effect: {everybody(script)}" * 20,
        written=tuple(f"team-{number}/team-{number}-quota" for number in range(TEAMS)),
    )


@pytest.mark.parametrize("outcome", list(Outcome))
@in_each_script
def test_the_state_of_a_planned_run_stays_below_64_kib(outcome: Outcome, script: str) -> None:
    plan = replace(PLANS[script], outcome=outcome)
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
    assert size(result.to_json()) <= 64 * KIB


@in_each_script
def test_the_state_of_a_wave_that_is_wrong_everywhere_stays_below_64_kib(script: str) -> None:
    told = cut([f"team-{number}-quota is not as {everybody(script)}" for number in range(TEAMS)])
    assert told[-1] == "and 980 more"
    result = VerifyPlanResult(settled=False, pending=told, refused=told, edited=told, problems=told)
    assert size(result.to_json()) <= 64 * KIB


@pytest.mark.parametrize("outcome", get_args(RunOutcome))
@in_each_script
def test_event_notice_and_record_of_a_run_stay_small(outcome: RunOutcome, script: str) -> None:
    end = an_end(outcome, script)
    assert size(event_of(end)) <= 128 * KIB
    notice = notice_of(end)
    assert notice is not None
    assert len(notice.text.encode()) <= 128 * KIB
    record = record_of(end)
    assert size([record.written, record.error]) <= 40 * KIB


@pytest.mark.parametrize("said", [*map(everybody, SCRIPTS), "\U000e0001" * 5000], ids=[*SCRIPTS_NAMED, "escapes"])
def test_the_notices_of_an_audit_stay_small(said: str) -> None:
    finding = replace(
        a_report().findings[0],
        because=said,
        remedy=said,
        teams=tuple(f"team-{number:05}" for number in range(TEAMS)),
    )
    report = replace(a_report(), findings=(finding,) * (TEAMS * ROWS))
    notice = cluster_notice(report, "s3://bucket/report.html", [said] * TEAMS)
    assert notice is not None
    for sent in (notice, team_notice(report, list(report.findings), "s3://bucket/report.html")):
        assert 20 * KIB < len(sent.text.encode()) <= 128 * KIB
        assert "and 14,980 more" in sent.text
    assert "and 980 more" in notice.text


def test_what_is_left_out_is_counted() -> None:
    told = stopped_by(PLANS["team"])
    assert len(told) == len(GUARDRAILS) * (MOST_OF_A_GUARDRAIL + 1)
    assert {verdict.because for verdict in told[-len(GUARDRAILS) :]} == {"and 997 more"}
    lines = summary(PLANS["team"]).splitlines()
    assert "- and 980 more changes" in lines
    assert lines[-1] == "! and 14,980 more findings"
