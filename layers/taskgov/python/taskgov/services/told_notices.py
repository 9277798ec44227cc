"""The forms of a notice: plain text for mail, and JSON in the format of AWS's chat clients.

Nothing of a job's content is in either: its name, kind, team and priority class, what it requests, and why. What
strangers named is shown by its escape where it is not seen; in chat it stands between backticks, so that no name is
taken for a link, a mention or an emphasis.

The chat form is "Custom notifications" of the administrator guide of Amazon Q Developer in chat applications (before:
AWS Chatbot), schema version 1.0. The lengths are ours, far below what Slack and Teams show: the page names none.
"""

from datetime import UTC, datetime
from typing import Any, Final

from taskgov.contracts.task_events import TaskEvent, TaskPreempted, TaskWaiting, TeamStarved
from taskgov.number_text import counted
from taskgov.policy.notices import Occasion
from taskgov.printable import printable
from taskgov.quantities import parse
from taskgov.services.told_memory import Held
from taskgov.usage.amounts import all_words, words
from taskgov.usage.workloads import PREEMPTION_REASONS

TITLE_LIMIT: Final = 200
NAME_LIMIT: Final = 128
CHAT_LIMIT: Final = 3_500
"""Characters of the lines in a chat message; Slack cuts a block of text at 3,000 to 4,000."""


def subject(held: Held, cluster: str, team: str) -> str:
    """Return what a notice is about in one line."""
    return printable(f"taskgov: {team} on {cluster}: {_summary(held)}", limit=TITLE_LIMIT)


def mail(held: Held, cluster: str, team: str, lines: int) -> str:
    """Return the text of a notice: at most so many events with their names, and the number of the others."""
    told = [printable(_line(event, _plain)) for event in held.events[:lines]]
    more = sum(held.counts.values()) - len(told)
    head = printable(f"Cluster {cluster}, team {team}")
    ask = printable(f"Why: {_question(held, cluster)}")
    return "\n".join([head, "", *told, *([f"and {more:,} more"] if more else []), "", ask])


def chat(held: Held, cluster: str, cluster_arn: str, team: str, lines: int) -> dict[str, Any]:
    """Return the custom notification, schema 1.0; `lines` as in `mail`, fewer where they would be too long."""
    told: list[str] = []
    length = 0
    for event in held.events[:lines]:
        line = f"- {_line(event, _code)}"
        length += len(line) + 1
        if length > CHAT_LIMIT:
            break
        told.append(line)
    more = sum(held.counts.values()) - len(told)
    return {
        "version": "1.0",
        "source": "custom",
        "id": held.events[0].id[:NAME_LIMIT],
        "content": {
            "textType": "client-markdown",
            "title": _escaped(f"{team} on {cluster}: {_summary(held)}")[:TITLE_LIMIT],
            "description": "\n".join([*told, *([f"and {more:,} more"] if more else [])]),
            "nextSteps": [f"See why: {_code(_question(held, cluster))}"],
            "keywords": [_escaped(cluster), _escaped(team)],
        },
        "metadata": {
            "threadId": f"taskgov-{cluster}-{team}"[:NAME_LIMIT],
            "summary": _summary(held),
            "eventType": "taskgov",
            "relatedResources": [cluster_arn],
        },
    }


def _summary(held: Held) -> str:
    preempted, waiting, starved = (held.counts.get(kind, 0) for kind in Occasion)
    parts = [
        *([f"{counted(preempted, 'task')} preempted"] if preempted else []),
        *([f"{counted(waiting, 'task')} waiting too long"] if waiting else []),
        *(["starved while another borrows"] if starved else []),
    ]
    return ", ".join(parts)


def _question(held: Held, cluster: str) -> str:
    """Return the command that says why: of the first task, else of the team."""
    tasks = (f"{event.team}/{event.task}" for event in held.events if not isinstance(event, TeamStarved))
    return f"taskgov explain {next(tasks, f'--team {held.events[0].team}')} --cluster {cluster}"


def _line(event: TaskEvent, name: Any) -> str:
    match event:
        case TaskPreempted():
            by = f" for {name(event.preempting_team)}" if event.preempting_team else ""
            rank = f" (class {name(event.preempting_priority_class)})" if event.preempting_priority_class else ""
            meaning = PREEMPTION_REASONS.get(event.reason)
            why = name(event.reason) if meaning is None else f"{meaning} ({event.reason})"
            return f"{_task(event, name)} was preempted at {_clock(event.at)}{by}{rank}: {why}."
        case TaskWaiting():
            again = ", when it was evicted" if event.evicted else ""
            limit = f"longer than {counted(event.limit_minutes, 'minute')}"
            return f"{_task(event, name)} was waiting since {_clock(event.since)}{again}: {limit}."
        case TeamStarved():
            return (
                f"{name(event.team)} was starved since {_clock(event.since)}: it waited for "
                f"{words(event.resource, event.waiting)} on {name(event.instance_type)} and used {event.used} of its "
                f"{event.guaranteed}, while others borrowed {event.borrowed}: {event.reclaimable} were reclaimable."
            )


def _task(event: TaskPreempted | TaskWaiting, name: Any) -> str:
    asks = all_words({resource: parse(resource, amount) for resource, amount in event.asks.items()})
    rank = f"class {name(event.priority_class)}, " if event.priority_class else ""
    return f"{name(event.task)} ({name(event.kind)}, {rank}requests {name(asks)})"


def _plain(text: str) -> str:
    return printable(text, limit=NAME_LIMIT)


def _code(text: str) -> str:
    """Return a name that chat clients show as it is."""
    return f"`{_escaped(text.replace('`', chr(39)))}`"


def _escaped(text: str) -> str:
    """Return text in which Slack finds neither links nor mentions (its `&`, `<` and `>` are written as entities)."""
    shown = printable(text, limit=NAME_LIMIT)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
