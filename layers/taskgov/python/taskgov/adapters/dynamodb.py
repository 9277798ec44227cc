"""The table: what was applied, who edited, records of runs; `taskgov.adapters.coordination` adds generations and locks.

Keys and attributes are listed in `docs/architecture.md`, "Stores".
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from secrets import token_hex
from typing import Any

from boto3.dynamodb.conditions import Key

from taskgov import keys
from taskgov.adapters.coordination import KEPT_DAYS, Coordination
from taskgov.adapters.errors import translated
from taskgov.adapters.items import Item, read
from taskgov.adapters.table_items import Record, expiry, moment
from taskgov.errors import ConflictError, GovernanceError
from taskgov.json_form import KeptForm
from taskgov.ports import OnUnreadable, RunRecord
from taskgov.snapshot.identity import StateStamp
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota, Authorship, QuotaEdit, RefusedWrite

APPLIED = KeptForm(AppliedQuota)
POLICY = KeptForm(AppliedPolicy)
REFUSED = KeptForm(RefusedWrite)
STAMP = KeptForm(StateStamp)
REFUSED_DAYS = 2
"""Longer than a refusal stands in the way of its change (`taskgov.allocation.refusals.STANDS_FOR`)."""


class Table(Coordination):
    """The `StateStore` port over one DynamoDB table."""

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
            return  # a later read is on record

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
        if not item:
            return None
        return Authorship(_text(item, "author"), _text(item, "acceptedBy"), _text(item, "claim") or "")

    def cluster_of(self, resource_id: str) -> str | None:
        """Return the cluster that a quota or scheduler config belongs to, if it is known."""
        arn = self._item(keys.owner(resource_id)).get("clusterArn")
        return str(arn) if arn else None

    def remember_resources(self, cluster_arn: str, resource_ids: Iterable[str]) -> None:
        """Keep which cluster these quotas and scheduler configs belong to; unchanged ones are not written again."""
        owned = sorted(set(resource_ids))
        # One alone needs no right to read many: apply_change has none, and neither has a person who rolls back.
        known = self._owners(owned) if len(owned) > 1 else {name: self.cluster_of(name) for name in owned}
        for resource_id in owned:
            if known.get(resource_id) != cluster_arn:
                self._put({**keys.owner(resource_id), "clusterArn": cluster_arn})

    def _owners(self, resource_ids: Iterable[str]) -> dict[str, str | None]:
        """Return the clusters that quotas and scheduler configs belong to, where they are known."""
        wanted = {keys.owner(name)["pk"]: name for name in resource_ids}
        found = self._many([keys.owner(name) for name in wanted.values()])
        return {wanted[str(item["pk"])]: _text(item, "clusterArn") for item in found}

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
        """Keep who changed a quota by hand; an older event that arrives late changes nothing.

        What a tool changed last stays with the quota: a tool that has nothing to change makes no call for years.
        """
        stays = edit.tool is not None and edit.event_name != "DeleteComputeQuota"
        try:
            self._put(
                {
                    **keys.edit(cluster_arn, edit.compute_quota_id),
                    "by": edit.by,
                    "at": edit.at.isoformat(),
                    "eventName": edit.event_name,
                    **({} if edit.tool is None else {"tool": edit.tool}),
                    **({} if stays else {"expiresAt": expiry(edit.at, KEPT_DAYS)}),
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
        self._put({**key, "record": record, "expiresAt": expiry(refused.at, REFUSED_DAYS)})

    def forget_refusal(self, cluster_arn: str, subject: str) -> None:
        """Let the writes of a subject be tried again."""
        with translated(f"forget the refused write of {subject}"):
            self._table.delete_item(Key=keys.refused(cluster_arn, subject))

    def last_look(self, cluster: str) -> datetime | None:
        """Return when the cluster was last read without an error, or None."""
        item = self._item(keys.look(cluster))
        return read(item, lambda found: moment(found["at"])) if item else None

    def record_look(self, cluster: str, at: datetime) -> None:
        """Keep when the cluster was read without an error."""
        self._put({**keys.look(cluster), "at": at.isoformat()})

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
            "expiresAt": expiry(record.ended_at, KEPT_DAYS),
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


def _text(item: Mapping[str, Any], name: str) -> str | None:
    return str(item[name]) if name in item else None


def _end_of_run(item: Item) -> tuple[str, datetime]:
    parts = str(item["sk"]).split("#", 2)
    if len(parts) != 3:
        raise ValueError("its key does not name a run")
    return parts[2], moment(item["endedAt"])


def _record(form: KeptForm[Record]) -> Callable[[Item], Record]:
    """Return who reads the records of one form: their attribute `record` is JSON."""
    return lambda item: form.read(item["record"])


def _edit(item: Mapping[str, Any]) -> QuotaEdit:
    quota_id, by, at = item["sk"].removeprefix(keys.EDIT), str(item["by"]), moment(item["at"])
    return QuotaEdit(quota_id, by, at, str(item["eventName"]), str(item["tool"]) if item.get("tool") else None)
