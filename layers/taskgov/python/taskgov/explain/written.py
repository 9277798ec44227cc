"""What quotas and cluster policy are once a plan has been written."""

from collections.abc import Iterable

from taskgov.allocation.plan import Change
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig


def quotas_after(
    quotas: Iterable[ComputeQuota], changes: Iterable[Change]
) -> tuple[list[ComputeQuota], SchedulerConfig | None]:
    """Return all quotas with the changes of a plan written, and the cluster policy where the plan changes it."""
    by_id = {quota.compute_quota_id: quota for quota in quotas}
    scheduler = None
    for change in changes:
        if isinstance(change.after, SchedulerConfig):
            scheduler = change.after
        elif change.resource_id is not None:
            written = {"compute_quota_config": change.after, "compute_quota_target": change.target_after}
            by_id[change.resource_id] = by_id[change.resource_id].model_copy(update=written)
        else:
            by_id[f"new-{change.team}"] = _created(change, change.after)
    return list(by_id.values()), scheduler


def _created(change: Change, config: ComputeQuotaConfig) -> ComputeQuota:
    return ComputeQuota(
        compute_quota_id=f"new-{change.team}",
        name=change.name,
        compute_quota_version=1,
        status="Created",
        compute_quota_config=config,
        compute_quota_target=change.target_after or ComputeQuotaTarget(team_name=change.team),
    )
