"""`taskgov explain`: plain answers about one workload or one team, for people and for programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from taskgov.allocation.loaded import loaded_from
from taskgov.allocation.wording import said_number
from taskgov.quantities import format_quantity
from taskgov.scheduling.unmodelled import words_of
from taskgov.usage.amounts import all_words
from taskgov_cli import durations, snapshots
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.grid import table
from taskgov_cli.keeping import kept_to_the_end
from taskgov_cli.kept_starts import starts_of
from taskgov_cli.lease_table import leases_table
from taskgov_cli.output import AsJson, findings_table
from taskgov_cli.own_rights import OwnRights, namespaces_of
from taskgov_cli.status import print_own_team
from taskgov_explain.find import UnknownNameError
from taskgov_explain.own_view import EXPLAINING_NEEDS, sees_all
from taskgov_explain.own_workload import explain_own_workload
from taskgov_explain.reasons import ESTIMATED, Reason
from taskgov_explain.workload import explain_workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from rich.console import RenderableType

    from taskgov.snapshot.model import Snapshot
    from taskgov_explain.team import QuotaLine, TeamExplanation
    from taskgov_explain.workload import WorkloadExplanation

RUNNING, STUCK = frozenset({Reason.ADMITTED, Reason.FINISHED}), frozenset(list(Reason)[1:7])
"""Reasons of which nothing is wrong, and those that time alone does not fix."""


def explain(  # noqa: PLR0913, PLR0917 - the options of a command
    workload: Annotated[
        str | None,
        typer.Argument(metavar="JOB", help="Job or workload: NAME, TEAM/NAME or NAMESPACE/NAME.", show_default=False),
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", "-t", help="A team; with a workload, the team of the workload.")
    ] = None,
    snapshot: snapshots.SnapshotFile = None,
    policy: snapshots.PolicyFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    runs: durations.Runs = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Explain why a job waits, was preempted or runs where it does, or why a team has its quota.

    Example: taskgov explain team-b/training --snapshot ml-cluster.json
    """
    if workload is None and team is None:
        raise typer.BadParameter("give a workload, or --team NAME")
    if workload is not None and team is not None:
        workload = workload if "/" in workload else f"{team}/{workload}"
    whose = [team] if team else [str(workload).partition("/")[0]] if "/" in str(workload) else []
    stack = snapshots.stack_of(stack, cluster, snapshot, needs_records=False)
    known = snapshots.known(snapshot, cluster, None, stack, context, OwnRights(namespaces_of(whose)))
    if policy is not None:
        from taskgov_cli import documents  # noqa: PLC0415 - the rules of documents, for those who give one

        known = documents.valid_in_force(known, policy)
    try:
        if workload is not None:
            of_one = _of_workload(known, workload, runs)
            if snapshot is None and not runs and of_one.reason in ESTIMATED:
                of_one = replace(of_one, start=(starts_of(stack, known) or {}).get(of_one.key))
            answer(lambda: of_one, workload_shown(of_one, known.taken_at), form, as_json=as_json)
        elif sees_all(known, EXPLAINING_NEEDS):
            from taskgov_explain.team import explain_team  # noqa: PLC0415 - only a team's answer makes a plan

            of_team = explain_team(known, str(team))
            answer(lambda: of_team, team_shown(of_team), form, as_json=as_json)
        else:
            print_own_team(known, str(team), form, as_json=as_json)
    except UnknownNameError as error:
        raise typer.BadParameter(str(error)) from error


def _of_workload(known: Snapshot, workload: str, runs: list[str] | None) -> WorkloadExplanation:
    if sees_all(known, EXPLAINING_NEEDS):
        told = durations.run_times(known, runs)
        with kept_to_the_end():
            loaded_from(known, known.instance_types)  # the answer takes this model, which goes with the snapshot
        return explain_workload(known, workload, told)
    return explain_own_workload(known, workload)


