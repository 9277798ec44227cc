"""`taskgov jobs`: every task, as the Tasks tab of the SageMaker console shows it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import boto3
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from taskgov.number_text import counted, duration
from taskgov.ports import ClusterAccess
from taskgov.usage.amounts import all_words
from taskgov.usage.tasks import Task, TaskState, tasks_of
from taskgov_cli import live_reading, snapshots
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.grid import table
from taskgov_cli.kept_starts import STARTS, starts_by_task, starts_of
from taskgov_cli.mine import SUBMITTED_BY, mine_of
from taskgov_cli.output import AsJson, console, jsonable
from taskgov_cli.own_rights import OwnRights, namespaces_of
from taskgov_explain.find import nearest
from taskgov_explain.own_view import LISTING_NEEDS, beyond_quota_unknown, not_visible, visible_teams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from rich.console import RenderableType

    from taskgov.estimates.given import GivenStart
    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.mine import Mine

STYLES = {
    TaskState.RUNNING: "green",
    TaskState.WAITING_FOR_NODES: "yellow",
    TaskState.PENDING: "yellow",
    TaskState.PREEMPTED: "red",
    TaskState.SUSPENDED: "dim",
    TaskState.FINISHED: "dim",
}


def jobs(  # noqa: PLR0913 - the options of a command
    snapshot: snapshots.SnapshotFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    team: snapshots.Teams = None,
    state: Annotated[
        list[TaskState] | None,
        typer.Option("--state", help="Only tasks in this state; may be repeated. By default all but finished ones."),
    ] = None,
    every: Annotated[float, typer.Option(min=1, help="With --watch: seconds between two reads.")] = 10,
    *,
    mine: Annotated[
        bool, typer.Option("--mine", help="Only your own: jobs that name you in an annotation, taskgov/submitted-by.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """List tasks with team, kind, priority, state, request and use beyond quota. `explain` takes their names.

    A member of a team without wider rights sees the tasks of that team, and what is not visible.

    Example: taskgov jobs --cluster ml-cluster --team team-a --state pending --state preempted
    """
    if watch and (snapshot is not None or as_json or form is not Form.TABLE):
        raise typer.BadParameter("--watch reads a live cluster: give --cluster, without --json and --format")

    if mine and cluster is None:
        raise typer.BadParameter("--mine needs a live cluster to identify you: give --cluster")
    states = state or [task_state for task_state in TaskState if task_state != TaskState.FINISHED]

    def look() -> Listed:
        of_stack = snapshots.stack_of(stack, cluster, snapshot, needs_records=False)
        rights = OwnRights(namespaces_of(team or ()))
        known = snapshots.known(snapshot, cluster, None, of_stack, context, rights)
        own = _mine(known, context) if mine else None
        starts = starts_by_task(starts_of(of_stack, known), known)
        return Listed(known, _chosen(known, team or [], states, own), beyond_quota_unknown(known), own, starts)

    if watch:
        _watch(lambda: Group(*_shown(look())), every)
        return
    listed = look()
    answer(lambda: as_data(listed), _shown(listed), form, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Listed:
    """What is listed."""

    snapshot: Snapshot
    tasks: list[Task]
    unknown: frozenset[tuple[str, str]]
    """Tasks (team and job) of which it is not visible whether they hold anything beyond quota."""
    mine: Mine | None
    starts: Mapping[tuple[str, str], GivenStart] | None
    """By team and job: the estimates that the stack keeps; None where it keeps none."""

    @property
    def not_visible(self) -> tuple[str, ...]:
        """What the person's rights do not show."""
        hidden = [task for task in self.tasks if self.beyond_quota(task) is None]
        more = (
            "what the tasks marked ? hold beyond quota: their team's quota, or another task that uses it, is not shown",
        )
        return (*not_visible(self.snapshot, LISTING_NEEDS), *(more if hidden else ()))

    def start_of(self, task: Task) -> GivenStart | None:
        """Return the estimate of a task. Names may come again: one that has finished has none."""
        return None if task.state is TaskState.FINISHED else (self.starts or {}).get((task.team, task.job))

    def beyond_quota(self, task: Task) -> Mapping[str, int] | None:
        """Return what a task holds beyond its team's quota; None where that is not visible."""
        return None if (task.team, task.job) in self.unknown else task.beyond_quota


