"""Put together what is known of a cluster into a report. Called by `audit_cluster` and the command line."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Final

from taskgov.allocation.lease_book import LeaseEntry, lease_book, leased, leased_words
from taskgov.allocation.loops import Loop, loop_in
from taskgov.allocation.plan import Change, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.audit.finding_report import Reported, report_findings, seen_of
from taskgov.audit.findings import audit
from taskgov.audit.money import Money, money_of
from taskgov.audit.not_checked import not_checked
from taskgov.audit.quota_advice import QuotaAdvice, advice_findings
from taskgov.audit.report import (
    REPORT_VERSION,
    ChangeLine,
    EditLine,
    Header,
    LoanLine,
    PendingLine,
    PreemptionLine,
    Report,
    UsageLine,
)
from taskgov.audit.report_tasks import NO_STARTS, Starts, task_lines
from taskgov.audit.totals import Totals
from taskgov.audit.trend import AuditHistory, AuditPoint, Earlier
from taskgov.findings import Finding, Severity
from taskgov.findings.of_audit import PREEMPTION_LOOP
from taskgov.policy.document import AuditRules
from taskgov.quantities import is_accelerator
from taskgov.snapshot.model import Snapshot
from taskgov.usage.cluster_usage import ClusterUsage, Loan, TeamUsage, cluster_usage
from taskgov.usage.tasks import tasks_of
from taskgov.usage.units import readable, unit_of
from taskgov.usage.workloads import Preemption

NO_AUDIT_BEFORE: Final = Earlier()


def audit_report(  # noqa: PLR0913 - a report has as many sources
    snapshot: Snapshot,
    earlier: Earlier = NO_AUDIT_BEFORE,
    *,
    topics: str | None = None,
    beside: Sequence[Finding] = (),
    starts: Starts = NO_STARTS,
    advice: Sequence[QuotaAdvice] = (),
    document: str = "",
    usage: ClusterUsage | None = None,
) -> Report:
    """Return the report of a snapshot: planned in mode `plan`, and judged by the model that plans.

    `earlier` is what audits before left (see `taskgov.audit.trend`), `topics` how ARNs of teams' topics must begin,
    `beside` what is found outside the snapshot, `starts` the estimates of starts that are kept, `advice` what the
    record of work advises, `document` the file that was used instead of the document in force, `usage` that
    of the snapshot with its loans, where it is known already.
    """
    plan = plan_quotas(snapshot, mode="plan")
    outside = (*beside, *advice_findings(advice))
    found = report_findings(snapshot, plan, audit(snapshot, plan), earlier, topics, outside, document)
    report = build_report(snapshot, plan, cluster_usage(snapshot) if usage is None else usage, found, earlier, starts)
    return replace(report, advice=tuple(advice), header=replace(report.header, document=document))


def build_report(
    snapshot: Snapshot,
    plan: Plan,
    usage: ClusterUsage,
    found: Reported,
    earlier: Earlier = NO_AUDIT_BEFORE,
    starts: Starts = NO_STARTS,
) -> Report:
    """Return the report of one moment. Findings come worst first, then by subject; preemptions newest first."""
    now, leases = snapshot.taken_at, lease_book(snapshot, plan)
    tasks, left_out = task_lines(tasks_of(snapshot), starts=starts)
    return Report(
        version=REPORT_VERSION,
        header=_header(snapshot, plan),
        totals=_totals(usage),
        findings=found.findings,
        capacity=plan.capacity,
        usage=tuple(usage_line(team, leases) for team in leading_first(usage.teams)),
        loans=tuple(loan_line(loan) for loan in usage.loans if loan.amount),
        pending=tuple(
            PendingLine(pending.team, pending.workloads, pending.accelerators, pending.oldest_wait(now).total_seconds())
            for pending in usage.pending
        ),
        preemptions=tuple(preemption_line(preemption, usage) for preemption in reversed(usage.preemptions)),
        allocations=plan.allocations,
        changes=tuple(_change(change, plan) for change in plan.changes),
        effects=plan.prediction.effects,
        edits=_edits(snapshot),
        leases=leases,
        muted=found.muted,
        trend=earlier.trend((*found.findings, *found.muted), sum(finding.is_new for finding in found.findings), now),
        tasks=tasks,
        tasks_left_out=left_out,
        money=_money(snapshot, usage),
        loops=_loops(snapshot, (*found.findings, *found.muted)),
        not_checked=tuple(not_checked(snapshot)),
    )


def _loops(snapshot: Snapshot, found: Iterable[Finding]) -> tuple[Loop, ...]:
    """Return what the finding of a loop is about, where there is one; it is searched again only then."""
    if not any(map(PREEMPTION_LOOP.is_of, found)):
        return ()
    loop = loop_in(snapshot)
    return () if loop is None else (loop,)


def _money(snapshot: Snapshot, usage: ClusterUsage) -> Money | None:
    if snapshot.policy is None or not snapshot.policy.audit.prices:
        return None
    table, prices = snapshot.instance_types, snapshot.policy.audit.prices
    return money_of(usage, tasks_of(snapshot), prices, table, snapshot.taken_at)


def history_after(report: Report, earlier: Earlier) -> AuditHistory:
    """Return what this audit leaves for those to come."""
    point = AuditPoint(
        **asdict(report.totals),
        taken_at=report.header.taken_at,
        run_id=earlier.run_id,
        findings=count_findings(report.findings),
        muted=len(report.muted),
    )
    return earlier.after(point, map(seen_of, (*report.findings, *report.muted)))


def count_findings(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many findings there are of each severity, mildest first; zeros are included."""
    severities = [finding.severity for finding in findings]
    return {severity.value: severities.count(severity) for severity in Severity}