def workload_shown(answer: WorkloadExplanation, now: datetime) -> Iterator[RenderableType]:
    """Return the answer about a workload for people: the reason first, then what is behind it."""
    style = "green" if answer.reason in RUNNING else "red" if answer.reason in STUCK else "yellow"
    yield Text.assemble((answer.workload, "bold"), ": ", (answer.reason.value, style))
    yield Text(f"  {answer.because}")
    yield from (Text(f"  {sentence}.") for sentence in answer.borrowing)
    yield Text(f"  Requests {all_words(answer.asks)}; in this state since {answer.since:%Y-%m-%d %H:%M}.")
    yield from (Text(f"  It was {sentence}.", style="yellow") for sentence in answer.history)
    if answer.uncertain:
        said = "It may be preempted, not certain" if answer.may_be_preempted else "What follows is not certain"
        yield Text(f"  {said}: {words_of(answer.uncertain)}.", style="yellow")
    if answer.next_step:
        yield Text(f"  Next step: {answer.next_step}.")
    if answer.remedies:
        yield table("Ways to start it", ("by", "change"), [(remedy.kind, remedy.because) for remedy in answer.remedies])
    if answer.start is not None:
        yield Text(f"Starts {answer.start.sentence(now)} UTC (estimated; taskgov when says more)")
    if answer.earliest_because:
        why = answer.earliest_because
        yield Text(f"Earliest start: {f'{answer.earliest:%Y-%m-%d %H:%M} ({why})' if answer.earliest else why}")
    if answer.risks:
        rows = [
            (risk.lender, risk.instance_type, format_quantity(risk.resource, risk.size), risk.reason)
            for risk in answer.risks
        ]
        yield table("It is preempted when", ("lender", "of its unused", "submits #", "reason"), rows)
    if answer.holders:
        yield _holders(answer)
    if answer.leases:
        yield leases_table(answer.leases)
    if answer.kueue_says.rstrip(".") not in answer.because:
        yield Text(f"Kueue's message: {answer.kueue_says}", style="dim")
    yield from (Text(f"Not modelled: {sentence}", style="dim") for sentence in answer.not_modelled)
    yield from snapshots.hidden_words(answer.not_visible)


def _holders(answer: WorkloadExplanation) -> RenderableType:
    over_quota = any(holder.over_quota for holder in answer.holders)
    rows = []
    for holder in answer.holders:
        beyond = (holder.borrowed, holder.over_quota) if over_quota else (holder.borrowed,)
        numbers = (holder.guaranteed, holder.used, *beyond, holder.lent, holder.idle)
        jobs = ", ".join(
            f"{workload.workload} {format_quantity(holder.resource, workload.amount)}"
            for workload in holder.workloads[:6]
        )
        more = f", {len(holder.workloads) - 6} more" if len(holder.workloads) > 6 else ""
        amounts = (format_quantity(holder.resource, number) for number in numbers)
        rows.append((holder.team, holder.instance_type, holder.resource, *amounts, jobs + more))
    beyond_columns = ("borrowed #", "over quota #") if over_quota else ("borrowed #",)
    columns = (
        "team",
        "instance type",
        "resource",
        "quota #",
        "used #",
        *beyond_columns,
        "lent #",
        "idle #",
        "workloads",
    )
    return table("Who holds what", columns, rows, main=True)


def team_shown(answer: TeamExplanation) -> Iterator[RenderableType]:
    """Return the answer about a team for people."""
    yield Text.assemble((answer.team, "bold"), ": ", answer.governed)
    yield Text(f"  {answer.sharing}. {answer.pending}")
    if answer.quotas:
        columns = ("instance type", "unit", "today #", "planned #", "because")
        yield table("Why this quota", columns, _why_quota(answer.quotas), main=True)
        sources = [
            (line.instance_type, line.unit, _signed(source.amount), source.origin)
            for line in answer.quotas
            for source in line.sources
        ]
        yield table("Where each unit comes from", ("instance type", "unit", "amount #", "from"), sources)
    if answer.shares:
        yield table(
            "Why this share",
            ("instance type", "resource", "because"),
            [(share.instance_type, share.resource, share.because) for share in answer.shares],
        )
    if answer.findings:
        yield findings_table(answer.findings)


def _why_quota(lines: Iterable[QuotaLine]) -> Iterator[tuple[str, ...]]:
    for line in lines:
        yield line.instance_type, line.unit, said_number(line.before), said_number(line.after), line.because


def _signed(amount: float) -> str:
    return ("+" if amount > 0 else "") + said_number(amount)
