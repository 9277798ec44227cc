"""What the bus hears of a run, and that the published schemas say the same."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import get_args

import jsonschema
import pytest

from taskgov.allocation.plan import GuardrailVerdict, Outcome
from taskgov.contracts.steps import Cause, Pointer
from taskgov.contracts.task_events import SOURCE
from taskgov.findings import Finding, Severity
from taskgov.services.end_of_run import EndOfRun, RunOutcome
from taskgov.services.run_events import CHANGES_TOLD, DETAIL_TYPES, event_of
from tests.support.event_schemas import RUN_ENDED, event_schemas, run_ended
from tests.support.golden import assert_golden, assert_section
from tests.support.memory import CLUSTER_ARN, NOON
from tests.support.plans import creation, low_write, plan_of, second_write, update

SCHEMAS = Path("events/schemas")
DOCUMENT = Path("docs/events-out.md")
OUTCOMES = get_args(RunOutcome)

CAUSE = Cause(
    event_id="7bf73129-1428-4cd3-a780-95db273d1602",
    source="aws.sagemaker",
    detail_type="SageMaker HyperPod Cluster Node Health Event",
    at=NOON - timedelta(seconds=94),
    what="hyperpod-i-0abc is Unschedulable",
)


def an_end(outcome: RunOutcome = "applied") -> EndOfRun:
    change = update(0, "team-a", "quota0000001", before=4, after=3)
    plan = replace(
        plan_of(change, outcome=Outcome.APPLY),
        guardrails=(GuardrailVerdict("maxDecreasePercent", True, "25 % is not above 25 %"),),
        findings=(Finding("over-quota", Severity.WARNING, "team-a", "Team-a holds 1 instance too many.", "Wait."),),
    )
    return EndOfRun(
        cluster_arn=CLUSTER_ARN,
        cluster_name="ml-cluster",
        run_id="ml-cluster-12-7bf73129-1",
        outcome=outcome,
        applied=1 if outcome == "applied" else 0,
        started_at=NOON - timedelta(seconds=64),
        ended_at=NOON,
        plan=plan,
        plan_pointer=Pointer(bucket="bucket", key="plans/ml-cluster/plan-1.json", sha256="0" * 64),
        cause=CAUSE,
    )


def a_failure() -> EndOfRun:
    error = "UpstreamError: list nodes: 503"
    return replace(an_end("failed"), plan=None, plan_pointer=None, cause=None, error=error)


def as_delivered(end: EndOfRun) -> dict[str, object]:
    detail_type, detail = event_of(end)
    return {"source": SOURCE, "detail-type": detail_type, "detail": json.loads(json.dumps(detail))}


def validate(event: dict[str, object]) -> None:
    jsonschema.validate(event, run_ended())


def test_every_outcome_of_a_run_has_exactly_one_detail_type() -> None:
    assert sorted(outcome for outcomes in DETAIL_TYPES.values() for outcome in outcomes) == sorted(OUTCOMES)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_event_keeps_to_its_published_schema(outcome: RunOutcome) -> None:
    event = as_delivered(an_end(outcome))
    validate(event)


def test_a_run_that_failed_before_it_had_a_plan_still_makes_a_whole_event() -> None:
    event = as_delivered(a_failure())
    validate(event)
    assert event["detail-type"] == "Quota Run Failed"
    assert event["detail"] == {
        "clusterArn": CLUSTER_ARN,
        "clusterName": "ml-cluster",
        "runId": "ml-cluster-12-7bf73129-1",
        "outcome": "failed",
        "written": [],
        "startedAt": "2026-11-20T11:58:56Z",
        "endedAt": "2026-11-20T12:00:00Z",
        "applied": 0,
        "changeCount": 0,
        "changes": [],
        "stoppedBy": [],
        "findings": [],
        "error": "UpstreamError: list nodes: 503",
    }


def test_a_schema_refuses_the_outcome_of_another_detail_type() -> None:
    event = as_delivered(an_end("blocked")) | {"detail-type": "Quota Changes Applied"}
    with pytest.raises(jsonschema.ValidationError):
        validate(event)


def test_changes_travel_with_their_reasons_and_the_cause_of_the_run() -> None:
    _, detail = event_of(an_end())
    assert detail["changes"] == [
        {
            "team": "team-a",
            "kind": "update-quota",
            "name": "team-a",
            "gpusBefore": 4.0,
            "gpusAfter": 3.0,
            "reason": "share",
            "because": "team-a 4 -> 3",
        }
    ]
    assert detail["cause"]["what"] == "hyperpod-i-0abc is Unschedulable"
    assert detail["planId"] == "plan-1"


def test_a_quota_that_is_written_twice_is_reported_once_from_first_to_last() -> None:
    low, other = low_write(0, "team-a", "quota0000001", 4, 2), replace(creation(1, "team-b", 1), wave=2)
    second = replace(second_write(2, "team-a", "quota0000001", 2, 5, wave=3), because="guaranteed 5")
    _, detail = event_of(replace(an_end(), plan=plan_of(low, other, second)))
    told = [(each["team"], each["gpusBefore"], each["gpusAfter"], each["because"]) for each in detail["changes"]]
    assert told == [("team-a", 4, 5, "guaranteed 5"), ("team-b", 0, 1, "team-b gets 1")]
    assert detail["changeCount"] == 2


def test_a_plan_without_progress_ends_as_a_failure_with_its_finding() -> None:
    finding = Finding("no-progress", Severity.ERROR, "ml-cluster", "The plan is the one that was written.", "Look.")
    plan = replace(plan_of(outcome=Outcome.NO_PROGRESS), findings=(finding,))
    event = as_delivered(replace(an_end("failed"), plan=plan, error="no-progress: written before"))
    validate(event)
    assert event["detail-type"] == "Quota Run Failed"
    assert isinstance(event["detail"], dict)
    assert [each["code"] for each in event["detail"]["findings"]] == ["no-progress"]


def test_only_guardrails_that_stopped_the_plan_are_reported() -> None:
    stop = GuardrailVerdict("freeze", False, "team-a is frozen.", "Take it out of freeze.")
    end = an_end("blocked")
    assert end.plan
    _, detail = event_of(replace(end, plan=replace(end.plan, guardrails=(*end.plan.guardrails, stop))))
    assert detail["stoppedBy"] == [
        {"guardrail": "freeze", "because": "team-a is frozen.", "remedy": "Take it out of freeze."}
    ]


def test_an_event_stays_far_below_the_size_that_the_bus_takes() -> None:
    changes = [update(index, f"team-{index}", f"quota{index:07}", 2, 1) for index in range(1000)]
    _, detail = event_of(replace(an_end(), plan=plan_of(*changes)))
    assert (len(detail["changes"]), detail["changeCount"]) == (CHANGES_TOLD, 1000)
    assert len(json.dumps(detail)) < 64 * 1024


def test_the_published_schemas_are_those_of_the_code() -> None:
    for name, schema in event_schemas().items():
        assert_golden(SCHEMAS / name, json.dumps(schema, indent=2) + "\n")
    assert {file.name for file in SCHEMAS.iterdir()} == {*event_schemas(), "audit-report.json"}


def test_the_document_lists_the_detail_types_and_shows_a_real_event() -> None:
    rows = ["| detail type | `outcome` |", "| --- | --- |"]
    for name, outcomes in DETAIL_TYPES.items():
        rows.append(f"| `{name}` | {', '.join(f'`{outcome}`' for outcome in outcomes)} |")
    rows.append(f"\nThe schema of all of them is [`{RUN_ENDED}`](../events/schemas/{RUN_ENDED}).")
    assert_section(DOCUMENT, "detail types", "\n".join(rows))
    example = json.dumps(as_delivered(an_end()), indent=2)
    assert_section(DOCUMENT, "example", f"```json\n{example}\n```")
