"""Which objects of Kubernetes and SageMaker can decisions read? `take_snapshot` leaves the others out and reports each.

One odd object holds up nothing. What decisions make of its absence is theirs: a node counts as it did
(`taskgov.snapshot.memory`), the quota of a queue stands as it is (`taskgov.allocation.governed`), a prediction is
incomplete (`taskgov.allocation.predict`), and without an instance group, quota or cluster policy nothing is written
(`taskgov.allocation.guardrails`, `all-read`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from taskgov.scheduling.shapes import shape_of_pods
from taskgov.snapshot.derived import once
from taskgov.snapshot.forms import fault_of
from taskgov.snapshot.model import KubernetesObject, KueueObjects
from taskgov.snapshot.unreadable import CLUSTER_NODE, INSTANCE_GROUP, UnreadableObject

KINDS: Final[Mapping[str, str]] = {
    "resource_flavors": "ResourceFlavor",
    "cohorts": "Cohort",
    "cluster_queues": "ClusterQueue",
    "local_queues": "LocalQueue",
    "priority_classes": "WorkloadPriorityClass",
    "workloads": "Workload",
    "limit_ranges": "LimitRange",
    "runtime_classes": "RuntimeClass",
}
"""The kind of the objects in each field of `KueueObjects`."""


def readable_nodes(
    items: Iterable[KubernetesObject],
) -> tuple[tuple[KubernetesObject, ...], tuple[UnreadableObject, ...]]:
    """Return the Node objects that can be read, and the others."""
    return _sorted_out("Node", items)


def readable_summaries(
    summaries: Iterable[Mapping[str, Any]],
) -> tuple[tuple[Mapping[str, Any], ...], tuple[UnreadableObject, ...]]:
    """Return the summaries of ListClusterNodes that can be read, and the others."""
    return _sorted_out(CLUSTER_NODE, summaries)


def readable_groups(
    groups: Iterable[Mapping[str, Any]],
) -> tuple[tuple[Mapping[str, Any], ...], tuple[UnreadableObject, ...]]:
    """Return the instance groups of DescribeCluster that can be read, and the others."""
    return _sorted_out(INSTANCE_GROUP, groups)


def readable_kueue(kueue: KueueObjects) -> tuple[KueueObjects, tuple[UnreadableObject, ...]]:
    """Return Kueue's objects without those that cannot be read, and these."""
    if are_readable(kueue):
        return kueue, ()
    kept: dict[str, Any] = {}
    unreadable: list[UnreadableObject] = []
    for field, kind in KINDS.items():
        kept[field], odd = _sorted_out(kind, getattr(kueue, field))
        unreadable += odd
    return replace(kueue, **kept), tuple(unreadable)


def are_readable(kueue: KueueObjects) -> bool:
    """Return whether all of Kueue's objects can be read: what reads them need not check them again."""
    return _shapes_if_readable(kueue) is not None


def pod_shapes(kueue: KueueObjects) -> Sequence[bytes | None]:
    """Return the shape of the pod sets of each workload (`taskgov.scheduling.shapes`)."""
    return _shapes_if_readable(kueue) or [*map(shape_of_pods, kueue.workloads)]


@once
def _shapes_if_readable(kueue: KueueObjects) -> Sequence[bytes | None] | None:
    """Return the shapes of pods if all objects can be read: looking at a workload twice takes longer than the check."""
    known: dict[bytes, bytes] = {}
    shapes = []
    for field, kind in KINDS.items():
        for item in getattr(kueue, field):
            shape = shape_of_pods(item) if kind == "Workload" else None
            if fault_of(kind, item, shape) is not None:
                return None
            if kind == "Workload":
                shapes.append(shape and known.setdefault(shape, shape))
    return shapes


def _sorted_out(
    kind: str, items: Iterable[KubernetesObject]
) -> tuple[tuple[KubernetesObject, ...], tuple[UnreadableObject, ...]]:
    kept: list[KubernetesObject] = []
    unreadable: list[UnreadableObject] = []
    for item in items:
        because = fault_of(kind, item)
        if because is None:
            kept.append(item)
        else:
            unreadable.append(UnreadableObject.of(kind, item, because))
    return tuple(kept), tuple(unreadable)
