"""Whether two configurations are the same once written: order of rows and unwritten defaults aside.

Defaults of the API reference: LendAndBorrow with a limit of 50 percent, `LowerPriority`, weight 0, fair share on, idle
sharing off.
"""

from collections.abc import Hashable

from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    ResourceSharingConfig,
    SchedulerConfig,
    SharingStrategy,
)


def config_key(config: ComputeQuotaConfig | None) -> Hashable:
    """Return what two configs have in common exactly when they mean the same; None holds nothing."""
    held = config or ComputeQuotaConfig()
    sharing = held.resource_sharing_config or ResourceSharingConfig()
    borrows = sharing.strategy is SharingStrategy.LEND_AND_BORROW
    limit = 50 if sharing.borrow_limit is None else sharing.borrow_limit
    return (
        rows_key(held.compute_quota_resources),
        str(sharing.strategy),
        limit if borrows else None,
        rows_key(sharing.absolute_borrow_limits or ()) if borrows else None,
        str(held.preempt_team_tasks or "LowerPriority"),
    )


def rows_key(rows: tuple[ComputeQuotaResource, ...]) -> Hashable:
    """Return the rows in an order of their own, every written amount included."""
    return tuple(sorted((_row_key(row) for row in rows), key=repr))


def target_key(target: ComputeQuotaTarget | None) -> Hashable:
    """Return the team and its weight; a weight that is not given is 0."""
    return None if target is None else (target.team_name, target.fair_share_weight or 0)


def policy_key(policy: SchedulerConfig | None) -> Hashable:
    """Return what a cluster policy means; None where there is none."""
    if policy is None:
        return None
    classes = frozenset((item.name, item.weight) for item in policy.priority_classes or ())
    return classes, str(policy.fair_share or "Enabled"), str(policy.idle_resource_sharing or "Disabled")


def _row_key(row: ComputeQuotaResource) -> Hashable:
    partition = row.accelerator_partition
    return (
        row.instance_type,
        partition.type if partition else "",
        partition.count if partition else None,
        row.count,
        row.accelerators,
        row.vcpu,
        row.memory_in_gib,
    )
