"""`taskgov history`: the runs of a cluster, newest first: what caused them, what they planned, how they ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
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
from taskgov_cli.formats import Format, answer
from taskgov_cli.grid import table
from taskgov_cli.output import AsJson, console
from taskgov_cli.stack_outputs import DEFAULT_STACK
from taskgov_cli.usage.attempts import newest, recent_work, work_data, work_shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from taskgov.snapshot.unreadable import UnreadableItem
    from taskgov_cli.deployed import Deployed

Run = Mapping[str, Any]
"""The record of a run, as it is in the table (`RUN#<time>#<execution>`)."""

SHOWN = 20
"""Quotas that a run wrote before it ended that are shown; `--json` has all."""

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

    --work shows attempts of workloads: those that wait or run, then those that ended, newest first.

    Example: taskgov history ml-cluster --limit 5
    """
    if work:
        with told():
            place = deployed(stack)
            name, done = recent_work(place, cluster, days)
        attempts = newest(done, limit)
        answer(lambda: work_data(name, done, attempts), work_shown(name, done, attempts), form, as_json=as_json)
        return
    with told():
        place = deployed(stack)
        found = list(islice(runs(place, place.arn_of(cluster)), limit))
    answer(lambda: [_as_data(run) for run in found], _shown(cluster, found), form, as_json=as_json)


def _shown(cluster: str, found: list[Run]) -> Iterator[RenderableType]:
    columns = ("started (UTC)", "seconds #", "outcome", "plan", "written #", "cause, and what went wrong")
    yield table(f"Runs of {cluster}", columns, map(_row, found))
    if not found:
        yield Text(f"No run is on record for {cluster}. To start one: taskgov reconcile {cluster}")


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


def _as_record(item: Run) -> Run:
    """Return a record that has what every command reads of it. Raises ValueError or KeyError for any other item."""
    for name in ("startedAt", "endedAt"):
        datetime.fromisoformat(item[name])
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
    started, ended = (datetime.fromisoformat(run[name]) for name in ("startedAt", "endedAt"))
    outcome = Text(run["outcome"], style=STYLES.get(run["outcome"], ""))
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
        more = f" and {len(names) - SHOWN} more: --json shows all" if len(names) > SHOWN else ""
        yield f"written: {', '.join(names[:SHOWN])}{more}"


def _cause(run: Run) -> str:
    if "cause" not in run:
        return ""
    cause = json.loads(run["cause"])
    return cause_words(str(cause.get("what") or cause["detailType"]), cause.get("by"))
