"""Bring a list of quotas up to date with the writes on record: a list may be behind a write by seconds or minutes.

`take_snapshot` and `verify_plan` list quotas; where a record has a newer version than the list, or a quota that the
list does not show yet, DescribeComputeQuota decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from taskgov.errors import NotFoundError
from taskgov.hyperpod.model import ComputeQuota
from taskgov.ports import OnUnreadableObject, QuotaStore
from taskgov.snapshot.records import AppliedQuota
from taskgov.snapshot.unreadable import UnreadableObjectError

GONE: Final = "Deleted"
UNLISTED_FOR: Final = timedelta(hours=1)
"""A quota that was written longer ago than this and is not listed is gone: it is not queried for each snapshot."""
MOST_ASKED: Final = 100
"""Quotas that are read one by one for a snapshot. A list catches up, so the others are read for a later snapshot."""


@dataclass(frozen=True, slots=True)
class FreshQuotas:
    """The quotas of a cluster by name, and the ids of those that are behind their record and were not asked for."""

    quotas: tuple[ComputeQuota, ...]
    unasked: frozenset[str] = frozenset()


def fresh_quotas(
    backends: QuotaStore,
    listed: Iterable[ComputeQuota],
    records: Iterable[AppliedQuota],
    now: datetime,
    on_unreadable: OnUnreadableObject | None = None,
) -> FreshQuotas:
    """Return the listed quotas with what is behind a record read again. Raises ThrottledError, UpstreamError."""
    found = {quota.compute_quota_id: quota for quota in listed}
    behind = [record for record in records if _is_behind(found.get(record.compute_quota_id), record, now)]
    behind.sort(key=lambda record: record.at, reverse=True)
    for record in behind[:MOST_ASKED]:
        quota = _described(backends, record.compute_quota_id, on_unreadable)
        if quota is None:
            found.pop(record.compute_quota_id, None)
        else:
            found[record.compute_quota_id] = quota
    quotas = tuple(sorted(found.values(), key=lambda quota: quota.name))
    return FreshQuotas(quotas, frozenset(record.compute_quota_id for record in behind[MOST_ASKED:]))


def _is_behind(listed: ComputeQuota | None, record: AppliedQuota, now: datetime) -> bool:
    if listed is None:
        return now - record.at < UNLISTED_FOR
    return listed.compute_quota_version < record.version


def _described(backends: QuotaStore, quota_id: str, on_unreadable: OnUnreadableObject | None) -> ComputeQuota | None:
    try:
        quota = backends.quota(quota_id)
    except NotFoundError:
        return None
    except UnreadableObjectError as error:
        if on_unreadable is None:
            raise
        on_unreadable(error.odd)
        return None
    return None if quota.status == GONE else quota
