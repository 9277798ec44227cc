"""How are findings shown beyond what they say: since when, whose, by which plan; the muted ones, and the trend."""

from typing import Final

from taskgov.audit.report import PlanRemedy, Report, ReportedFinding
from taskgov.audit.report_table import (
    Cell,
    Column,
    Field,
    Sheet,
    Table,
    moment_cell,
    name,
    number_cell,
    text,
    text_cell,
    when,
)
from taskgov.audit.trend import AuditPoint, KnownFinding
from taskgov.findings import Severity
from taskgov.number_text import NOTHING, counted, moment, number, signed

FIGURES = (
    ("Healthy", "healthy", "unit"),
    ("Guaranteed", "guaranteed", "unit"),
    ("Used", "used", "unit"),
    ("Borrowed", "borrowed", "unit"),
    ("Idle", "idle", "unit"),
    ("Over quota", "over_quota", "unit"),
    ("Waiting workloads", "pending_workloads", ""),
    ("GPUs asked for by them", "pending_gpus", ""),
    ("Preemptions remembered", "preemptions", ""),
)
"""Label, member of an audit's figures, and where its unit comes from."""


def history(finding: ReportedFinding) -> str:
    """Return whose a finding is, since when it is there, and whether the document rates it otherwise."""
    parts = [f"Of {', '.join(finding.teams)}."] if finding.teams else []
    if finding.is_new:
        parts.append("New since the last audit.")
    elif finding.first_seen is not None and finding.audits > 1:
        parts.append(f"Since {moment(finding.first_seen)}, in {finding.audits} audits.")
    if finding.rated_from is not None:
        parts.append(f"Rated {finding.severity} by the policy document, found as {finding.rated_from}.")
    return " ".join(parts)


def plan_words(remedy: PlanRemedy) -> str:
    """Return which changes of the plan would remedy a finding, and what stops them.

    >>> plan_words(PlanRemedy("plan-1", (1, 3)))
    'Changes 1, 3 of the plan plan-1 would remedy it.'
    >>> plan_words(PlanRemedy("plan-1", (2,), ("approval",)))
    'Change 2 of the plan plan-1 would remedy it (stopped by approval).'
    """
    numbers = ", ".join(map(str, remedy.changes))
    which = "Change" if len(remedy.changes) == 1 else "Changes"
    stopped = f" (stopped by {', '.join(remedy.stopped_by)})" if remedy.stopped_by else ""
    return f"{which} {numbers} of the plan {remedy.plan_id} would remedy it{stopped}."


def muted_table(report: Report) -> Table:
    """Return the findings that are muted: listed, and counted nowhere else."""
    return MUTED.of(report.muted)


def trend_table(report: Report) -> Table:
    """Return the key figures beside those of earlier audits."""
    trend = report.trend
    return Table(
        "trend",
        "Trend",
        trend_note(report),
        (
            Column("Figure", "name"),
            Column("Now", "number"),
            Column("Audit before", "number"),
            Column("Difference", "number"),
            Column("A week ago", "number", "The newest audit that is a week old or older"),
            Column("Difference since", "number"),
        ),
        tuple(_trend_rows(report)) if trend.previous else (),
        "There was no audit before this one.",
    )


def trend_note(report: Report) -> str:
    """Return when the audit before was made, and how many findings are new and gone since; empty for the first one."""
    trend = report.trend
    if trend.previous is None:
        return ""
    return (
        f"The audit before was made {moment(trend.previous.taken_at)}. Since then "
        f"{counted(trend.new, 'finding is', 'findings are')} new, "
        f"{counted(len(trend.resolved), 'finding is', 'findings are')} gone. "
        f"{counted(len(trend.points), 'earlier audit')} remembered here."
    )


def resolved_table(report: Report) -> Table:
    """Return what the audit before found and this one does not."""
    return RESOLVED.of(report.trend.resolved)


def _trend_rows(report: Report) -> list[tuple[Cell, ...]]:
    totals, past = report.totals, (report.trend.previous, report.trend.week_ago)
    rows = []
    for label, member, unit_from in FIGURES:
        unit = totals.unit if unit_from else ""
        before = [_at(point, member, unit) for point in past]
        rows.append(_row(f"{label} ({unit})" if unit else label, getattr(totals, member), before))
    for severity in reversed(Severity):
        now = sum(finding.severity is severity for finding in report.findings)
        counts = [None if point is None else float(point.findings.get(severity.value, 0)) for point in past]
        rows.append(_row(f"Findings: {severity}", now, counts))
    muted = [None if point is None else float(point.muted) for point in past]
    rows.append(_row("Findings: muted", len(report.muted), muted))
    return rows


def _at(point: AuditPoint | None, member: str, unit: str) -> float | None:
    """Return a figure of an earlier audit; GPUs and cores are not compared with each other."""
    if point is None or (unit and point.unit != unit):
        return None
    return float(getattr(point, member))


def _row(label: str, now: float, past: list[float | None]) -> tuple[Cell, ...]:
    cells: list[Cell] = [text_cell(label), number_cell(now)]
    for before in past:
        if before is None:
            cells += [(NOTHING, -1.0), (NOTHING, 0.0)]
        else:
            cells += [(number(before), before), (signed(now - before), now - before)]
    return tuple(cells)


def _severity(severity: Severity) -> Cell:
    return severity.value, severity.gravity


MUTED: Final[Sheet[ReportedFinding]] = Sheet(
    "muted",
    "Muted findings",
    "Told to nobody and counted nowhere else, until the mute ends. The policy document mutes them (audit.mute).",
    "None.",
    (
        name("About", lambda finding: finding.subject),
        name("Finding", lambda finding: finding.code),
        Field(Column("Severity", "name"), lambda finding: _severity(finding.severity)),
        text("Because", lambda finding: finding.because, "long"),
        text("Muted because", lambda finding: finding.muted.reason if finding.muted else NOTHING, "long"),
        Field(
            Column("Until", "name"),
            lambda finding: moment_cell(finding.muted.until) if finding.muted else (NOTHING, -1.0),
        ),
    ),
)
RESOLVED: Final[Sheet[KnownFinding]] = Sheet(
    "resolved",
    "Gone since the last audit",
    "",
    "Nothing.",
    (
        name("About", lambda finding: finding.subject),
        name("Finding", lambda finding: finding.code),
        Field(Column("Severity", "name"), lambda finding: _severity(finding.severity)),
        text("Was found because", lambda finding: finding.because, "long"),
        when("Was there since", lambda finding: finding.first_seen),
    ),
)
