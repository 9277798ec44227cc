"""Does a quota or the cluster policy hold what a change writes? Asked before a write is made again, or undone."""

from dataclasses import dataclass

from taskgov.allocation.plan import Change, ChangeKind, Plan
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.equality import is_same_config, is_same_scheduler_config, is_same_target
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig
from taskgov.ports import ClusterBackend, Written
from taskgov.services.plan_path import QuotaPath

IN_FLIGHT = frozenset({"Creating", "Updating", "Deleting"})
"""Statuses in which a quota or the cluster policy takes no other write."""


@dataclass(frozen=True, slots=True)
class WrittenAlready:
    """Looks for what an earlier try of a change left."""

    backends: ClusterBackend

    def of(self, plan: Plan, change: Change, path: QuotaPath) -> Written | None:
        """Return what an earlier try of this very change left, or None: what is there then is somebody else's."""
        match change.kind:
            case ChangeKind.UPDATE_QUOTA:
                quota_id, version = known(change)
                return _same_quota(self.backends.quota(quota_id), change, after_version=version)
            case ChangeKind.CREATE_QUOTA:
                quota = self.named(plan, change.name, path)
                return _same_quota(quota, change, after_version=0) if quota else None
            case ChangeKind.UPDATE_SCHEDULER_CONFIG | ChangeKind.CREATE_SCHEDULER_CONFIG:
                config = self.backends.scheduler_config(plan.cluster_arn)
                if config is None or config.cluster_scheduler_config_id in path.deleted_ids:
                    return None
                if not is_same(config.scheduler_config, change.after):
                    return None
                return Written(config.cluster_scheduler_config_id, config.cluster_scheduler_config_version)
            case ChangeKind.DELETE_QUOTA | ChangeKind.DELETE_SCHEDULER_CONFIG:
                return None

    def named(self, plan: Plan, name: str, path: QuotaPath) -> ComputeQuota | None:
        """Return the team's quota of this name, unless it is the one that the path deletes."""
        quotas = self.backends.quotas(plan.cluster_arn)
        found = [quota for quota in quotas if quota.name == name and quota.compute_quota_id not in path.deleted_ids]
        return next((quota for quota in found if quota.compute_quota_target.team_name == path.first.team), None)


def known(change: Change) -> tuple[str, int]:
    """Return the id and version that a change names. Raises InvalidRequestError when it names none."""
    return id_of(change), version_of(change)


def id_of(change: Change) -> str:
    """Return the id of what a change writes. Raises InvalidRequestError when it names none."""
    if change.resource_id is None:
        raise InvalidRequestError(f"change {change.index} of team {change.team} has no resource id")
    return change.resource_id


def version_of(change: Change) -> int:
    """Return the version at which a change is made. Raises InvalidRequestError when it names none."""
    if change.target_version is None:
        raise InvalidRequestError(f"change {change.index} of team {change.team} has no version")
    return change.target_version


def target_of(change: Change) -> ComputeQuotaTarget:
    """Return whose quota a change writes. Raises InvalidRequestError when it does not say."""
    if change.target_after is None:
        raise InvalidRequestError(f"change {change.index} of team {change.team} has no target")
    return change.target_after


def holds(quota: ComputeQuota, config: ComputeQuotaConfig | SchedulerConfig, target: ComputeQuotaTarget) -> bool:
    """Return whether a quota is what was written: its numbers, and whose it is with which weight."""
    return is_same(quota.compute_quota_config, config) and is_same_target(quota.compute_quota_target, target)


def is_same(stands: ComputeQuotaConfig | SchedulerConfig, written: ComputeQuotaConfig | SchedulerConfig) -> bool:
    """Return whether two configurations of one kind mean the same."""
    match stands, written:
        case ComputeQuotaConfig(), ComputeQuotaConfig():
            return is_same_config(stands, written)
        case SchedulerConfig(), SchedulerConfig():
            return is_same_scheduler_config(stands, written)
        case _:
            return False


def _same_quota(quota: ComputeQuota, change: Change, *, after_version: int) -> Written | None:
    same = holds(quota, change.after, target_of(change))
    if same and quota.compute_quota_version == after_version + 1:
        return Written(quota.compute_quota_id, quota.compute_quota_version)
    return None
