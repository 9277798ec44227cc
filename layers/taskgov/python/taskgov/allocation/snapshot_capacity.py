"""The capacity of a snapshot: the nodes of the governed cluster, and the instance types that it names."""

from taskgov.allocation.capacity import TypeCapacity, count_capacity
from taskgov.hyperpod.instance_types import is_instance_type_name
from taskgov.policy.document import CapacityRules, PolicyDocument
from taskgov.snapshot.model import Snapshot


def capacities_of(snapshot: Snapshot) -> dict[str, TypeCapacity]:
    """Return the capacity of every instance type that has nodes, or that quotas or the document name."""
    policy = snapshot.policy
    # Other machines of the EKS cluster (for add-ons, Fargate) are not capacity of HyperPod, whose types begin with ml.
    foreign_too = policy is not None and not policy.cluster.backend.is_of_hyperpod
    nodes = (node for node in snapshot.nodes if node.instance_type)
    return count_capacity(
        (node for node in nodes if foreign_too or is_instance_type_name(node.instance_type)),
        CapacityRules() if policy is None else policy.capacity,
        snapshot.taken_at,
        snapshot.instance_types,
        instance_types=_named_types(snapshot, policy),
        memory_reserved_percent=snapshot.cluster.memory_reserved_percent,
        instance_groups=snapshot.cluster.instance_groups,
    )


def _named_types(snapshot: Snapshot, policy: PolicyDocument | None) -> set[str]:
    """Return the instance types that quotas and the document name, with nodes or without."""
    configs = [quota.compute_quota_config for quota in snapshot.quotas]
    if policy is None:
        return {row.instance_type for config in configs for row in config.compute_quota_resources}
    configs += [team.quota for team in policy.teams if team.quota is not None]
    configs += [applied.adopted for applied in snapshot.applied if applied.adopted is not None]
    named = {row.instance_type for config in configs for row in config.compute_quota_resources}
    named |= {share.instance_type for team in policy.teams for share in team.share}
    return named | {lease.instance_type for lease in policy.leases}
