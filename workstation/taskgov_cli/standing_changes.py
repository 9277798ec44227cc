"""What has become of each change of a plan: it stands, was taken back, or somebody changed it since.

`taskgov rollback` looks here before it restores anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, ChangeKind
from taskgov.hyperpod.equality import is_same_config, is_same_scheduler_config, is_same_target
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)

if TYPE_CHECKING:
    from taskgov.allocation.plan import Plan
    from taskgov.ports import HyperPodApi

CREATIONS = frozenset({ChangeKind.CREATE_QUOTA, ChangeKind.CREATE_SCHEDULER_CONFIG})


class Standing(StrEnum):
    """What a change is now."""

    STANDS = "stands"
    """What the plan wrote is what holds: it can be restored."""
    AS_BEFORE = "as-before"
    """What held before the plan holds (again): nothing to restore."""
    CHANGED_SINCE = "changed-since"
    """Somebody, or a later run, wrote something else: it is not ours to take back."""


@dataclass(frozen=True, slots=True)
class StandingChange:
    """A change and what it is now."""

    change: Change
    standing: Standing


def standing_changes(hyperpod: HyperPodApi, plan: Plan) -> list[StandingChange]:
    """Return each change of the plan with what it is now, in the order in which changes are restored: last first.

    Raises GovernanceError when the cluster cannot be read.
    """
    quotas = hyperpod.quotas(plan.cluster_arn)
    by_id = {quota.compute_quota_id: quota for quota in quotas}
    by_name = {quota.name: quota for quota in quotas}
    touches_policy = any(change.kind in POLICY_KINDS for change in plan.changes)
    policy = hyperpod.scheduler_config(plan.cluster_arn) if touches_policy else None
    found: list[StandingChange] = []
    for change in reversed(plan.changes):
        if change.kind in POLICY_KINDS:
            now: ComputeQuota | ClusterSchedulerConfig | None = policy
        elif change.resource_id is not None:
            now = by_id.get(change.resource_id)
        else:
            now = by_name.get(change.name)
        found.append(StandingChange(change, standing_of(change, now)))
    return found


def standing_of(change: Change, now: ComputeQuota | ClusterSchedulerConfig | None) -> Standing:
    """Return what a change is, given what its quota or cluster policy is now (None: it does not exist)."""
    if change.kind in DELETIONS:
        return Standing.CHANGED_SINCE  # it had failed; what was made in its place since is no change of this plan
    if now is None:
        return Standing.AS_BEFORE if change.kind in CREATIONS else Standing.CHANGED_SINCE
    if change.before is not None and _holds(now, change.before, change.target_before):
        return Standing.AS_BEFORE
    if not _holds(now, change.after, change.target_after):
        return Standing.CHANGED_SINCE
    # What was created and updated since is somebody's work, even when the numbers are the same again.
    updated = change.kind in CREATIONS and _version(now) != 1
    return Standing.CHANGED_SINCE if updated else Standing.STANDS


def _holds(
    now: ComputeQuota | ClusterSchedulerConfig,
    wanted: ComputeQuotaConfig | SchedulerConfig,
    target: ComputeQuotaTarget | None,
) -> bool:
    match now, wanted, target:
        case ComputeQuota(), ComputeQuotaConfig(), ComputeQuotaTarget():
            same_target = is_same_target(now.compute_quota_target, target)
            return same_target and is_same_config(now.compute_quota_config, wanted)
        case ClusterSchedulerConfig(), SchedulerConfig(), None:
            return is_same_scheduler_config(now.scheduler_config, wanted)
        case _:
            return False


def _version(now: ComputeQuota | ClusterSchedulerConfig) -> int:
    if isinstance(now, ComputeQuota):
        return now.compute_quota_version
    return now.cluster_scheduler_config_version
