"""What do waiting workloads ask for, instance type by instance type? Fair shares are computed against it.

A waiting workload has no flavor yet. It counts for the instance type that its pods select, and otherwise for the first
one of its queue: the one that Kueue tries first.
"""

from collections.abc import Mapping

from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL
from taskgov.quantities import ResourceName
from taskgov.scheduling.objects import ClusterQueue, PodSet
from taskgov.scheduling.reading import read_cluster_queue, read_local_queue, read_workload
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KueueObjects
from taskgov.usage.workloads import waits

Demand = Mapping[tuple[str, str, ResourceName], int]
"""Cluster queue, instance type, resource -> base units."""


@once
def waiting_demand(kueue: KueueObjects) -> Demand:
    """Return what waits for quota, by cluster queue, instance type and resource."""
    queues = {queue.name: queue for queue in map(read_cluster_queue, kueue.cluster_queues)}
    cluster_queues = {
        (local.namespace, local.name): local.cluster_queue for local in map(read_local_queue, kueue.local_queues)
    }
    demand: dict[tuple[str, str, ResourceName], int] = {}
    for obj in filter(waits, kueue.workloads):
        workload = read_workload(obj, {})
        queue = queues.get(cluster_queues.get((workload.namespace, workload.queue), ""))
        if queue is None:
            continue
        for pods in workload.pod_sets:
            for resource, amount in pods.requests:
                if flavor := _flavor(queue, pods, resource):
                    key = (queue.name, flavor, resource)
                    demand[key] = demand.get(key, 0) + amount * pods.count
    return demand


def _flavor(queue: ClusterQueue, pods: PodSet, resource: ResourceName) -> str | None:
    """Return the flavor that counts; HyperPod names a flavor after its instance type."""
    flavors = next((group.flavors for group in queue.groups if resource in group.resources), ())
    selected = dict(pods.node_selector).get(INSTANCE_TYPE_LABEL)
    if selected is not None:
        return selected if selected in flavors else None
    return flavors[0] if flavors else None
