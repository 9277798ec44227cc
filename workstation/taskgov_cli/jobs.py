"""`taskgov jobs`: every task, as the Tasks tab of the SageMaker console shows it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_jsonable_python
from rich.console import Group
from rich.live import Live
from rich.text import Text

from taskgov.audit.report_text import duration
from taskgov.explain.find import nearest
from taskgov.usage.amounts import all_words
from taskgov.usage.tasks import Task, TaskState, tasks_of
from taskgov_cli import snapshots
from taskgov_cli.output import console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from rich.console import RenderableType

    from taskgov.snapshot.model import Snapshot

STYLES = {
    TaskState.RUNNING: "green",
    TaskState.WAITING_FOR_NODES: "yellow",
    TaskState.PENDING: "yellow",
    TaskState.PREEMPTED: "red",
    TaskState.SUSPENDED: "dim",
    TaskState.FINISHED: "dim",
}


def jobs(  # noqa: PLR0913 -- options are named by whoever types them
    snapshot: snapshots.SnapshotFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    team: Annotated[
        list[str] | None, typer.Option("--team", "-t", help="Only this team's; may be repeated.", metavar="TEAM")
    ] = None,
    state: Annotated[
        list[TaskState] | None,
        typer.Option("--state", help="Only tasks in this state; may be repeated. By default all but finished ones."),
    ] = None,
    every: Annotated[float, typer.Option(min=1, help="Seconds between two looks with --watch.")] = 10,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON, for programs.")] = False,
) -> None:
    """List tasks: team, kind, priority, state, what each asks for and borrows. `explain` takes a name from it.

    Example: taskgov jobs --cluster ml-cluster --team team-a --state pending --state preempted
    """
    if watch and (snapshot is not None or as_json):
        raise typer.BadParameter("--watch looks at a live cluster and prints a table: give --cluster, without --json")

    def look() -> tuple[Snapshot, list[Task]]:
        known = snapshots.known(snapshot, cluster, None, stack, context)
        return known, _chosen(known, team or [], state or [each for each in TaskState if each != TaskState.FINISHED])

    if watch:
        _watch(lambda: _shown(*look()), every)
        return
    known, tasks = look()
    if as_json:
        print_json(as_data(known, tasks))
    else:
        console().print(_shown(known, tasks))


def as_data(snapshot: Snapshot, tasks: list[Task]) -> dict[str, Any]:
    """Return the tasks for programs; amounts in base units."""
    head = {"cluster": snapshot.cluster.name, "takenAt": snapshot.taken_at, "tasks": tasks}
    return to_jsonable_python(head)  # type: ignore[no-any-return]


def _chosen(snapshot: Snapshot, teams: list[str], states: list[TaskState]) -> list[Task]:
    """Return the tasks of these teams and in these states. Raises `typer.BadParameter` for an unknown team."""
    tasks = tasks_of(snapshot)
    known = {task.team for task in tasks} | {each.compute_quota_target.team_name for each in snapshot.quotas}
    for team in teams:
        if team not in known:
            raise typer.BadParameter(f"no team is called {team}; {nearest(team, known)}", param_hint="--team")
    return [task for task in tasks if task.state in states and (not teams or task.team in teams)]


def _shown(snapshot: Snapshot, tasks: list[Task]) -> RenderableType:
    now = snapshot.taken_at
    rows = [_row(task, now) for task in tasks]
    columns = ("team", "task", "kind", "priority", "state", "for", "instance type", "asks for", "borrowed", "age")
    counts = ", ".join(_counted(tasks)) or "no tasks"
    head = Text.assemble((snapshot.cluster.name, "bold"), f", {now:%Y-%m-%d %H:%M:%S} UTC: {counts}")
    return Group(head, table("", columns, rows)) if rows else head


def _row(task: Task, now: datetime) -> tuple[str | Text, ...]:
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
        all_words(task.borrowed) if task.borrowed else "",
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
