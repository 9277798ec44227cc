"""Detect a plan without progress: the previous plan wrote the same, without effect.

The writes of a run cause events, and events cause runs. Without this check, a service that stores another value than it
was sent would be written to forever.
"""

from collections.abc import Iterable

from taskgov.allocation.plan import Change
from taskgov.findings import Finding
from taskgov.findings.of_state import NO_PROGRESS
from taskgov.hyperpod.equality import is_same_config, is_same_scheduler_config, is_same_target
from taskgov.hyperpod.model import ComputeQuotaConfig, SchedulerConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota

SETTLED = frozenset({"Created", "Updated"})


def no_progress(snapshot: Snapshot, changes: Iterable[Change]) -> Finding | None:
    """Return the finding `no-progress` when every change of a plan was written before, has settled, and still stands.

    Each quota is judged by its last write. A write stands when its version is the one that the write returned.
    """
    last = {change.resource_id or f"new {change.team or change.name}": change for change in changes}
    if not last or not all(_was_written(snapshot, change) for change in last.values()):
        return None
    names = ", ".join(sorted(change.name for change in last.values()))
    subject = names if len(last) == 1 else snapshot.cluster.name
    return NO_PROGRESS.about(subject, {"changes": len(last)}, quotas=names)


def _was_written(snapshot: Snapshot, change: Change) -> bool:
    match change.after:
        case SchedulerConfig() as after:
            return _policy_was_written(snapshot, change, after)
        case ComputeQuotaConfig() as after:
            quota = next((quota for quota in snapshot.quotas if quota.compute_quota_id == change.resource_id), None)
            applied = next(
                (record for record in snapshot.applied if record.compute_quota_id == change.resource_id), None
            )
            if quota is None or applied is None or applied.began_from is not None:
                return False
            stands = quota.status in SETTLED and quota.compute_quota_version == applied.version
            return stands and _is_same(applied, after, change)


def _is_same(applied: AppliedQuota, after: ComputeQuotaConfig, change: Change) -> bool:
    same_target = change.target_after is None or is_same_target(applied.target, change.target_after)
    return same_target and is_same_config(applied.config, after)


def _policy_was_written(snapshot: Snapshot, change: Change, after: SchedulerConfig) -> bool:
    policy, applied = snapshot.scheduler_config, snapshot.applied_policy
    if policy is None or applied is None or policy.cluster_scheduler_config_id != change.resource_id:
        return False
    stands = policy.status in SETTLED and policy.cluster_scheduler_config_version == applied.version
    return stands and applied.config_id == change.resource_id and is_same_scheduler_config(applied.config, after)