def _mine(known: Snapshot, context: str | None) -> Mine:
    with snapshots.reported():
        connections = live_reading.connections_of(boto3.Session(), context)
        return mine_of(connections, ClusterAccess(known.cluster.eks_arn or known.cluster.arn), known.kueue.workloads)


def as_data(listed: Listed) -> dict[str, Any]:
    """Return the tasks for programs; amounts in base units, `beyondQuota` null where it is not visible."""
    tasks = [
        jsonable(task) | {"beyondQuota": listed.beyond_quota(task)} | _start(listed, task) for task in listed.tasks
    ]
    head = {"cluster": listed.snapshot.cluster.name, "takenAt": listed.snapshot.taken_at, "tasks": tasks}
    if listed.not_visible:
        head["notVisible"] = listed.not_visible
    if listed.mine is not None:
        head["mine"] = {
            "username": listed.mine.username,
            "tasksThatNameNobody": listed.mine.unowned,
            "kindsNotVisible": listed.mine.unseen,
        }
    return head


def _start(listed: Listed, task: Task) -> dict[str, Any]:
    """Return the member `start` of a task: its estimate, null where none is kept of it."""
    return {} if listed.starts is None else {"start": jsonable(listed.start_of(task))}


def _chosen(snapshot: Snapshot, teams: list[str], states: list[TaskState], mine: Mine | None) -> list[Task]:
    """Return the tasks of these teams and in these states. Raises `typer.BadParameter` for an unknown team."""
    tasks = tasks_of(snapshot)
    known = {task.team for task in tasks} | visible_teams(snapshot)
    for team in teams:
        if team not in known:
            raise typer.BadParameter(f"there is no team named {team}; {nearest(team, known)}", param_hint="--team")
    if mine is not None:
        tasks = tuple(mine.chosen(tasks))
    return [task for task in tasks if task.state in states and (not teams or task.team in teams)]


def _shown(listed: Listed) -> Iterator[RenderableType]:
    now = listed.snapshot.taken_at
    rows: list[tuple[str | Text, ...]] = [_row(task, listed.beyond_quota(task), now) for task in listed.tasks]
    columns: tuple[str, ...]
    columns = ("team", "task", "kind", "priority", "state", "for", "instance type", "requests", "beyond quota", "age")
    if listed.starts is not None:
        columns = (*columns, STARTS)
        given = [listed.start_of(task) for task in listed.tasks]
        rows = [(*row, start.cell(now) if start else "") for row, start in zip(rows, given, strict=True)]
    counts = ", ".join(_counted(listed.tasks)) or "no tasks"
    head = Text.assemble((listed.snapshot.cluster.name, "bold"), f", {now:%Y-%m-%d %H:%M:%S} UTC: {counts}")
    yield head
    yield table("", columns, rows)
    yield from _whose(listed.mine)
    yield from snapshots.hidden_words(listed.not_visible)


def _whose(mine: Mine | None) -> Iterator[Text]:
    """Say by what name the caller was looked for, and what may be the caller's anyway."""
    if mine is None:
        return
    yield Text(f"Yours: submitted by {mine.username}", style="dim")
    if mine.unowned:
        few = counted(mine.unowned, "other task has", "other tasks have")
        yield Text(f"  {few} no submitter (no annotation {SUBMITTED_BY})", style="dim")
    for kind in mine.unseen:
        yield Text(f"  whose each {kind} is, is not visible with your rights", style="dim")


def _row(task: Task, beyond_quota: Mapping[str, int] | None, now: datetime) -> tuple[str | Text, ...]:
    priority = f"{task.priority_class} ({task.priority})" if task.priority_class else str(task.priority)
    return (
        task.team,
        task.job,
        task.kind,
        priority,
        Text(task.state, style=STYLES[task.state]),
        duration((now - task.since).total_seconds()),
        ", ".join(task.instance_types),
        all_words(task.leading),
        "?" if beyond_quota is None else all_words(beyond_quota) if beyond_quota else "",
        duration((now - task.created).total_seconds()),
    )


def _counted(tasks: list[Task]) -> Iterator[str]:
    for state in TaskState:
        if number := sum(task.state is state for task in tasks):
            yield f"{number} {state}"


def _watch(shown: Callable[[], RenderableType], every: float) -> None:
    """Show it again and again until Ctrl-C, in place on a terminal."""
    screen = console()
    if not screen.is_terminal:
        raise typer.BadParameter("--watch needs a terminal; without it, the command prints the list once")
    with Live(shown(), console=screen, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(shown(), refresh=True)
        except KeyboardInterrupt:
            return
