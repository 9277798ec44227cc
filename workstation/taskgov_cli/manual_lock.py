"""The lock of a cluster, taken by a person for as long as a command writes.

The same item, conditions and fencing token as the runs use (`statemachines/reconcile.asl.yaml`, "Take the lock"): no
run writes meanwhile, and what a run reads afterwards is what the command left.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov import keys
from taskgov.adapters.clock import SystemClock
from taskgov.adapters.errors import translated
from taskgov.adapters.items import NEWEST, SCHEMA
from taskgov.adapters.lock import FREE_OR_EXPIRED, HELD, RELEASE, TAKE
from taskgov.errors import ConflictError, GovernanceError
from taskgov.ports import LOCK_SECONDS
from taskgov.snapshot.identity import claims_of, said_claim
from taskgov_cli.deployed import RefusedError
from taskgov_cli.operate import request_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_cli.deployed import Deployed

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedByPersonError(GovernanceError):
    """Ctrl-C, SIGTERM or SIGHUP came: nothing more is written; what was written stands until the next run."""


@dataclass(slots=True)
class Interruption:
    """Whether the command should end. Looked at between writes, so that it is known what was written."""

    signal_name: str | None = None

    def check(self) -> None:
        """Return unless a signal came. Raises InterruptedByPersonError."""
        if self.signal_name is not None:
            raise InterruptedByPersonError(
                f"{self.signal_name} ended the command; what it wrote stands, and the next run continues from there"
            )


@dataclass(frozen=True, slots=True)
class Held:
    """The lock in hand."""

    owner: str
    token: int
    interruption: Interruption


@contextmanager
def locked(place: Deployed, cluster_arn: str, owner: str) -> Iterator[Held]:
    """Hold the cluster's lock; each write and each check of what settles renews its lease.

    A signal does not end the command at once: it is noted, so that the record is left and the lock freed.

    A run is requested when the lock is released: one that was started before and found the lock taken has left without
    a trace. Raises RefusedError while a run holds it, and where another stack governs the cluster; GovernanceError.
    """
    _refuse_beside_another(place, cluster_arn)
    with noting_signals() as interruption:
        held = _take(place, cluster_arn, owner, interruption)
        try:
            yield held
        finally:
            _release(place, cluster_arn, held)
            request_run(place, cluster_arn)


def _refuse_beside_another(place: Deployed, cluster_arn: str) -> None:
    """Refuse to write to a cluster that another stack governs, as runs do."""
    claims = claims_of(place.backends.tags(cluster_arn))
    stamp = place.state.stamp(cluster_arn) if claims else None
    if claims and (stamp is None or claims[0].lineage != stamp.lineage):
        mine = "this stack" if stamp is None else f"this stack, {stamp.lineage},"
        raise RefusedError(
            f"{said_claim(claims[0])} governs the cluster; {mine} writes nothing. If the other stack is gone, or is to "
            f"stop: taskgov govern CLUSTER --yes"
        )


@contextmanager
def noting_signals() -> Iterator[Interruption]:
    """Note Ctrl-C, SIGTERM and SIGHUP (the terminal is closed) instead of ending during a write."""
    interruption = Interruption()

    def note(number: int, _frame: object) -> None:
        interruption.signal_name = signal.Signals(number).name

    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else set()  # as with nohup
    caught = [number for number in ENDING if number not in ignored]
    before = {number: signal.signal(number, note) for number in caught}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _take(place: Deployed, cluster_arn: str, owner: str, interruption: Interruption) -> Held:
    now = int(SystemClock().now().timestamp())
    try:
        with translated(f"take the lock of {cluster_arn}"):
            state = place.table.update_item(
                Key=keys.state(cluster_arn),
                UpdateExpression=TAKE,
                ConditionExpression=FREE_OR_EXPIRED,
                ExpressionAttributeNames={"#schema": SCHEMA},
                ExpressionAttributeValues={
                    ":schema": NEWEST,
                    ":me": owner,
                    ":expires": now + LOCK_SECONDS,
                    ":one": 1,
                    ":now": now,
                },
                ReturnValues="ALL_NEW",
            )["Attributes"]
    except ConflictError as error:
        raise RefusedError(f"a run holds the lock of {cluster_arn}; try again when it is over") from error
    return Held(owner, int(str(state["fencingToken"])), interruption)


def _release(place: Deployed, cluster_arn: str, held: Held) -> None:
    """Release the lock, unless a run took it over meanwhile."""
    try:
        with translated(f"release the lock of {cluster_arn}"):
            place.table.update_item(
                Key=keys.state(cluster_arn),
                UpdateExpression=RELEASE,
                ConditionExpression=HELD,
                ExpressionAttributeValues={":me": held.owner, ":token": held.token},
            )
    except ConflictError:
        return  # the lease ran out
