"""`taskgov unlock`: show who holds the lock of a cluster, and order it freed, with a reason on record.

Shown only, unless `--yes` is given. Freed is what was shown and nothing else: owner, token and end are the condition.
The stack's signed entry frees it, and records whom AWS attests.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import boto3
import typer

from taskgov.adapters.stepfunctions import StateMachine
from taskgov.bootstrap.aws import CONFIG
from taskgov.contracts.orders import UnlockOrder
from taskgov.number_text import exact_moment
from taskgov_cli.deployed import Cluster, RefusedError, StackName, deployed, told
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, unfolded
from taskgov_cli.orders import give
from taskgov_cli.output import AsJson  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from taskgov.ports import Execution, Lock


def unlock(
    cluster: Cluster,
    stack: StackName = DEFAULT_STACK,
    reason: Annotated[str, typer.Option("--reason", help="The reason, for the record; required with --yes.")] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Release it; without --yes, it is only shown.")] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show who holds a cluster's lock; release it with --yes. A run that held it stops before its next write.

    Example: taskgov unlock ml-cluster --yes --reason "its execution was deleted"
    """
    with told():
        if yes and not reason.strip():
            raise RefusedError("--yes needs --reason TEXT, for the record")
        place = deployed(stack)
        arn = place.arn_of(cluster)
        lock = place.state.lock_of(arn)
        execution = _execution(lock)
        if yes and lock.owner is not None:
            give(place, _order(arn, lock, reason))
    freed = yes and lock.owner is not None
    lines = _lines(cluster, lock, execution, freed=freed)
    data = _as_data(arn, lock, execution, freed=freed)
    answer(lambda: data, map(unfolded, lines), form, as_json=as_json)


def _execution(lock: Lock) -> Execution | None:
    """Ask Step Functions about the owner, if it is an execution. Raises GovernanceError."""
    if lock.owner is None or not _is_execution(lock):
        return None
    machine = lock.owner.replace(":execution:", ":stateMachine:").rpartition(":")[0]
    return StateMachine(boto3.client("stepfunctions", config=CONFIG), machine).execution(lock.owner)


def _order(arn: str, lock: Lock, reason: str) -> UnlockOrder:
    about = {"clusterArn": arn, "owner": lock.owner, "fencingToken": lock.fencing_token, "expires": lock.expires}
    return UnlockOrder.parse({"action": "unlock", "reason": reason, **about})


def _as_data(arn: str, lock: Lock, execution: Execution | None, *, freed: bool) -> dict[str, Any]:
    return {
        "clusterArn": arn,
        "owner": lock.owner,
        "fencingToken": lock.fencing_token,
        "held": _is_held(lock) and not freed,
        "until": _moment(lock.expires),
        "execution": None if execution is None else execution.status,
        "since": None if execution is None else execution.started_at.isoformat(),
        "freed": freed,
    }


def _lines(cluster: str, lock: Lock, execution: Execution | None, *, freed: bool) -> list[str]:
    if lock.owner is None:
        return [f"The lock of {cluster} is free."]
    until = None if lock.expires is None else exact_moment(datetime.fromtimestamp(lock.expires, UTC))
    if _is_held(lock):
        lines = [f"The lock of {cluster} is held by {lock.owner} until {until} (fencing token {lock.fencing_token})."]
    else:
        ended = "has no end" if until is None else f"ended at {until}"
        about = f"the lock of {lock.owner} {ended} (fencing token {lock.fencing_token})"
        lines = [f"Nobody holds the lock of {cluster}: {about}, and the next run takes it."]
    if execution is not None:
        lines.append(f"Its execution began at {exact_moment(execution.started_at)}; its status is {execution.status}.")
    elif _is_execution(lock):
        lines.append("Step Functions does not have its execution any more.")
    if freed:
        lines.append(f"It is free now, and a run was requested: taskgov history {cluster}")
    elif not _is_held(lock):
        lines.append("Nothing was changed, and nothing has to be freed.")
    else:
        lines.append(f'Nothing was changed. To free it: taskgov unlock {cluster} --yes --reason "..."')
    return lines


def _is_held(lock: Lock) -> bool:
    return lock.is_held(datetime.now(UTC))


def _is_execution(lock: Lock) -> bool:
    return lock.owner is not None and ":execution:" in lock.owner


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
