"""Who may act on a cluster now: its generation and lock, whose turn it is to send notices, and what counts once.

The lock itself is taken and released by the state machine; here it is read and renewed.
"""

from collections.abc import Mapping
from datetime import datetime
from secrets import token_hex
from typing import Any

from taskgov import keys
from taskgov.adapters.errors import translated
from taskgov.adapters.items import NEWEST, SCHEMA
from taskgov.adapters.lock import HELD, LEASE_ENDED, RENEW, UNLESS_ENDED
from taskgov.adapters.table_items import TableItems, expiry, integer
from taskgov.contracts.steps import Cause, Pointer
from taskgov.errors import ConflictError, InvalidRequestError, LockLostError
from taskgov.ports import LOCK_SECONDS, TURN_SECONDS, Dirty, Lock
from taskgov.snapshot.unreadable import UnreadableItemError

KEPT_DAYS = 400
"""Records are kept a little longer than a year, for yearly reviews."""
ONCE_DAYS = 30
"""Longer than what is counted once can come again: preemptions of the last day, notices of the day."""

OPEN = "open"
"""Who counted what has to be done again."""


class Coordination(TableItems):
    """The part of the `StateStore` port that decides who acts."""

    def mark_dirty(self, cluster_arn: str, cluster_name: str, cause: Cause, now: datetime) -> Dirty:
        """Add one to the generation and return whether a live run holds the lock.

        A generation that is not a whole number is replaced by the present time in seconds, which is more than any
        count. No run has seen it, so that the change is not missed. Raises UnreadableItemError for a lock that cannot
        be read.
        """
        odd: Any = ""
        try:
            item = self._add_one(cluster_arn, cluster_name, cause, now)
            odd = item["generation"]
            integer(item, "generation")
        except (InvalidRequestError, UnreadableItemError):  # the service adds to numbers only
            values = {":number": "N", ":odd": odd, ":newest": int(now.timestamp())}
            is_odd = "NOT attribute_type(generation, :number) OR generation = :odd"
            condition = f"attribute_exists(generation) AND ({is_odd})"
            if not self._update_if(cluster_arn, "SET generation = :newest", condition, values):
                raise
            item = self._add_one(cluster_arn, cluster_name, cause, now)
        lock = _lock(item)
        return Dirty(integer(item, "generation"), locked=lock.is_held(now), lock=lock)

    def _add_one(self, cluster_arn: str, cluster_name: str, cause: Cause, now: datetime) -> Mapping[str, Any]:
        with translated(f"mark {cluster_name} dirty"):
            answer = self._table.update_item(
                Key=keys.state(cluster_arn),
                UpdateExpression="SET #schema = :schema, #name = :name, lastCause = :cause, expiresAt = :expiry "
                "ADD generation :one",
                ExpressionAttributeNames={"#schema": SCHEMA, "#name": "name"},
                ExpressionAttributeValues={
                    ":schema": NEWEST,
                    ":name": cluster_name,
                    ":cause": cause.model_dump_json(by_alias=True, exclude_none=True),
                    ":one": 1,
                    ":expiry": expiry(now, KEPT_DAYS),  # later with each resync, as long as there is the cluster
                },
                ReturnValues="ALL_NEW",
            )
        return answer["Attributes"]

    def lock_of(self, cluster_arn: str) -> Lock:
        """Return who holds the lock."""
        return _lock(self._item(keys.state(cluster_arn)))

    def end_lease(self, cluster_arn: str, lock: Lock) -> bool:
        """Let the lease run out, if it still is this owner's with this token."""
        return self._update_if(
            cluster_arn,
            "SET lockExpires = :ended",
            HELD,
            {":ended": LEASE_ENDED, ":me": lock.owner, ":token": lock.fencing_token},
        )

    def withdraw_request(self, cluster_arn: str, asked_by: str) -> bool:
        """Let the request end, if it still is this execution's."""
        return self._update_if(
            cluster_arn, "SET askedUntil = :zero", "askedBy = :execution", {":zero": 0, ":execution": asked_by}
        )

    def _update_if(self, cluster_arn: str, update: str, condition: str, values: Mapping[str, Any]) -> bool:
        """Change the state item on a condition; say whether it held."""
        try:
            with translated(f"change the lock of {cluster_arn}"):
                self._table.update_item(
                    Key=keys.state(cluster_arn),
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
        except ConflictError:
            return False
        return True

    def generation(self, cluster_arn: str) -> int:
        """Return the generation, strongly consistent."""
        item = self._item(keys.state(cluster_arn))
        return integer(item, "generation") if "generation" in item else 0

    def hold_lock(
        self, cluster_arn: str, owner: str, fencing_token: int, now: datetime, plan: Pointer | None = None
    ) -> None:
        """Check that the run still holds the lock with its token, and extend the lease, in one conditional write."""
        values = {
            ":me": owner,
            ":token": fencing_token,
            ":expires": int(now.timestamp()) + LOCK_SECONDS,
            ":ended": LEASE_ENDED,
        }
        update = RENEW
        if plan is not None:
            update += ", lockPlan = :plan, lockPlanToken = :token"
            values[":plan"] = plan.model_dump_json(by_alias=True)
        held = self._update_if(cluster_arn, update, f"{HELD} AND {UNLESS_ENDED}", values)
        if not held:
            raise LockLostError(f"{owner} with token {fencing_token} no longer holds the lock of {cluster_arn}")

    def count_once(self, cluster_arn: str, identity: str, now: datetime, *, by: str | None = None) -> bool:
        """Return True the first time an identity is seen or reopened, and whenever the same `by` calls again."""
        try:
            self._put(
                _counted(cluster_arn, identity, now, by or ""),
                ConditionExpression="attribute_not_exists(pk) OR #by = :open OR (#by = :by AND #by <> :nobody)",
                ExpressionAttributeNames={"#by": "by"},
                ExpressionAttributeValues={":by": by or "", ":nobody": "", ":open": OPEN},
            )
        except ConflictError:
            return False
        return True

    def confirm_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        """Keep that it is done: nobody counts it again."""
        self._put(_counted(cluster_arn, identity, now, by=""))

    def reopen_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        """Keep that it was not done: whoever calls next counts it."""
        self._put(_counted(cluster_arn, identity, now, by=OPEN))

    def was_counted(self, cluster_arn: str, identity: str) -> bool:
        """Return whether an identity was counted, strongly consistent."""
        return bool(self._item(keys.once(cluster_arn, identity)))

    def all_counted(self, cluster_arn: str, beginning: str) -> frozenset[str]:
        """Return the identities that were counted and begin so, strongly consistent."""
        items = self._items(cluster_arn, keys.once(cluster_arn, beginning)["sk"])
        return frozenset(str(item["sk"]).partition("#")[2] for item in items)

    def forget_once(self, cluster_arn: str, identity: str) -> None:
        """Forget that an identity was counted."""
        with translated(f"forget {identity}"):
            self._table.delete_item(Key=keys.once(cluster_arn, identity))

    def take_turn(self, cluster_arn: str, now: datetime) -> str | None:
        """Return a new token unless another's turn has not ended."""
        turn, epoch = token_hex(8), int(now.timestamp())
        try:
            self._put(
                {**keys.turn(cluster_arn), "turn": turn, "until": epoch + TURN_SECONDS},
                ConditionExpression="attribute_not_exists(pk) OR #until <= :now",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":now": epoch},
            )
        except ConflictError:
            return None
        return turn

    def end_turn(self, cluster_arn: str, turn: str) -> None:
        """End a turn, if it still is this one."""
        try:
            self._put(
                {**keys.turn(cluster_arn), "turn": turn, "until": 0},
                ConditionExpression="turn = :turn",
                ExpressionAttributeValues={":turn": turn},
            )
        except ConflictError:
            return  # it took too long, and another has begun


def _counted(cluster_arn: str, identity: str, now: datetime, by: str) -> dict[str, Any]:
    return {**keys.once(cluster_arn, identity), "by": by, "expiresAt": expiry(now, ONCE_DAYS)}


def _lock(item: Mapping[str, Any]) -> Lock:
    def number(name: str) -> int | None:
        return integer(item, name) if name in item else None

    begun = item.get("lockPlan") if number("lockPlanToken") == (number("fencingToken") or 0) else None
    return Lock(
        owner=item.get("lockOwner"),
        fencing_token=number("fencingToken") or 0,
        expires=number("lockExpires"),
        asked_by=item.get("askedBy"),
        asked_until=number("askedUntil"),
        plan=None if begun is None else _pointer(begun),
    )


def _pointer(text: object) -> Pointer | None:
    """Return the pointer that a text is; None for any other: a lock is freed whatever stands beside it."""
    try:
        return Pointer.model_validate_json(str(text))
    except ValueError:
        return None
