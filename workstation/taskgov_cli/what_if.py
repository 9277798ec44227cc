"""`taskgov what-if`: suppose that the cluster were otherwise, and see the plan and what the scheduler would do."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from taskgov.number_text import counted
from taskgov.quantities import format_quantity
from taskgov.scheduling.unmodelled import words_of
from taskgov.usage.amounts import words
from taskgov_cli import documents, durations, snapshots, supposing
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.grid import table
from taskgov_cli.keeping import kept_to_the_end
from taskgov_cli.lease_table import leases_table
from taskgov_cli.output import AsJson, findings_table, working
from taskgov_explain.find import UnknownNameError
from taskgov_explain.suppose import suppose
from taskgov_explain.what_if import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.console import RenderableType

    from taskgov.allocation.loops import Loop
    from taskgov_explain.courses import Course
    from taskgov_explain.risk import Risk
    from taskgov_explain.what_if import TeamDifference, WhatIf, WorkloadDifference


def what_if_command(  # noqa: PLR0913, PLR0917 - the options of a command
    snapshot: snapshots.SnapshotFile = None,
    lose_nodes: Annotated[
        list[str] | None, typer.Option("--lose-nodes", metavar="NxTYPE", help="Healthy nodes that leave. Repeat.")
    ] = None,
    add_nodes: Annotated[
        list[str] | None, typer.Option("--add-nodes", metavar="NxTYPE", help="Healthy nodes that join. Repeat.")
    ] = None,
    set_quota: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="TEAM.TYPE[:PART]=N",
            help="A quota of N whole instances, or of a part: accelerators, vcpu, memoryInGiB, mig-PROFILE. Repeat.",
        ),
    ] = None,
    weight: Annotated[
        list[str] | None, typer.Option("--weight", metavar="TEAM=N", help="A fair-share weight, 0 to 100. Repeat.")
    ] = None,
    submit: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="Manifest of a job that is submitted now (YAML). Repeat."),
    ] = None,
    as_team: Annotated[str | None, typer.Option("--as", metavar="TEAM", help="The team that submits.")] = None,
    policy: snapshots.PolicyFile = None,
    runs: durations.Runs = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Predict the plan and the jobs after a change of nodes, quotas, weights, jobs or policy.

    Example: taskgov what-if -s ml-cluster.json --lose-nodes 2xml.g5.8xlarge --set team-a.ml.g5.8xlarge=2
    """
    now = snapshots.known(snapshot, cluster, None, snapshots.stack_of(stack, cluster, snapshot), context)
    wanted = now if policy is None else documents.valid_in_force(now, policy)
    try:
        typed = supposing.Typed(lose_nodes or [], add_nodes or [], set_quota or [], weight or [])
        hypothesis = supposing.hypothesis(wanted, typed, supposing.submitted(submit or [], wanted, as_team))
        with working("supposing"), kept_to_the_end():
            supposed = suppose(wanted, hypothesis)
            whole = as_json or form in {Form.JSON, Form.YAML}
            supposed_then = what_if(now, supposed, durations.run_times(supposed, runs), with_digest=whole)
    except (UnknownNameError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    answer(lambda: supposed_then, shown(supposed_then), form, as_json=as_json)


def shown(answer: WhatIf) -> Iterator[RenderableType]:
    """Return the answer for people: quotas, teams side by side, work that is touched, risks."""
    yield Text.assemble(("What if", "bold"), f": {_summary(answer)}")
    yield from (Text(f"At least this: {sentence}", style="bold yellow") for sentence in answer.not_settled)
    if answer.quotas:
        rows = [(quota.team or quota.name, quota.because) for quota in answer.quotas]
        yield table("Quotas that the plan would change", ("team", "because"), rows)
    stopped = [(verdict.guardrail, verdict.because) for verdict in answer.plan.guardrails if not verdict.passed]
    if stopped:
        yield table("The plan would be stopped by", ("guardrail", "because"), stopped)
    yield _teams(answer.teams)
    if answer.leases:
        yield leases_table(answer.leases)
    touched = [workload for workload in answer.workloads if workload.differs]
    if touched:
        yield _workloads(touched)
    if answer.courses:
        yield _courses(answer.courses)
    for short in answer.shortfalls:
        held, offered = words(short.resource, short.held), words(short.resource, short.offered)
        sentence = f"Admitted work holds {held} of {short.instance_type}, but healthy nodes offer {offered}"
        yield Text(f"{sentence}: some pods will wait.", style="yellow")
    if answer.risks:
        yield _risks(answer.risks)
    if answer.loops:
        yield Text(f"These workloads would preempt each other forever: {', '.join(answer.loops)}", style="bold red")
    if answer.loop:
        yield from _ends(answer.loop)
    if answer.plan.findings:
        yield findings_table(answer.plan.findings)
    yield from (Text(f"Not modelled: {sentence}", style="dim") for sentence in answer.not_modelled)


def _ends(loop: Loop) -> Iterator[RenderableType]:
    """Return what ends a loop, a line for each remedy."""
    if not loop.remedies:
        yield Text(f"  {loop.advice}")
    for remedy in loop.remedies:
        then = f" (then waits: {', '.join(remedy.waiting)})" if remedy.waiting else ""
        yield Text(f"  It ends in the model with {remedy.words}{then}")


def _summary(answer: WhatIf) -> str:
    """Return one line: how many quotas change, and the effect on work."""
    moves = [(workload.before, workload.after) for workload in answer.workloads if workload.differs]
    starts = sum(after == "runs" and before != "runs" for before, after in moves)
    waits = sum(after == "waits" and before != "waits" for before, after in moves)
    preempted = sum(bool(workload.preempted_by) for workload in answer.workloads)
    return (
        f"{counted(len(answer.quotas), 'quota changes', 'quotas change')}; "
        f"{counted(starts, 'more workload starts', 'more workloads start')}, "
        f"{waits} more {'waits' if waits == 1 else 'wait'}, {preempted} {_are(preempted)} preempted"
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _teams(teams: tuple[TeamDifference, ...]) -> RenderableType:
    over_quota = any(side.over_quota for team in teams for side in (team.before, team.after))
    names = ("quota", "used", "borrowed", *(("over_quota",) if over_quota else ()), "lent")
    rows = []
    for team in teams:
        pairs = [(getattr(team.before, name), getattr(team.after, name)) for name in names]
        amounts = [_arrow(*(format_quantity(team.resource, amount) for amount in pair)) for pair in pairs]
        waiting = _arrow(str(team.before.pending), str(team.after.pending))
        rows.append((team.team, team.instance_type, team.resource, *amounts, waiting))
    numbers = (f"{name.replace('_', ' ')} #" for name in (*names, "waiting"))
    columns = ("team", "instance type", "resource", *numbers)
    return table("Teams, before -> after, when nothing more happens", columns, rows, main=True)


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def _workloads(touched: list[WorkloadDifference]) -> RenderableType:
    rows = [
        (
            workload.workload,
            workload.gpus,
            workload.now,
            workload.before,
            workload.after,
            _then(workload),
        )
        for workload in touched
    ]
    return table("Workloads", ("workload", "GPUs #", "now", "as it is", "then", ""), rows)


def _then(workload: WorkloadDifference) -> str:
    """Return who preempts a workload, and whether its fate is certain."""
    said = f"preempted by {workload.preempted_by} ({workload.because})" if workload.preempted_by else ""
    said = "may be preempted" if workload.may_be_preempted else said
    unsure = f"not certain: {words_of(workload.uncertain)}" if workload.uncertain else ""
    return ", ".join(filter(None, (said, unsure)))


def _courses(courses: tuple[Course, ...]) -> RenderableType:
    rows = [
        (
            course.workload,
            _arrow(_time(course.starts_before), _time(course.starts_after)),
            _arrow(_time(course.ends_before), _time(course.ends_after)),
            _arrow(str(course.preemptions_before), str(course.preemptions_after)),
        )
        for course in courses
    ]
    return table("Over time, with the known run times", ("workload", "starts", "ends", "preempted #"), rows)


def _risks(risks: tuple[Risk, ...]) -> RenderableType:
    rows = [
        (risk.workload, risk.lender, risk.instance_type, format_quantity(risk.resource, risk.size), risk.reason)
        for risk in risks
    ]
    title = "At risk: preempted if the lender submits this much within its quota"
    return table(title, ("workload", "lender", "instance type", "submits #", "reason"), rows)


def _time(at: datetime | None) -> str:
    return f"{at:%m-%d %H:%M}" if at else "never"