def _header(snapshot: Snapshot, plan: Plan) -> Header:
    config = snapshot.scheduler_config
    return Header(
        cluster_name=snapshot.cluster.name,
        cluster_arn=snapshot.cluster.arn,
        cluster_status=snapshot.cluster.status,
        taken_at=snapshot.taken_at,
        policy_version=snapshot.policy_version if snapshot.policy else None,
        fair_share=str(config.scheduler_config.fair_share or "Enabled") if config else "no cluster policy",
        stopped=snapshot.stopped,
        plan_id=plan.plan_id,
        plan_outcome=plan.outcome,
        snapshot_sha256=plan.snapshot_sha256,
        attention_from=(snapshot.policy.audit if snapshot.policy else AuditRules()).attention_from,
    )


def _totals(usage: ClusterUsage) -> Totals:
    """Add up accelerators of all kinds, or cpu where no instance type has any."""
    accelerated = any(is_accelerator(capacity.resource) for capacity in usage.capacities)
    capacities = [capacity for capacity in usage.capacities if is_accelerator(capacity.resource) is accelerated]
    lines = [usage_line(team) for team in usage.teams if team.leading]
    counted = [line for line in lines if is_accelerator(line.resource) is accelerated]
    return Totals(
        unit="GPUs" if accelerated else "cores",
        healthy=sum(readable(capacity.resource, capacity.healthy) for capacity in capacities),
        guaranteed=sum(line.guaranteed for line in counted),
        used=sum(line.used for line in counted),
        borrowed=sum(line.borrowed for line in counted),
        idle=sum(line.idle for line in counted),
        over_quota=sum(line.over_quota for line in counted),
        pending_workloads=sum(pending.workloads for pending in usage.pending),
        pending_gpus=sum(pending.accelerators for pending in usage.pending),
        preemptions=len(usage.preemptions),
    )


def leading_first(teams: Iterable[TeamUsage]) -> list[TeamUsage]:
    """Order by instance type and team; resources that nobody has or uses are left out."""
    some = [team for team in teams if team.leading or team.usage.guaranteed or team.usage.used]
    return sorted(some, key=lambda team: (team.usage.instance_type, team.usage.team, not team.leading))


def usage_line(team: TeamUsage, leases: Iterable[LeaseEntry] = ()) -> UsageLine:
    """Return what one team holds, in the units of the report."""
    line = team.usage

    def amount(base: int) -> float:
        return readable(line.resource, base)

    limit, entitled = line.borrow_limit, team.entitlement
    moved = leased(leases, line.team, line.instance_type)
    utilization = line.borrow_limit_utilisation
    return UsageLine(
        team=line.team,
        instance_type=line.instance_type,
        resource=line.resource,
        unit=unit_of(line.resource),
        leading=team.leading,
        guaranteed=amount(line.guaranteed),
        used=amount(line.used),
        borrowed=amount(line.borrowed),
        lent=amount(line.lent),
        idle=amount(line.idle),
        over_quota=amount(line.over_quota),
        borrow_limit=None if limit is None else amount(limit),
        borrow_limit_utilization=None if utilization is None else float(100 * utilization),
        entitlement=None if entitled is None else amount(entitled),
        deviation=None if entitled is None else amount(line.used - entitled),
        infinite_share=team.infinite_share,
        leased=moved.get("instances", 0),
        leased_words=leased_words(moved),
    )


def loan_line(loan: Loan) -> LoanLine:
    """Return a loan in the units of the report."""
    amount = readable(loan.resource, loan.amount)
    return LoanLine(loan.borrower, loan.lender, loan.instance_type, loan.resource, unit_of(loan.resource), amount)


def preemption_line(preemption: Preemption, usage: ClusterUsage) -> PreemptionLine:
    """Return a preemption with what was lost by it, where that is known."""
    return PreemptionLine(
        at=preemption.at,
        team=preemption.team,
        workload=f"{preemption.team}/{preemption.job}",
        reason=preemption.reason,
        preempting_team=preemption.preempting_team or "",
        gpus=preemption.accelerators,
        gpu_seconds=usage.lost.get(preemption.identity),
    )


def _change(change: Change, plan: Plan) -> ChangeLine:
    """Name the guardrails of the change itself, and those that stop the whole plan."""
    verdicts = dict.fromkeys((*change.guardrails, *plan.guardrails))
    return ChangeLine(
        kind=change.kind,
        name=change.name,
        team=change.team,
        gpus_before=change.gpus_before,
        gpus_after=change.gpus_after,
        reason=change.reason,
        because=change.because,
        stopped_by=tuple(f"{verdict.guardrail}: {verdict.because}" for verdict in verdicts if not verdict.passed),
    )


def _edits(snapshot: Snapshot) -> tuple[EditLine, ...]:
    """Return the edits by hand, newest first; a quota that is gone keeps its id as its name."""
    quotas = {quota.compute_quota_id: quota for quota in snapshot.quotas}
    lines = []
    for edit in sorted(snapshot.edits, key=lambda edit: (edit.at, edit.compute_quota_id), reverse=True):
        quota = quotas.get(edit.compute_quota_id)
        name = quota.name if quota else edit.compute_quota_id
        team = quota.compute_quota_target.team_name if quota else ""
        lines.append(EditLine(name, team, edit.by, edit.at, edit.event_name))
    return tuple(lines)
