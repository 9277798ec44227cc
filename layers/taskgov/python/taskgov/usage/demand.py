"""What do waiting workloads ask for, instance type by instance type? Fair shares are computed against it.

A waiting workload has no flavor yet. It counts for the instance type that its pods select, and otherwise for the first
one of its queue: the one that Kueue tries first.
"""

from collections.abc import Mapping

from taskgov.quantities import ResourceName
from taskgov.scheduling.objects import ClusterQueue
from taskgov.scheduling.reading import read_local_queue
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KueueObjects
from taskgov.usage.pods_asked import PodsAsked
from taskgov.usage.quota_usage import queues_in
from taskgov.usage.workload_facts import backlog_in

Demand = Mapping[tuple[str, str, ResourceName], int]
"""Cluster queue, instance type, resource -> base units."""


@once
def waiting_demand(kueue: KueueObjects) -> Demand:
    """Return what waits for quota, by cluster queue, instance type and resource."""
    flavors_of = {queue.name: _flavors(queue) for queue in queues_in(kueue)}
    cluster_queues = {
        (local.namespace, local.name): local.cluster_queue for local in map(read_local_queue, kueue.local_queues)
    }
    demand: dict[tuple[str, str, ResourceName], int] = {}
    for waiting in backlog_in(kueue):
        queue = cluster_queues.get((waiting.namespace, waiting.queue), "")
        flavors = flavors_of.get(queue, {})
        for pods in waiting.asks:
            for resource, amount in pods.requests:
                if flavor := _flavor(flavors.get(resource, ()), pods):
                    key = (queue, flavor, resource)
                    demand[key] = demand.get(key, 0) + amount * pods.number * waiting.workloads
    return demand


def _flavors(queue: ClusterQueue) -> dict[ResourceName, tuple[str, ...]]:
    """Return the flavors of each resource, in the order in which Kueue tries them: those of its first group."""
    return {resource: group.flavors for group in reversed(queue.groups) for resource in group.resources}


def _flavor(flavors: tuple[str, ...], pods: PodsAsked) -> str | None:
    """Return the flavor that counts; HyperPod names a flavor after its instance type."""
    if pods.instance_type is not None:
        return pods.instance_type if pods.instance_type in flavors else None
    return flavors[0] if flavors else None
