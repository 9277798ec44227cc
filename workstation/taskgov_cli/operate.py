"""`taskgov reconcile` and `taskgov stop`: ask for a run, and keep every run from writing."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from taskgov import keys
from taskgov.adapters.errors import translated
from taskgov.contracts.orders import RunOrder, StopOrder
from taskgov.number_text import stored_moment
from taskgov_cli.deployed import Cluster, StackName, deployed, told
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.orders import give
from taskgov_cli.output import AsJson, console, print_json
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_cli.deployed import Deployed


class Position(StrEnum):
    """The wanted state of the stop switch."""

    ON = "on"
    OFF = "off"


def reconcile(
    cluster: Cluster,
    stack: StackName = DEFAULT_STACK,
    *,
    retry_refused: Annotated[
        bool, typer.Option("--retry-refused", help="Try refused writes again before their 24 hours end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start a run on a cluster now; a run in progress reads the cluster once more instead.

    Example: taskgov reconcile ml-cluster
    """
    with told():
        place = deployed(stack)
        arn = place.arn_of(cluster)
        forgotten = [refused.subject for refused in place.state.refusals(arn)] if retry_refused else []
        ordered = request_run(place, arn, retry_refused=retry_refused)
    if as_json:
        about = {"clusterArn": arn, "eventId": ordered["eventId"], "by": ordered["by"]}
        print_json(about | {"forgottenRefusals": forgotten})
    else:
        if retry_refused:
            what = ", ".join(forgotten) or "nothing: no refused write is on record"
            console().print(f"Will try again: {what}.", markup=False)
        console().print(f"A run on {cluster} was requested. For its outcome: taskgov history {cluster}", markup=False)


def stop(
    position: Annotated[Position | None, typer.Argument(help="Default: show the position.")] = None,
    reason: Annotated[str, typer.Option("--reason", help="The reason, for people who find the switch on.")] = "",
    stack: StackName = DEFAULT_STACK,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Turn the stop switch on or off: while it is on, runs plan and report, and write nothing.

    Example: taskgov stop on --reason "maintenance until noon"
    """
    with told():
        place = deployed(stack)
        if position is not None:
            turn(place, on=position is Position.ON, reason=reason)
        switch = switch_of(place)
    answer(lambda: switch, [Text(_sentence(switch))], form, as_json=as_json)


def request_run(place: Deployed, cluster_arn: str, *, retry_refused: bool = False) -> dict[str, Any]:
    """Order a run; return what the entry answers: `eventId`, and as `by` whom AWS attests. Raises GovernanceError.

    With `retry_refused`, the run tries again the writes that were refused until now.
    """
    return give(place, RunOrder(action="reconcile", cluster_arn=cluster_arn, retry_refused=retry_refused))


def turn(place: Deployed, *, on: bool, reason: str) -> None:
    """Turn the stop switch on or off; the stack records the caller, the time and the reason. Raises GovernanceError."""
    give(place, StopOrder.parse({"action": "stop" if on else "resume", "reason": reason}))


def switch_of(place: Deployed) -> Mapping[str, Any]:
    """Return the stop switch: `on`, and `by`, `at` and `reason` when somebody ever turned it."""
    with translated("read the stop switch"):
        item = place.table.get_item(Key=keys.STOP_SWITCH, ConsistentRead=True).get("Item", {})
    return {"on": False} | {name: value for name, value in item.items() if name not in keys.STOP_SWITCH}


def _sentence(switch: Mapping[str, Any]) -> str:
    state = "on" if switch["on"] else "off"
    by = f", turned {state} by {switch['by']} at {stored_moment(switch.get('at'))}" if "by" in switch else ""
    why = f": {switch['reason']}" if switch.get("reason") else ""
    effect = "no run begins to write until `taskgov stop off`" if switch["on"] else "runs follow ApplyMode"
    return f"The stop switch is {state}{by}{why}; {effect}."
