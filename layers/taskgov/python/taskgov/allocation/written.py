"""What quotas and cluster policy are once a plan has been written."""

from collections.abc import Iterable, Mapping

from taskgov.allocation.plan import Change, ChangeKind
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig


def quotas_after(
    quotas: Iterable[ComputeQuota], changes: Iterable[Change]
) -> tuple[list[ComputeQuota], SchedulerConfig | None]:
    """Return all quotas with the changes of a plan written, and the cluster policy where the plan changes it."""
    by_id = {quota.compute_quota_id: quota for quota in quotas}
    scheduler = None
    for change in changes:
        if change.kind is ChangeKind.DELETE_QUOTA:
            by_id.pop(change.resource_id or "", None)
        elif isinstance(change.after, SchedulerConfig):
            scheduler = change.after
        else:
            quota = quota_after(change, by_id)
            by_id[quota.compute_quota_id] = quota
    return list(by_id.values()), scheduler


def quota_after(change: Change, quotas: Mapping[str, ComputeQuota]) -> ComputeQuota:
    """Return the quota that a change writes; one that it creates is called `new-<team>`, since it has no id yet.

    Raises `TypeError` for a change of the cluster policy.
    """
    if not isinstance(change.after, ComputeQuotaConfig):
        raise TypeError(f"{change.kind} is not the change of a quota")
    if change.resource_id is not None:
        written = {"compute_quota_config": change.after, "compute_quota_target": change.target_after}
        return quotas[change.resource_id].model_copy(update=written)
    return ComputeQuota(
        compute_quota_id=f"new-{change.team}",
        name=change.name,
        compute_quota_version=1,
        status="Created",
        compute_quota_config=change.after,
        compute_quota_target=change.target_after or ComputeQuotaTarget(team_name=change.team),
    )
