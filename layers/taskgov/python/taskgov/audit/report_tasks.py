"""Which tasks does the report list? All that have not finished, as the Tasks tab of the console does."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from taskgov.audit.report import MOST_TASKS, TaskLine
from taskgov.estimates.given import GivenStart
from taskgov.usage.amounts import all_words
from taskgov.usage.tasks import Task, TaskState

Starts = Mapping[tuple[str, str], GivenStart]
"""Estimates of starts, by team and job."""
NO_STARTS: Final[Starts] = MappingProxyType({})


def task_lines(
    tasks: Iterable[Task], most: int = MOST_TASKS, starts: Starts = NO_STARTS
) -> tuple[tuple[TaskLine, ...], int]:
    """Return the tasks that have not finished, in their order, and how many are left out.

    Where there are more than `most`, those that wait or were preempted are kept before those that run.
    """
    unfinished = [task for task in tasks if task.state is not TaskState.FINISHED]
    kept = _kept(unfinished, most)
    return tuple(_line(task, starts.get((task.team, task.job))) for task in kept), len(unfinished) - len(kept)


def _kept(tasks: Sequence[Task], most: int) -> list[Task]:
    order = sorted(range(len(tasks)), key=lambda place: (tasks[place].state is TaskState.RUNNING, place))
    return [tasks[place] for place in sorted(order[:most])]


def _line(task: Task, start: GivenStart | None) -> TaskLine:
    return TaskLine(
        team=task.team,
        task=task.job,
        kind=task.kind,
        priority_class=task.priority_class or "",
        priority=task.priority,
        state=task.state,
        since=task.since,
        created=task.created,
        instance_types=task.instance_types,
        asks=all_words(task.leading),
        beyond_quota=all_words(task.beyond_quota) if task.beyond_quota else "",
        start=start,
    )
