"""`taskgov history`: the runs of a cluster, newest first: what caused them, what they planned, how they ended."""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from boto3.dynamodb.conditions import Key
from rich.text import Text

from taskgov import keys
from taskgov.adapters.errors import translated
from taskgov.adapters.items import SCHEMA, read
from taskgov.contracts.cause_words import cause_words
from taskgov_cli.deployed import Cluster, StackName, deployed, told
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, unfolded
from taskgov_cli.grid import table
from taskgov_cli.output import AsJson, console, working
from taskgov_cli.stack_outputs import DEFAULT_STACK
from taskgov_cli.usage.attempts import newest, recent_work, work_data, work_shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from taskgov.snapshot.unreadable import UnreadableItem
    from taskgov_cli.deployed import Deployed

Run = Mapping[str, Any]
"""The record of a run, as it is in the table (`RUN#<time>#<execution>`)."""

SHOWN = 20
"""Quotas that a run wrote before it ended that are shown; `--json` has all that are on record."""

WAITING = "needs-approval"
LONGEST = timedelta(days=14)
"""No run takes longer: a request for approval is open for a week at most."""
LATEST = datetime(9999, 1, 1, tzinfo=UTC)

STYLES = {
    "applied": "green",
    "blocked": "red",
    "failed": "red",
    "unfinished": "red",
    "unreadable": "red",
    "stopped": "red",
    "progressing": "cyan",
    "rollback-failed": "bold red",
    "rolled-back": "yellow",
    "needs-approval": "yellow",
    "rejected": "yellow",
    "expired": "yellow",
    "unlocked": "yellow",
}


def history(
    cluster: Cluster,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many runs, or attempts.")] = 20,
    days: Annotated[
        int, typer.Option("--days", min=1, max=3660, help="With --work: attempts that ended in so many days.")
    ] = 7,
    stack: StackName = DEFAULT_STACK,
    *,
    work: Annotated[
        bool, typer.Option("--work", help="Show attempts of workloads instead, from the record of work.")
    ] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show the last runs of a cluster: time, cause, plan and outcome.

    A plan that waits for approval comes first, then the runs that have ended, the last one first.
    --work shows attempts of workloads: those that wait or run, then those that ended, newest first.

    Example: taskgov history ml-cluster --limit 5
    """
    if work:
        with told(), working("reading the record of work"):
            place = deployed(stack)
            name, done = recent_work(place, cluster, days)
        attempts = newest(done, limit)
        answer(lambda: work_data(name, done, attempts), work_shown(name, done, attempts), form, as_json=as_json)
        return
    with told(), working("reading the runs"):
        place = deployed(stack)
        arn = place.arn_of(cluster)
        ended = _last_ended(place, arn, limit)
        found = [*_waiting(place, arn, ended), *ended[:limit]]
    answer(lambda: [_as_data(run) for run in found], _shown(cluster, found), form, as_json=as_json)


def _shown(cluster: str, found: list[Run]) -> Iterator[RenderableType]:
    columns = ("started (UTC)", "seconds #", "outcome", "plan", "written #", "cause, and what went wrong")
    yield table(f"Runs of {cluster}", columns, map(_row, found))
    if not found:
        yield unfolded(f"No run is on record for {cluster}. To start one: taskgov reconcile {cluster}")


def runs(place: Deployed, cluster_arn: str) -> Iterator[Run]:
    """Yield the records of a cluster's runs, newest first. Raises GovernanceError."""
    condition = Key("pk").eq(keys.cluster(cluster_arn)) & Key("sk").begins_with(keys.RUN)
    start: dict[str, Any] = {}
    while True:
        with translated(f"list the runs of {cluster_arn}"):
            page = place.table.query(KeyConditionExpression=condition, ScanIndexForward=False, **start)
        found = (read(item, _as_record, _unreadable) for item in page["Items"])
        yield from (run for run in found if run is not None)
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _last_ended(place: Deployed, cluster_arn: str, limit: int) -> list[Run]:
    """Return at least so many runs, the one that ended last first. Raises GovernanceError.

    They are stored by their start; one that waited for an approval began long before others that have ended.
    """
    found: list[Run] = []
    for run in runs(place, cluster_arn):
        if len(found) >= limit and _time(run, "startedAt") < _time(found[limit - 1], "endedAt") - LONGEST:
            break
        insort(found, run, key=lambda other: -_time(other, "endedAt").timestamp())
    return found


def _time(run: Run, name: str) -> datetime:
    return datetime.fromisoformat(run[name])


def _waiting(place: Deployed, cluster_arn: str, ended: list[Run]) -> Iterator[Run]:
    """Yield the run that waits for approval: it has no record before it ends. Raises GovernanceError.

    An answered request stays in the state until it would have expired: rejected, without an execution that waits;
    approved, with one that has a record.
    """
    key = keys.state(cluster_arn)
    with translated(f"see what waits for approval on {cluster_arn}"):
        # By a query, which reading the runs needs as well.
        condition = Key("pk").eq(key["pk"]) & Key("sk").eq(key["sk"])
        items = place.table.query(KeyConditionExpression=condition, ConsistentRead=True)["Items"]
    for asked in filter(None, (read(item, _as_asked, _unreadable) for item in items)):
        if _time(asked, "waitsUntil") > datetime.now(UTC) and not _has_record(asked, ended):
            yield asked


def _as_asked(state: Run) -> Run | None:
    """Return the run that waits, or None. Raises ValueError or KeyError for an item that does not say it fully."""
    is_rejected = "askedDocument" in state and "askedBy" not in state  # an item of older releases has neither
    if "askedPlan" not in state or is_rejected:
        return None
    seconds = int(str(state["askedUntil"]))
    if not 0 <= seconds < LATEST.timestamp():
        raise ValueError(f"its askedUntil is {seconds}, which is not a time")
    pointer = {"plan": str(state["askedDocument"])} if "askedDocument" in state else {}
    return pointer | {
        "sk": f"{keys.RUN}#{str(state.get('askedBy', '')).rpartition(':')[2]}",
        "outcome": WAITING,
        "planId": str(state["askedPlan"]),
        "applied": 0,
        "waitsUntil": f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}",
    }


