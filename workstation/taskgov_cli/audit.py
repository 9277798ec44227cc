"""`taskgov audit`: judge a cluster now, live or from a snapshot, with the report that the nightly audit writes."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from taskgov.audit.report import report_json
from taskgov.audit.report_build import audit_report
from taskgov.audit.report_html import headline, report_html, worst_severity
from taskgov.audit.report_text import counted, number
from taskgov.findings import Severity
from taskgov_cli import snapshots
from taskgov_cli.output import NO, OK, SEVERITY_STYLE, console, findings_table, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from taskgov.audit.report import Report, Totals

FailOn = Literal["never", "info", "warning", "error", "incident"]


def audit(  # noqa: PLR0913 -- options are named by whoever types them
    snapshot: snapshots.SnapshotFile = None,
    policy: snapshots.PolicyFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", file_okay=False, help="Folder for the report: an HTML page, and the same as JSON."
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="End with exit code 1 when a finding is so severe, or more.")
    ] = "error",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, for programs.")] = False,
) -> None:
    """Judge a cluster now: every finding with its evidence and its remedy, and the report of the nightly audit.

    Nothing is written to the cluster. With --policy as if that document were in force.

    Example: taskgov audit --cluster ml-cluster --stack taskgov -o reports --fail-on warning
    """
    report = audit_report(snapshots.known(snapshot, cluster, policy, stack, context))
    files = [] if output is None else write(report, output)
    if as_json:
        print_json(json.loads(report_json(report)))
    else:
        for part in shown(report):
            console().print(part)
        for file in files:
            console().print(f"written: {file}", soft_wrap=True, markup=False)
    raise typer.Exit(NO if fails(report, fail_on) else OK)


def write(report: Report, folder: Path) -> list[Path]:
    """Write the page and the data, named by cluster and moment as in the bucket; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.header.cluster_name}-{report.header.taken_at:%Y-%m-%dT%H%M%SZ}"
    contents = {"html": report_html(report), "json": report_json(report)}
    files = [folder / f"{stem}.{form}" for form in contents]
    for file, body in zip(files, contents.values(), strict=True):
        file.write_bytes(body)
    return files


def fails(report: Report, fail_on: FailOn) -> bool:
    """Tell whether the report has a finding that is as severe as `fail_on`, or more."""
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
    yield Text(f"  {_figures(report.totals)}")
    yield findings_table(report.findings) if report.findings else Text("  No findings.", style="green")


def _figures(totals: Totals) -> str:
    names = ("healthy", "guaranteed", "used", "borrowed", "idle", "over_quota")
    amounts = ", ".join(f"{number(getattr(totals, name))} {name.replace('_', ' ')}" for name in names)
    waiting = counted(totals.pending_workloads, "workload waits", "workloads wait")
    return f"{totals.unit}: {amounts}. {waiting}, {counted(totals.preemptions, 'preemption')} remembered."
