"""`taskgov audit`: judge a cluster now, live or from a snapshot, with the report that the nightly audit writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.text import Text

from taskgov.audit.not_checked import TASKS
from taskgov.audit.report import report_json
from taskgov.audit.report_build import audit_report
from taskgov.audit.report_findings import resolved_table, trend_note, trend_table
from taskgov.audit.report_html import headline, report_html, worst_severity
from taskgov.findings import Severity
from taskgov.number_text import counted, number
from taskgov.services.advise_quotas import kept_advice
from taskgov.services.audit_cluster import earlier_audits
from taskgov.services.kept_starts import task_starts
from taskgov.services.series_cap import series_findings
from taskgov_cli import live_reading, snapshots
from taskgov_cli.files import put
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, unfolded
from taskgov_cli.grid import table
from taskgov_cli.output import NO, OK, SEVERITY_STYLE, AsJson, findings_table, working

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from taskgov.audit.report import Report
    from taskgov.audit.report_table import Table

DIFFERENCES: Final = (3, 5)
"""Columns of the trend in which differences are."""
FailOn = Literal["never", "info", "warning", "error", "incident"]


def audit(  # noqa: PLR0913 - the options of a command
    snapshot: snapshots.SnapshotFile = None,
    policy: snapshots.PolicyFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the report as HTML and JSON, or FILE.html for the page alone."),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="End with exit code 1 if a finding is at least this severe.")
    ] = "error",
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Audit a cluster now: each finding with evidence and remedy, and the report of the nightly audit.

    Nothing is written, neither to the cluster nor to the stack. --policy replaces the document in force;
    --stack compares with the audits of that stack.

    Example: taskgov audit --cluster ml-cluster --stack taskgov -o reports --fail-on warning
    """
    stack = snapshots.stack_of(stack, cluster, snapshot)
    known = snapshots.known(snapshot, cluster, policy, stack, context)
    with snapshots.reported(), working("judging"):
        memory = live_reading.documents_of(stack)
        name = known.cluster.name
        cut = series_findings(memory, name, known.taken_at)
        starts, advised = task_starts(memory, known), kept_advice(memory, known)
        advice = () if advised is None else advised.advice
        report = audit_report(
            known,
            earlier_audits(memory, name),
            beside=cut,
            starts=starts,
            advice=advice,
            document=str(policy or ""),
        )
    files = [] if output is None else write(report, output)
    parts = (*shown(report), *(unfolded(f"written: {file}") for file in files))
    answer(lambda: json.loads(report_json(report)), parts, form, as_json=as_json)
    raise typer.Exit(NO if fails(report, fail_on) else OK)


def write(report: Report, output: Path) -> list[Path]:
    """Write the report and return the paths: the page alone where `output` ends in .html, else both in that folder.

    In a folder, page and data are named by cluster and moment as in the bucket. Beside a page that is named, nothing
    is written: a file with its name and .json may be somebody's.
    """
    if output.suffix.lower() == ".html" and not output.is_dir():
        contents = {output: report_html(report)}
    else:
        stem = f"{report.header.cluster_name}-{report.header.taken_at:%Y-%m-%dT%H%M%SZ}"
        contents = {output / f"{stem}.html": report_html(report), output / f"{stem}.json": report_json(report)}
    for file, body in contents.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        put(file, body)
    return list(contents)


def fails(report: Report, fail_on: FailOn) -> bool:
    """Return whether the report has a finding that is as severe as `fail_on`, or more."""
    order = list(Severity)
    worst = worst_severity(report.findings)
    return fail_on != "never" and worst is not None and order.index(worst) >= order.index(Severity(fail_on))


def shown(report: Report) -> Iterator[RenderableType]:
    """Return the report in short: what needs a person, the key figures, and every finding."""
    head = report.header
    worst = worst_severity(report.findings)
    style = SEVERITY_STYLE[worst] if worst else "green"
    yield Text.assemble((head.cluster_name, "bold"), f", {head.taken_at:%Y-%m-%d %H:%M:%S} UTC: ", (worst or "", style))
    yield Text(f"  {headline(report)}")
    yield Text(f"  {_figures(report)}")
    yield findings_table(report.findings, main=True)
    if not report.findings:
        yield Text("  No findings.", style="green")
    if report.trend.previous:
        yield from _trend(report)


def _trend(report: Report) -> Iterator[RenderableType]:
    """Return what differs from earlier audits: figures, new findings, and those that are gone."""
    yield Text(trend_note(report), style="bold")
    for finding in report.findings:
        if finding.is_new:
            yield Text(f"  new: {finding.severity} {finding.code}, {finding.subject}")
    figures = trend_table(report)
    moved = [row for row in figures.lines if any(row[at][1] for at in DIFFERENCES)]
    yield from (_table(part) for part in (replace(figures, lines=tuple(moved)), resolved_table(report)) if part.lines)


def _table(shown: Table) -> RenderableType:
    """Return a table of the report; what is a number there is one here."""
    columns = [f"{column.label} #" if column.kind == "number" else column.label for column in shown.columns]
    return table(shown.title, columns, [[text for text, _ in row] for row in shown.rows])


def _figures(report: Report) -> str:
    totals = report.totals
    if any(left.part == TASKS for left in report.not_checked):
        return f"{totals.unit}: {number(totals.healthy)} healthy."
    names = ("healthy", "guaranteed", "used", "borrowed", "idle", "over_quota")
    amounts = ", ".join(f"{number(getattr(totals, name))} {name.replace('_', ' ')}" for name in names)
    waiting = counted(totals.pending_workloads, "workload waits", "workloads wait")
    return f"{totals.unit}: {amounts}. {waiting}, {counted(totals.preemptions, 'preemption')} recorded."