def _has_record(asked: Run, ended: list[Run]) -> bool:
    """Return whether the run of a request has ended. An execution runs several times: their ids have a number."""
    beginning = f"{_run_id(asked)}-"
    return any(run.get("planId") == asked["planId"] and f"{_run_id(run)}-".startswith(beginning) for run in ended)


def _as_record(item: Run) -> Run:
    """Return a record that has what every command reads of it. Raises ValueError or KeyError for any other item."""
    for name in ("startedAt", "endedAt"):
        if datetime.fromisoformat(item[name]).tzinfo is None:
            raise ValueError(f"its {name} is {item[name]}, without an offset from UTC")
    int(item["applied"])
    for name in ("cause", "plan", "snapshot"):
        json.loads(item.get(name, "{}"))
    return {**item, "outcome": str(item["outcome"])}


def _unreadable(item: UnreadableItem) -> None:
    console(stderr=True).print(f"Left out: {item}", markup=False, soft_wrap=True)


def _run_id(run: Run) -> str:
    return str(run["sk"].split("#", 2)[2])


def _as_data(run: Run) -> dict[str, Any]:
    """Return a record for programs: what is JSON inside the record is JSON here."""
    plain = {name: value for name, value in run.items() if name not in {"pk", "sk", "expiresAt", SCHEMA}}
    parsed = {name: json.loads(run[name]) for name in ("cause", "plan", "snapshot") if name in run}
    return plain | parsed | {"applied": int(run["applied"]), "runId": _run_id(run)}


def _row(run: Run) -> tuple[str | Text, ...]:
    outcome = Text(run["outcome"], style=STYLES.get(run["outcome"], ""))
    if "waitsUntil" in run:
        plan, until = run["planId"], datetime.fromisoformat(run["waitsUntil"])
        what = f"waits until {until:%Y-%m-%d %H:%M} for: taskgov approve {plan}, or taskgov reject {plan}"
        return "waits", "", outcome, plan, "", what
    started, ended = (datetime.fromisoformat(run[name]) for name in ("startedAt", "endedAt"))
    return (
        f"{started:%Y-%m-%d %H:%M:%S}",
        f"{(ended - started).total_seconds():.0f}",
        outcome,
        run.get("planId", ""),
        str(run["applied"]),
        "\n".join(filter(None, (_cause(run), run.get("error", ""), *_written(run)))),
    )


def _written(run: Run) -> Iterator[str]:
    """Say what a run wrote that did not come to its end."""
    names = run.get("written", ())
    if names and run["outcome"] in {"unfinished", "progressing"}:
        count = max(len(names), int(run["applied"]))
        hint = "--json shows all" if count == len(names) else "the plan in the bucket names them"
        more = f" and {count - SHOWN} more: {hint}" if count > SHOWN else ""
        yield f"written: {', '.join(names[:SHOWN])}{more}"


def _cause(run: Run) -> str:
    if "cause" not in run:
        return ""
    cause = json.loads(run["cause"])
    return cause_words(str(cause.get("what") or cause["detailType"]), cause.get("by"))
