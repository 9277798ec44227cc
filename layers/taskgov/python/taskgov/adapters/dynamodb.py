"""The table: generations, locks, what was applied, who edited, records of runs.

Keys and attributes are listed in `docs/architecture.md`, "Stores". The lock itself is taken and released by the state
machine; here it is looked at and renewed.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from boto3.dynamodb.conditions import Key

from taskgov import keys
from taskgov.adapters.errors import translated
from taskgov.adapters.items import NEWEST, SCHEMA, Item, in_form, read
from taskgov.adapters.lock import HELD, LEASE_ENDED, RENEW, UNLESS_ENDED
from taskgov.contracts.steps import Cause, Pointer
from taskgov.errors import ConflictError, GovernanceError, LockLostError, UpstreamError
from taskgov.json_form import KeptForm
from taskgov.ports import LOCK_SECONDS, TURN_SECONDS, Dirty, Lock, OnUnreadable, RunRecord
from taskgov.snapshot.identity import StateStamp
from taskgov.snapshot.model import AppliedPolicy, AppliedQuota, Authorship, QuotaEdit, RefusedWrite

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table as DynamoDBTable

APPLIED = KeptForm(AppliedQuota)
POLICY = KeptForm(AppliedPolicy)
REFUSED = KeptForm(RefusedWrite)
STAMP = KeptForm(StateStamp)
Record = TypeVar("Record")
RUN_DAYS = 400
"""Records of runs are kept a little longer than a year, for yearly reviews."""
ONCE_DAYS = 30
"""Longer than what is counted once can come again: preemptions of the last day, notices of the day."""
REFUSED_DAYS = 2
"""Longer than a refusal stands in the way of its change (`taskgov.allocation.refusals.STANDS_FOR`)."""


class Table:
    """The `StateStore` port over one DynamoDB table."""

    def __init__(self, table: "DynamoDBTable") -> None:
        self._table = table

    def mark_dirty(self, cluster_arn: str, cluster_name: str, cause: Cause, now: datetime) -> Dirty:
        """Add one to the generation and tell whether a live run holds the lock."""
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
                    ":expiry": _expiry(now, RUN_DAYS),  # later with each resync, as long as there is the cluster
                },
                ReturnValues="ALL_NEW",
            )
        item = answer["Attributes"]
        lock = _lock(item)
        return Dirty(_integer(item["generation"]), locked=lock.is_held(now), lock=lock)

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
        return _integer(self._item(keys.state(cluster_arn)).get("generation", 0))

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

    def stamp(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> StateStamp | None:
        """Return the identity of the cluster's records, strongly consistent."""
        item = self._item(keys.lineage(cluster_arn))
        return read(item, _record(STAMP), on_unreadable) if item else None

    def record_stamp(self, cluster_arn: str, stamp: StateStamp) -> None:
        """Keep the identity of the cluster's records; an older one of the same lineage that arrives late is left."""
        record = STAMP.kept(stamp, without_none=True).decode()
        try:
            self._put(
                {**keys.lineage(cluster_arn), "lineage": stamp.lineage, "serial": stamp.serial, "record": record},
                ConditionExpression="attribute_not_exists(pk) OR lineage <> :lineage OR serial <= :serial",
                ExpressionAttributeValues={":lineage": stamp.lineage, ":serial": stamp.serial},
            )
        except ConflictError:
            return  # a later look is on record

    def new_lineage(self) -> str:
        """Return a lineage at random."""
        return token_hex(8)

    def stop_switch(self) -> bool | None:
        """Return whether the stop switch is on; None when it cannot be read: guardrails fail closed."""
        try:
            return bool(self._item(keys.STOP_SWITCH).get("on", False))
        except GovernanceError:
            return None

    def authorship(self, cluster_name: str, version: str) -> Authorship | None:
        """Return who put a version of a document into force, and who accepted it; None where neither is known."""
        item = self._item(keys.document(cluster_name, version))
        return Authorship(_text(item, "author"), _text(item, "acceptedBy")) if item else None

    def cluster_of(self, resource_id: str) -> str | None:
        """Return the cluster that a quota or scheduler config belongs to, if it is known."""
        arn = self._item(keys.owner(resource_id)).get("clusterArn")
        return str(arn) if arn else None

    def remember_resources(self, cluster_arn: str, resource_ids: Iterable[str]) -> None:
        """Keep which cluster these quotas and scheduler configs belong to; unchanged ones are not written again."""
        for resource_id in sorted(resource_ids):
            if self.cluster_of(resource_id) != cluster_arn:
                self._put({**keys.owner(resource_id), "clusterArn": cluster_arn})

    def applied_quotas(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[AppliedQuota, ...]:
        """Return what was last applied to each quota, by id."""
        return self._read(cluster_arn, keys.QUOTA, _record(APPLIED), on_unreadable)

    def applied_quota(self, cluster_arn: str, quota_id: str) -> AppliedQuota | None:
        """Return what was last applied to one quota, or None."""
        item = self._item(keys.applied_quota(cluster_arn, quota_id))
        return read(item, _record(APPLIED)) if item else None

    def record_applied(self, cluster_arn: str, applied: AppliedQuota) -> None:
        """Keep what was applied to a quota."""
        self._put(
            {
                **keys.applied_quota(cluster_arn, applied.compute_quota_id),
                "version": applied.version,
                "planId": applied.plan_id,
                "at": applied.at.isoformat(),
                "record": APPLIED.kept(applied, without_none=True).decode(),
            }
        )

    def applied_policy(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> AppliedPolicy | None:
        """Return what was last written to the cluster policy, or None."""
        return next(iter(self._read(cluster_arn, "POLICY", _record(POLICY), on_unreadable)), None)

    def record_policy(self, cluster_arn: str, applied: AppliedPolicy) -> None:
        """Keep what was written to the cluster policy."""
        record = POLICY.kept(applied, without_none=True).decode()
        self._put({**keys.applied_policy(cluster_arn), "version": applied.version, "record": record})

    def edits(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[QuotaEdit, ...]:
        """Return who last changed each quota by hand, by id."""
        return self._read(cluster_arn, keys.EDIT, _edit, on_unreadable)

    def record_edit(self, cluster_arn: str, edit: QuotaEdit) -> None:
        """Keep who changed a quota by hand; an older event that arrives late changes nothing."""
        try:
            self._put(
                {
                    **keys.edit(cluster_arn, edit.compute_quota_id),
                    "by": edit.by,
                    "at": edit.at.isoformat(),
                    "eventName": edit.event_name,
                    "expiresAt": _expiry(edit.at, RUN_DAYS),
                },
                ConditionExpression="attribute_not_exists(pk) OR #at <= :at",
                ExpressionAttributeNames={"#at": "at"},
                ExpressionAttributeValues={":at": edit.at.isoformat()},
            )
        except ConflictError:
            return  # a newer edit is on record

    def refusals(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[RefusedWrite, ...]:
        """Return the writes that were refused, by subject."""
        return self._read(cluster_arn, keys.REFUSED, _record(REFUSED), on_unreadable)

    def record_refusal(self, cluster_arn: str, refused: RefusedWrite) -> None:
        """Keep a write that was refused, in place of an earlier one of its subject."""
        key, record = keys.refused(cluster_arn, refused.subject), REFUSED.kept(refused).decode()
        self._put({**key, "record": record, "expiresAt": _expiry(refused.at, REFUSED_DAYS)})

    def forget_refusal(self, cluster_arn: str, subject: str) -> None:
        """Let the writes of a subject be asked for again."""
        with translated(f"forget the refused write of {subject}"):
            self._table.delete_item(Key=keys.refused(cluster_arn, subject))

    def last_look(self, cluster_arn: str) -> datetime | None:
        """Return when the cluster was last read without an error, or None."""
        item = self._item(keys.look(cluster_arn))
        return read(item, lambda found: _moment(found["at"])) if item else None

    def record_look(self, cluster_arn: str, at: datetime) -> None:
        """Keep when the cluster was read without an error."""
        self._put({**keys.look(cluster_arn), "at": at.isoformat()})

    def record_run(self, record: RunRecord) -> None:
        """Keep the record of a run."""
        fields = {
            "outcome": record.outcome,
            "startedAt": record.started_at.isoformat(),
            "endedAt": record.ended_at.isoformat(),
            "planId": record.plan_id,
            "plan": record.plan.model_dump_json(by_alias=True) if record.plan else None,
            "snapshot": record.snapshot.model_dump_json(by_alias=True) if record.snapshot else None,
            "cause": record.cause.model_dump_json(by_alias=True, exclude_none=True) if record.cause else None,
            "applied": record.applied,
            "error": record.error,
            "written": list(record.written) or None,
            "expiresAt": _expiry(record.ended_at, RUN_DAYS),
        }
        self._put(
            {
                **keys.run(record.cluster_arn, record.started_at, record.run_id),
                **{name: value for name, value in fields.items() if value is not None},
            }
        )

    def last_run(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[str, datetime] | None:
        """Return the newest record's run and its end."""
        condition = Key("pk").eq(keys.cluster(cluster_arn)) & Key("sk").begins_with(keys.RUN)
        with translated(f"read the last run of {cluster_arn}"):
            items = self._table.query(
                KeyConditionExpression=condition, ScanIndexForward=False, Limit=1, ConsistentRead=True
            )["Items"]
        return read(items[0], _end_of_run, on_unreadable) if items else None

    def count_once(self, cluster_arn: str, identity: str, now: datetime, *, by: str | None = None) -> bool:
        """Return True the first time an identity is seen, and whenever the same `by` asks again."""
        try:
            self._put(
                _counted(cluster_arn, identity, now, by or ""),
                ConditionExpression="attribute_not_exists(pk) OR (#by = :by AND #by <> :nobody)",
                ExpressionAttributeNames={"#by": "by"},
                ExpressionAttributeValues={":by": by or "", ":nobody": ""},
            )
        except ConflictError:
            return False
        return True

    def confirm_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        """Keep that it is done: nobody counts it again."""
        self._put(_counted(cluster_arn, identity, now, by=""))

    def was_counted(self, cluster_arn: str, identity: str) -> bool:
        """Return whether an identity was counted, strongly consistent."""
        return bool(self._item(keys.once(cluster_arn, identity)))

    def forget_once(self, cluster_arn: str, identity: str) -> None:
        """Let an identity count again."""
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

    def _item(self, key: dict[str, str]) -> Mapping[str, Any]:
        with translated(f"read {key['pk']} {key['sk']}"):
            return self._table.get_item(Key=key, ConsistentRead=True).get("Item", {})

    def _read(
        self, cluster_arn: str, prefix: str, form: Callable[[Item], Record], on_unreadable: OnUnreadable | None
    ) -> tuple[Record, ...]:
        found = (read(item, form, on_unreadable) for item in self._items(cluster_arn, prefix))
        return tuple(each for each in found if each is not None)

    def _items(self, cluster_arn: str, prefix: str) -> list[Mapping[str, Any]]:
        condition = Key("pk").eq(keys.cluster(cluster_arn)) & Key("sk").begins_with(prefix)
        items: list[Mapping[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            with translated(f"list {prefix} of {cluster_arn}"):
                page = self._table.query(KeyConditionExpression=condition, ConsistentRead=True, **start)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _put(self, item: dict[str, Any], **condition: Any) -> None:
        with translated(f"write {item['pk']} {item['sk']}"):
            self._table.put_item(Item=in_form(item), **condition)


def _text(item: Mapping[str, Any], name: str) -> str | None:
    return str(item[name]) if name in item else None


def _counted(cluster_arn: str, identity: str, now: datetime, by: str) -> dict[str, Any]:
    return {**keys.once(cluster_arn, identity), "by": by, "expiresAt": _expiry(now, ONCE_DAYS)}


def _lock(item: Mapping[str, Any]) -> Lock:
    def number(name: str) -> int | None:
        return _integer(item[name]) if name in item else None

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


def _integer(value: object) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise UpstreamError(f"the table holds {str(value)[:40]!r} in the place of a whole number") from error


def _expiry(at: datetime, days: int) -> int:
    return int(at.timestamp() + timedelta(days=days).total_seconds())  # also where the last year of the calendar ends


def _end_of_run(item: Item) -> tuple[str, datetime]:
    return str(item["sk"]).split("#", 2)[2], _moment(item["endedAt"])


def _moment(text: object) -> datetime:
    return datetime.fromisoformat(str(text)).astimezone(UTC)


def _record(form: KeptForm[Record]) -> Callable[[Item], Record]:
    """Return who reads the records of one form: their attribute `record` is JSON."""
    return lambda item: form.read(item["record"])


def _edit(item: Mapping[str, Any]) -> QuotaEdit:
    return QuotaEdit(item["sk"].removeprefix(keys.EDIT), str(item["by"]), _moment(item["at"]), str(item["eventName"]))
