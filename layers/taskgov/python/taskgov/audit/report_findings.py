"""How are findings shown beyond what they say: since when, whose, by which plan; the muted ones, and the trend."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
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
from taskgov.audit.report_words import sentence, words
from taskgov.audit.trend import AuditPoint, KnownFinding
from taskgov.findings import Severity
from taskgov.number_text import NOTHING, counted, moment, number, signed

SEEN: Final = 3
"""Findings of a kind that are seen at once: one of a kind may be found of every team."""
MOST: Final = 50
"""Findings of a kind on the page; the data beside it has all."""
FIGURES = (
    ("Healthy", "healthy", "unit"),
    ("Guaranteed", "guaranteed", "unit"),
    ("Used", "used", "unit"),
    ("Borrowed", "borrowed", "unit"),
    ("Idle", "idle", "unit"),
    ("Over quota", "over_quota", "unit"),
    ("Waiting workloads", "pending_workloads", ""),
    ("Waiting GPUs", "pending_gpus", ""),
    ("Preemptions recorded", "preemptions", ""),
)
"""Label, member of an audit's figures, and where its unit comes from."""


def history(finding: ReportedFinding) -> str:
    """Return whose a finding is, since when it is there, and whether the document rates it otherwise."""
    parts = [f"Owner: {', '.join(finding.teams)}."] if finding.teams else []
    if finding.is_new:
        parts.append("New since the last audit.")
    elif finding.first_seen is not None and finding.audits > 1:
        parts.append(f"Since {moment(finding.first_seen)} UTC, in {finding.audits} audits.")
    if finding.rated_from is not None:
        parts.append(f"Rated {finding.severity} by the policy document, found as {finding.rated_from}.")
    return " ".join(parts)


def plan_words(remedy: PlanRemedy) -> str:
    """Return which changes of the plan would fix a finding, and what stops them.

    >>> plan_words(PlanRemedy("plan-1", (1, 3)))
    'The plan fixes this with changes 1 and 3.'
    >>> plan_words(PlanRemedy("plan-1", (2,), ("change-window", "approval")))
    'The plan would fix this with change 2, but is stopped (change window, approval).'
    """
    numbers = " and ".join(filter(None, (", ".join(map(str, remedy.changes[:-1])), str(remedy.changes[-1]))))
    which = "change" if len(remedy.changes) == 1 else "changes"
    if not remedy.stopped_by:
        return f"The plan fixes this with {which} {numbers}."
    return (
        f"The plan would fix this with {which} {numbers}, but is stopped ({', '.join(map(words, remedy.stopped_by))})."
    )


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one kind: those that are seen, those that unfold, and how many more the data has."""

    title: str
    shown: tuple[ReportedFinding, ...]
    folded: tuple[ReportedFinding, ...]
    left_out: int

    @property
    def more(self) -> str:
        """What is behind the fold, in words."""
        return f"{counted(len(self.folded) + self.left_out, 'more finding')}: {self.title[:1].lower()}{self.title[1:]}"


def finding_groups(findings: Iterable[ReportedFinding]) -> tuple[FindingGroup, ...]:
    """Put findings of one severity and kind together, in the order of the first of each."""
    groups: dict[tuple[Severity, str], list[ReportedFinding]] = {}
    for finding in sorted(findings, key=lambda finding: -finding.severity.gravity):
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return tuple(
        FindingGroup(sentence(words(code)), tuple(some[:SEEN]), tuple(some[SEEN:MOST]), len(some[MOST:]))
        for (_, code), some in groups.items()
    )


def muted_table(report: Report) -> Table:
    """Return the findings that are muted: listed, and counted nowhere else."""
    return MUTED.of(report.muted)


def trend_table(report: Report) -> Table:
    """Return the key figures beside those of earlier audits; what was always 0 is left out."""
    return TREND.of(_trend_rows(report) if report.trend.previous else (), trend_note(report))


def trend_note(report: Report) -> str:
    """Return when the audit before was made, and how many findings are new and gone since; empty for the first one."""
    trend = report.trend
    if trend.previous is None:
        return ""
    return (
        f"Compared with the audit of {moment(trend.previous.taken_at)} UTC: "
        f"{counted(trend.new, 'finding is', 'findings are')} new, "
        f"{counted(len(trend.resolved), 'finding is', 'findings are')} gone."
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
    return [row for row in rows if any(shown not in {NOTHING, "0"} for shown, _ in row[1:])]


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


TREND: Final[Sheet[tuple[Cell, ...]]] = Sheet(
    "trend",
    "Trend",
    "",
    tuple(
        Field(column, itemgetter(place))
        for place, column in enumerate(
            (
                Column("Figure", "name"),
                Column("Now", "number"),
                Column("Previous audit", "number"),
                Column("Change", "number"),
                Column("A week ago", "number", "The newest audit that is at least a week old"),
                Column("Change in the week", "number"),
            )
        )
    ),
)
MUTED: Final[Sheet[ReportedFinding]] = Sheet(
    "muted",
    "Muted findings",
    "Not sent, and not counted above, until the mute ends. The policy document mutes them (audit.mute).",
    (
        name("About", lambda finding: finding.subject),
        text("Finding", lambda finding: sentence(words(finding.code))),
        Field(Column("Severity", "name"), lambda finding: _severity(finding.severity)),
        text("Why", lambda finding: finding.because, "long"),
        text("Muted because", lambda finding: finding.muted.reason if finding.muted else NOTHING, "long"),
        Field(
            Column("Until (UTC)", "name"),
            lambda finding: moment_cell(finding.muted.until) if finding.muted else (NOTHING, -1.0),
        ),
    ),
)
RESOLVED: Final[Sheet[KnownFinding]] = Sheet(
    "resolved",
    "Resolved since the last audit",
    "",
    (
        name("About", lambda finding: finding.subject),
        text("Finding", lambda finding: sentence(words(finding.code))),
        Field(Column("Severity", "name"), lambda finding: _severity(finding.severity)),
        text("Why it was found", lambda finding: finding.because, "long"),
        when("First found", lambda finding: finding.first_seen),
    ),
)
