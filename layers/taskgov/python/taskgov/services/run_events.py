"""Which event describes a run on the bus? One at its end, whatever its result.

`publish_usage` sends it. `docs/events-out.md` and `events/schemas/run-ended.json` are made from what stands here.
"""

from datetime import datetime
from typing import Any, Final

from pydantic import Field

from taskgov.allocation.plan import GuardrailVerdict
from taskgov.contracts.steps import Cause, Pointer, StepModel
from taskgov.findings import Finding, Severity
from taskgov.services.end_of_run import EndOfRun, RunOutcome
from taskgov.services.plan_path import QuotaPath
from taskgov.services.told_plan import MOST_OF_A_GUARDRAIL, stopped_by
from taskgov.services.wording import shortened, shortened_error

DETAIL_TYPES: Final[dict[str, tuple[RunOutcome, ...]]] = {
    "Quota Plan Computed": ("nothing-to-do", "planned"),
    "Quota Changes Applied": ("applied",),
    "Quota Changes Blocked": ("blocked",),
    "Quota Changes Need Approval": ("needs-approval",),
    "Quota Changes Not Approved": ("rejected", "expired"),
    "Quota Changes Progressing": ("progressing",),
    "Quota Changes Unfinished": ("unfinished",),
    "Quota Cluster Unreadable": ("unreadable",),
    "Quota Run Failed": ("failed",),
}
"""Detail type of the event -> the outcomes that it stands for. Each run ends with exactly one event."""

_DETAIL_TYPE_OF: Final = {outcome: name for name, outcomes in DETAIL_TYPES.items() for outcome in outcomes}

CHANGES_TOLD: Final = 50
"""Changes and findings in one event, so that it stays far below EventBridge's 256 KiB."""


class ToldChange(StepModel):
    """What the plan changes of one quota or of the cluster policy, from first to last, with its reason."""

    team: str
    kind: str
    name: str
    gpus_before: float
    gpus_after: float
    reason: str
    because: str


class ToldFinding(StepModel):
    code: str
    severity: Severity
    subject: str
    because: str
    remedy: str = ""


class ToldGuardrail(StepModel):
    """A guardrail that did not let the plan through."""

    guardrail: str
    because: str
    remedy: str = ""


class RunEnded(StepModel):
    """The `detail` of every event that this automation sends. Members are only ever added."""

    cluster_arn: str
    cluster_name: str
    run_id: str
    outcome: RunOutcome
    started_at: datetime
    ended_at: datetime
    applied: int = Field(ge=0, description="Quotas and cluster policies that were written.")
    written: tuple[str, ...] = Field(default=(), description=f"The first {CHANGES_TOLD} of them: team/name.")
    plan_id: str | None = Field(default=None, description="Absent when the run failed before it had a plan.")
    plan: Pointer | None = None
    mode: str | None = None
    change_count: int = Field(
        default=0, description="Quotas that the plan changes; one that is written twice counts once."
    )
    changes: tuple[ToldChange, ...] = Field(default=(), description=f"The first {CHANGES_TOLD} changes.")
    stopped_by: tuple[ToldGuardrail, ...] = Field(
        default=(), description=f"The first {MOST_OF_A_GUARDRAIL} verdicts of each guardrail, then how many more."
    )
    findings: tuple[ToldFinding, ...] = Field(default=(), description=f"The first {CHANGES_TOLD} findings.")
    cause: Cause | None = None
    error: str | None = None


def event_of(end: EndOfRun) -> tuple[str, dict[str, Any]]:
    """Return the event's detail type and detail."""
    plan = end.plan
    detail = RunEnded(
        cluster_arn=end.cluster_arn,
        cluster_name=end.cluster_name,
        run_id=end.run_id,
        outcome=end.outcome,
        started_at=end.started_at,
        ended_at=end.ended_at,
        applied=end.applied,
        written=end.written[:CHANGES_TOLD],
        plan_id=plan.plan_id if plan else None,
        plan=end.plan_pointer,
        mode=plan.mode if plan else None,
        change_count=len(end.planned_changes),
        changes=tuple(_told_change(path) for path in end.planned_changes[:CHANGES_TOLD]),
        stopped_by=tuple(map(_told_guardrail, stopped_by(plan))) if plan else (),
        findings=tuple(_told_finding(finding) for finding in plan.findings[:CHANGES_TOLD]) if plan else (),
        cause=end.cause,
        error=shortened_error(end.error),
    )
    return _DETAIL_TYPE_OF[end.outcome], detail.to_json()


def _told_change(path: QuotaPath) -> ToldChange:
    change = path.last
    return ToldChange(
        team=change.team,
        kind=change.kind,
        name=change.name,
        gpus_before=path.first.gpus_before,
        gpus_after=change.gpus_after,
        reason=change.reason,
        because=shortened(change.because),
    )


def _told_finding(finding: Finding) -> ToldFinding:
    return ToldFinding(
        code=finding.code,
        severity=finding.severity,
        subject=finding.subject,
        because=shortened(finding.because),
        remedy=shortened(finding.remedy),
    )


def _told_guardrail(verdict: GuardrailVerdict) -> ToldGuardrail:
    return ToldGuardrail(guardrail=verdict.guardrail, because=verdict.because, remedy=verdict.remedy)
