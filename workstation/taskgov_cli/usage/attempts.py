"""What `taskgov history --work` shows: attempts of workloads, from the record of work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.text import Text

from taskgov.number_text import duration
from taskgov.services.work_record import RecordedWork
from taskgov.usage.amounts import words
from taskgov.work.attempt import Attempt, End
from taskgov.work.day import attempt_data
from taskgov_cli.formats import unfolded
from taskgov_cli.grid import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from taskgov.ports.work import WorkDone
    from taskgov_cli.deployed import Deployed

NO_MEASUREMENT = "no recorded measurement yet; the stack measures it each minute. If none comes"
STYLES = {End.FINISHED: "green", End.EVICTED: "red", End.GONE: "yellow", End.UNSEEN: "yellow", None: "cyan"}


def recent_work(place: Deployed, cluster: str, days: int) -> tuple[str, WorkDone]:
    """Return a cluster's name and the record of its last days. Raises RefusedError, GovernanceError."""
    name, now = place.name_of(cluster), datetime.now(UTC)
    return name, RecordedWork(place.documents).between(name, now - timedelta(days=days), now + timedelta(minutes=1))


def newest(done: WorkDone, limit: int) -> list[Attempt]:
    """Return attempts that wait or run, the last that began first, then those that ended, the last one first."""
    still = sorted(done.still, key=lambda attempt: (attempt.admitted or attempt.queued, attempt.uid), reverse=True)
    return [*still, *reversed(done.ended)][:limit]


def work_data(name: str, done: WorkDone, attempts: list[Attempt]) -> dict[str, Any]:
    """Return attempts for programs, as the files of the record have them."""
    return {
        "cluster": name,
        "from": done.start,
        "to": done.end,
        "lookedAt": done.looked_at,
        "attempts": [attempt_data(attempt) for attempt in attempts],
        "measured": [{"from": span.start, "to": span.end} for span in done.measured],
    }


def work_shown(name: str, done: WorkDone, attempts: list[Attempt]) -> Iterator[RenderableType]:
    """Yield what people read."""
    columns = (
        *("team", "job", "kind", "priority", "owner", "instance type", "requests", "attempt #", "created (UTC)"),
        *("waited", "ran", "at most", "ended (UTC)", "how it stands"),
    )
    yield table(f"Attempts of workloads of {name}", columns, [_row(attempt, done) for attempt in attempts], main=True)
    if any(attempt.inferred for attempt in attempts):
        yield Text("~ is inferred: the exact time was not observed.")
    total = len(done.still) + len(done.ended)
    if total > len(attempts):
        yield Text(f"{total - len(attempts)} more: --limit shows them.")
    if done.looked_at is None:
        yield unfolded(f"{name} has {NO_MEASUREMENT}: taskgov doctor {name}")
    elif not attempts:
        yield Text(f"No attempt is waiting, running, or ended since {done.start:%Y-%m-%d %H:%M} UTC.")


def _row(attempt: Attempt, done: WorkDone) -> tuple[str | Text, ...]:
    until = attempt.ended or done.looked_at or attempt.queued
    priority = f"{attempt.priority_class} ({attempt.priority})" if attempt.priority_class else str(attempt.priority)
    about = "~" if attempt.inferred else ""
    waited = ((attempt.admitted or until) - attempt.queued).total_seconds()
    ran = None if attempt.admitted is None else (until - attempt.admitted).total_seconds()
    return (
        attempt.team,
        attempt.stem,
        attempt.kind,
        priority,
        attempt.owner or "",
        attempt.instance_type,
        ", ".join(words(held.resource, held.amount) for held in attempt.held),
        str(attempt.number),
        f"{attempt.created:%Y-%m-%d %H:%M:%S}",
        duration(max(waited, 0)),
        "" if ran is None else f"{about}{duration(max(ran, 0))}",
        "" if attempt.max_seconds is None else duration(attempt.max_seconds),
        "" if attempt.ended is None else f"{about}{attempt.ended:%Y-%m-%d %H:%M:%S}",
        Text(_how(attempt), style=STYLES[attempt.end]),
    )


def _how(attempt: Attempt) -> str:
    if attempt.end is None:
        return "waits" if attempt.admitted is None else "runs"
    return f"{attempt.end}: {attempt.reason}" if attempt.reason else str(attempt.end)
