"""A snapshot's scheduler as a world that questions can be put to: as it is, or with other quotas."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.kueue.render import RenderedObjects, manager_configuration, render
from taskgov.kueue.usage import team_of
from taskgov.scheduling import ManagerConfig, World
from taskgov.scheduling.reading import read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov.snapshot.scheduler_objects import scheduler_objects

MAX_CYCLES: Final = 5000
"""Cycles after which letting a world come to rest is given up."""


def world_of(
    snapshot: Snapshot, quotas: Iterable[ComputeQuota] = (), scheduler: SchedulerConfig | None = None
) -> World:
    """Return the cluster's scheduler; the queues of `quotas` are as these say, all others as the cluster has them.

    A quota of which the cluster has no queue is rendered too. Raises `ValueError` or `KeyError` for objects that
    cannot be read, and `UnknownInstanceTypeError` for quotas on types that nobody knows.
    """
    config = scheduler or _policy_of(snapshot)
    world = World(ManagerConfig(fair_sharing=manager_configuration(config).fair_sharing))
    rendered = _rendered(snapshot, quotas, config)
    world.load([*scheduler_objects(snapshot.kueue), *rendered.namespaces, *rendered.priority_classes])
    # Applied after what is there: the rendered queue takes the place of the one it is made from.
    for manifest in (*rendered.resource_flavors, *rendered.cluster_queues, *rendered.local_queues):
        world.apply(manifest)
    return world


def effective_queues(
    snapshot: Snapshot, quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig | None = None
) -> dict[str, KubernetesObject]:
    """Return the ClusterQueues, by name, that `world_of` loads for the same arguments."""
    rendered = _rendered(snapshot, quotas, scheduler or _policy_of(snapshot))
    return {each["metadata"]["name"]: each for each in (*snapshot.kueue.cluster_queues, *rendered.cluster_queues)}


def _rendered(snapshot: Snapshot, quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig | None) -> RenderedObjects:
    """Render the given quotas, and those of which the cluster has no queue."""
    seen = {team_of(queue) for queue in snapshot.kueue.cluster_queues}
    by_team = {each.compute_quota_target.team_name: each for each in snapshot.quotas}
    written = {team: quota for team, quota in by_team.items() if team not in seen}
    written |= {each.compute_quota_target.team_name: each for each in quotas}
    return render(written.values(), scheduler, table_of(snapshot))


def _policy_of(snapshot: Snapshot) -> SchedulerConfig | None:
    return snapshot.scheduler_config.scheduler_config if snapshot.scheduler_config else None


def table_of(snapshot: Snapshot) -> InstanceTypeTable:
    """Return the instance types as the policy document knows them."""
    return snapshot.policy.instance_type_table() if snapshot.policy else InstanceTypeTable()


def finish_evictions(world: World, snapshot: Snapshot) -> None:
    """Let those leave that were told to before the snapshot was taken: their pods are on the way out."""
    for key in list(world.workloads()):
        evicted = read_conditions(world.workload(key).get("status") or {}).get("Evicted")
        if evicted is not None and evicted.status and world.admission(key) is not None:
            world.finish_eviction(key, snapshot.taken_at)


def at_rest(world: World, now: datetime) -> World:
    """Return a copy in which nothing more happens as long as nobody finishes."""
    twin = world.copy()
    twin.settle(now, max_cycles=MAX_CYCLES)
    return twin
