"""Recover the records of quotas after the table was restored, emptied or replaced.

The last snapshot has a copy of every record, so most records are known exactly. A quota that changed since was edited
by hand if an edit is on record. Otherwise it is taken over: its record is built from the present value. A quota that
was taken over can still be raised. Its last author is unknown, so lowering it requires approval
(`taskgov.allocation.doubts`). Called by `take_snapshot` for the first snapshot that finds the loss.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from taskgov.allocation.promises import hand_edit
from taskgov.hyperpod.equality import is_same_config, is_same_target
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota, PastQuota, QuotaEdit

TAKEN_OVER: Final = "taken-over"
"""The plan id of a record that no plan made."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The records as they are known now."""

    applied: tuple[AppliedQuota, ...]
    edits: tuple[QuotaEdit, ...]
    applied_policy: AppliedPolicy | None
    taken_over: tuple[str, ...]
    """Names of quotas of which no record was left."""


def recovered(snapshot: Snapshot, last: Snapshot | None, now: datetime) -> Recovered:
    """Return the records of a cluster whose table was lost; `last` is the last snapshot, if it still exists.

    `snapshot` has the quotas that stand, and the records of the table as it was found.
    """
    kept = {record.compute_quota_id: record for record in snapshot.applied}
    copies = {record.compute_quota_id: record for record in last.applied} if last else {}
    edits = _newest((*(last.edits if last else ()), *snapshot.edits))
    seen = {quota.compute_quota_id: quota for quota in last.quotas} if last else {}
    applied, taken_over = dict(kept), []
    for quota in snapshot.quotas:
        quota_id = quota.compute_quota_id
        known = _newer(kept.get(quota_id), copies.get(quota_id))
        unchanged = quota_id in seen and _is_same(quota, seen[quota_id])
        if unchanged or (known is not None and _explains(known, quota, edits.get(quota_id))):
            if known is not None:
                applied[quota_id] = known
            continue
        applied[quota_id] = _taken_over(quota, known, now)
        taken_over.append(quota.name)
    return Recovered(
        applied=tuple(applied[quota_id] for quota_id in sorted(applied)),
        edits=tuple(edits[quota_id] for quota_id in sorted(edits)),
        applied_policy=_newer_policy(snapshot.applied_policy, last.applied_policy if last else None),
        taken_over=tuple(taken_over),
    )


def _explains(known: AppliedQuota, quota: ComputeQuota, edit: QuotaEdit | None) -> bool:
    """Return whether a record explains the present quota: it wrote the value, or has a later edit by hand."""
    return not hand_edit(quota, known) or (edit is not None and edit.at > known.at)


def _taken_over(quota: ComputeQuota, known: AppliedQuota | None, now: datetime) -> AppliedQuota:
    """Return a record of the present value, with the earlier values and the adopted edit of an older record."""
    version, config, target = quota.compute_quota_version, quota.compute_quota_config, quota.compute_quota_target
    if known is None:
        return AppliedQuota(quota.compute_quota_id, version, config, target, TAKEN_OVER, now, taken_over=True)
    past = known.history
    return replace(
        known,
        version=version,
        config=config,
        target=target,
        plan_id=TAKEN_OVER,
        at=now,
        history=None if past is None else (*past, PastQuota(until=now, config=known.config, leased=known.leased)),
        announced=None,
        began_from=None,
        leased=None,
        demand=None,
        taken_over=True,
    )


def _is_same(quota: ComputeQuota, seen: ComputeQuota) -> bool:
    return quota.compute_quota_version == seen.compute_quota_version and (
        is_same_config(quota.compute_quota_config, seen.compute_quota_config)
        and is_same_target(quota.compute_quota_target, seen.compute_quota_target)
    )


def _newer(first: AppliedQuota | None, second: AppliedQuota | None) -> AppliedQuota | None:
    found = [record for record in (second, first) if record is not None]
    return max(found, key=lambda record: (record.version, record.at), default=None)


def _newer_policy(first: AppliedPolicy | None, second: AppliedPolicy | None) -> AppliedPolicy | None:
    found = [record for record in (second, first) if record is not None]
    return max(found, key=lambda record: record.at, default=None)


def _newest(edits: Iterable[QuotaEdit]) -> Mapping[str, QuotaEdit]:
    return {edit.compute_quota_id: edit for edit in sorted(edits, key=lambda edit: edit.at)}
