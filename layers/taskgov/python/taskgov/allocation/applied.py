"""What is to be kept of a write, for the plans to come.

`apply_change` calls it after each write (and each restoration) and stores the result; plans read it from the snapshot
to know edits by hand, how far a quota moved in a period, and which edit was adopted.
"""

from datetime import datetime, timedelta
from typing import Final

from taskgov.allocation.plan import Change
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.snapshot.model import AppliedQuota, PastQuota

KEPT_FOR: Final = timedelta(days=31)
"""How long earlier configs are kept: the longest period of `maxDecreasePerPeriod` and `maxIncreasePerPeriod`."""


def remember(
    change: Change, previous: AppliedQuota | None, *, quota_id: str, version: int, plan_id: str, now: datetime
) -> AppliedQuota:
    """Return what to keep of a quota after `change` was written to it at `now`, giving `version`.

    A past that could not be read (None) stays unread: guardrails that need it fail closed until it is old enough to
    matter no longer, which only a fresh record shows. Raises `ValueError` for a change of the cluster policy.
    """
    if not isinstance(change.after, ComputeQuotaConfig) or change.target_after is None:
        raise ValueError(f"{change.kind} is not the change of a quota")
    past = () if previous is None else previous.history
    if past is not None and isinstance(change.before, ComputeQuotaConfig):
        recent = (each for each in past if each.until > now - KEPT_FOR)
        past = (*recent, PastQuota(until=now, config=change.before))
    return AppliedQuota(
        compute_quota_id=quota_id,
        version=version,
        config=change.after,
        target=change.target_after,
        plan_id=plan_id,
        at=now,
        history=past,
        adopted=change.adopted,
        promise=change.promise,
    )
