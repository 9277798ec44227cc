"""Whether two configurations mean the same, however much of them is spelled out.

The service answers with what was requested, with defaults filled in or not (both are seen); a plan must not see a
change where there is none. The defaults are the API's documented ones.
"""

from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    PreemptTeamTasks,
    ResourceSharingConfig,
    SchedulerConfig,
    SharingStrategy,
    Switch,
)

DEFAULT_BORROW_LIMIT = 50
"""Percent; API reference, ResourceSharingConfig."""


def is_same_config(config: ComputeQuotaConfig, other: ComputeQuotaConfig) -> bool:
    """Return whether two quota configurations mean the same: order of instance types and unwritten defaults aside."""
    return spelled_out(config) == spelled_out(other)


def is_same_target(target: ComputeQuotaTarget, other: ComputeQuotaTarget) -> bool:
    """Return whether two targets mean the same; a weight that is not given is 0."""
    return (target.team_name, target.fair_share_weight or 0) == (other.team_name, other.fair_share_weight or 0)


def is_same_scheduler_config(config: SchedulerConfig, other: SchedulerConfig) -> bool:
    """Return whether two cluster policies mean the same; fair share is on and idle sharing off when not given."""
    return _policy_spelled_out(config) == _policy_spelled_out(other)


def spelled_out(config: ComputeQuotaConfig) -> ComputeQuotaConfig:
    """Return the configuration with its defaults written out and its rows in order: the same for the same meaning."""
    return ComputeQuotaConfig(
        compute_quota_resources=_in_order(config.compute_quota_resources),
        resource_sharing_config=_sharing_spelled_out(config.resource_sharing_config or ResourceSharingConfig()),
        preempt_team_tasks=config.preempt_team_tasks or PreemptTeamTasks.LOWER_PRIORITY,
    )


def _sharing_spelled_out(sharing: ResourceSharingConfig) -> ResourceSharingConfig:
    if sharing.strategy is not SharingStrategy.LEND_AND_BORROW:
        return ResourceSharingConfig(strategy=sharing.strategy)  # who may not borrow has no limit to compare
    given = sharing.borrow_limit
    return ResourceSharingConfig(
        borrow_limit=DEFAULT_BORROW_LIMIT if given is None else given,
        absolute_borrow_limits=_in_order(sharing.absolute_borrow_limits or ()),
    )


def _in_order(resources: tuple[ComputeQuotaResource, ...]) -> tuple[ComputeQuotaResource, ...]:
    """Sort by instance type, and entries on the same type by their MIG profile."""
    return tuple(sorted(resources, key=lambda resource: (resource.instance_type, _profile(resource))))


def _profile(resource: ComputeQuotaResource) -> str:
    return resource.accelerator_partition.type if resource.accelerator_partition else ""


def _policy_spelled_out(config: SchedulerConfig) -> tuple[frozenset[tuple[str, int]], Switch, Switch]:
    return (
        frozenset((priority_class.name, priority_class.weight) for priority_class in config.priority_classes or ()),
        config.fair_share or Switch.ENABLED,
        config.idle_resource_sharing or Switch.DISABLED,
    )
