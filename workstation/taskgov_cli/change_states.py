"""The state of each change of a plan: it stands, was undone, or somebody changed it since.

`taskgov rollback` looks here before it restores anything. It is judged by quota: of a quota that the plan writes twice,
or deletes and creates again, each of its changes stands up to where the quota is on that way.
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
from taskgov.services.plan_path import QuotaPath, paths

if TYPE_CHECKING:
    from taskgov.allocation.plan import Plan
    from taskgov.ports import ClusterBackend

Actual = ComputeQuota | ClusterSchedulerConfig
CREATIONS = frozenset({ChangeKind.CREATE_QUOTA, ChangeKind.CREATE_SCHEDULER_CONFIG})


class ChangeState(StrEnum):
    """What a change is now."""

    STANDS = "stands"
    """What the plan wrote is what holds: it can be restored."""
    AS_BEFORE = "as-before"
    """What held before the plan holds (again): nothing to restore."""
    CHANGED_SINCE = "changed-since"
    """Somebody, or a later run, wrote something else: it must not be undone."""


@dataclass(frozen=True, slots=True)
class ChangeSince:
    """A change and what it is now."""

    change: Change
    state: ChangeState


def change_states(backends: ClusterBackend, plan: Plan) -> list[ChangeSince]:
    """Return each change of the plan with what it is now, in the order in which changes are restored: last first.

    Raises GovernanceError when the cluster cannot be read.
    """
    quotas: list[Actual] = [*backends.quotas(plan.cluster_arn)]
    touches_policy = any(change.kind in POLICY_KINDS for change in plan.changes)
    policy = backends.scheduler_config(plan.cluster_arn) if touches_policy else None
    found: list[ChangeSince] = []
    for path in paths(plan.changes):
        made = _made(path, quotas if not path.is_policy else [policy] if policy else [])
        for place, change in enumerate(path.changes):
            if made is None:
                found.append(ChangeSince(change, ChangeState.CHANGED_SINCE))
            else:
                found.append(ChangeSince(change, ChangeState.STANDS if place < made else ChangeState.AS_BEFORE))
    return sorted(found, key=lambda entry: -entry.change.index)


def _made(path: QuotaPath, there: list[Actual]) -> int | None:
    """Return how many changes of a path stand now; None when somebody wrote something else."""
    kept = next((actual for actual in there if _id(actual) in path.deleted_ids), None)
    if kept is not None:
        return 0  # what should be deleted is still there
    if path.first.resource_id is not None and path.first.kind not in DELETIONS:
        now = next((actual for actual in there if _id(actual) == path.first.resource_id), None)
    elif path.is_policy:
        now = next(iter(there), None)
    else:
        now = next((actual for actual in there if actual.name == path.first.name), None)
    if now is None:
        return _made_of_nothing(path)
    if path.before is not None and _holds(now, path.before, path.target_before):
        return 0
    for place, change in reversed([*enumerate(path.changes, 1)]):
        if change.kind not in DELETIONS and _holds(now, change.after, change.target_after):
            # What was created and updated since is somebody's work, even when the numbers are the same again.
            return None if change.kind in CREATIONS and _version(now) != 1 else place
    return None


def _made_of_nothing(path: QuotaPath) -> int | None:
    """Return how many changes stand of a path whose quota does not exist."""
    if path.first.kind in DELETIONS:
        return 0 if path.before is None else 1
    return 0 if path.first.kind in CREATIONS else None


def _holds(
    now: Actual,
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


def _id(now: Actual) -> str:
    return now.compute_quota_id if isinstance(now, ComputeQuota) else now.cluster_scheduler_config_id


def _version(now: Actual) -> int:
    if isinstance(now, ComputeQuota):
        return now.compute_quota_version
    return now.cluster_scheduler_config_version
