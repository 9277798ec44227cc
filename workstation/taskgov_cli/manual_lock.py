"""The lock of a cluster, taken by a person for as long as a command writes.

The same item, conditions and fencing token as the runs use (`statemachines/reconcile.asl.yaml`, "Take the lock"): no
run writes meanwhile, and what a run reads afterwards is what the command left.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.errors import translated
from taskgov.errors import ConflictError
from taskgov_cli.deployed import RefusedError
from taskgov_cli.operate import request_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_cli.deployed import Deployed

HELD_FOR: Final = 1800
"""Seconds for each wave, after which runs may take the lock over, should the command die."""
FREE_OR_EXPIRED: Final = "attribute_not_exists(lockOwner) OR lockOwner = :me OR lockExpires < :now"
"""Or its own already: an answer that was lost is asked for again."""


@dataclass(frozen=True, slots=True)
class Held:
    """The lock in hand."""

    owner: str
    token: int


@contextmanager
def locked(place: Deployed, cluster_arn: str, owner: str, by: str, waves: int = 1) -> Iterator[Held]:
    """Hold the cluster's lock, for as long as so many waves of writes may take both ways.

    A run is asked for when the lock is released: one that was started before and found the lock taken has left without
    a trace. Raises RefusedError while a run holds it, GovernanceError.
    """
    held = _take(place, cluster_arn, owner, HELD_FOR * max(1, waves))
    try:
        yield held
    finally:
        _release(place, cluster_arn, held)
        request_run(place, cluster_arn, by)


def _take(place: Deployed, cluster_arn: str, owner: str, seconds: int) -> Held:
    now = int(SystemClock().now().timestamp())
    try:
        with translated(f"take the lock of {cluster_arn}"):
            state = place.table.update_item(
                Key=_state(cluster_arn),
                UpdateExpression="SET lockOwner = :me, lockExpires = :expires ADD fencingToken :one",
                ConditionExpression=FREE_OR_EXPIRED,
                ExpressionAttributeValues={":me": owner, ":expires": now + seconds, ":one": 1, ":now": now},
                ReturnValues="ALL_NEW",
            )["Attributes"]
    except ConflictError as error:
        raise RefusedError(f"a run holds the lock of {cluster_arn}; try again when it is over") from error
    return Held(owner, int(str(state["fencingToken"])))


def _release(place: Deployed, cluster_arn: str, held: Held) -> None:
    """Let go of the lock, unless a run took it over meanwhile."""
    try:
        with translated(f"release the lock of {cluster_arn}"):
            place.table.update_item(
                Key=_state(cluster_arn),
                UpdateExpression="REMOVE lockOwner, lockExpires",
                ConditionExpression="lockOwner = :me AND fencingToken = :token",
                ExpressionAttributeValues={":me": held.owner, ":token": held.token},
            )
    except ConflictError:
        return  # the lease ran out


def _state(cluster_arn: str) -> dict[str, str]:
    return {"pk": f"CLUSTER#{cluster_arn}", "sk": "STATE"}
