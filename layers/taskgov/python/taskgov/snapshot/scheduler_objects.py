"""Kueue's objects of a snapshot in the form and order in which the scheduling model takes them.

Predictions, explanations and what-if answers build their worlds from it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from taskgov.hyperpod.names import NAMESPACE_NAME_LABEL
from taskgov.snapshot.model import KubernetesObject, KueueObjects


def scheduler_objects(kueue: KueueObjects) -> Iterator[Mapping[str, Any]]:
    """Yield namespaces (as far as queues and workloads name them), then everything else, each saying what it is."""
    kinds: Mapping[str, tuple[KubernetesObject, ...]] = {
        "ResourceFlavor": kueue.resource_flavors,
        "Cohort": kueue.cohorts,
        "ClusterQueue": kueue.cluster_queues,
        "LocalQueue": kueue.local_queues,
        "WorkloadPriorityClass": kueue.priority_classes,
        "Workload": kueue.workloads,
    }
    for name in sorted({item["metadata"]["namespace"] for item in (*kueue.local_queues, *kueue.workloads)}):
        yield {"kind": "Namespace", "metadata": {"name": name, "labels": {NAMESPACE_NAME_LABEL: name}}}
    for kind, items in kinds.items():
        # The items of a list as the API server sends it do not say what they are.
        yield from ({**item, "kind": kind} for item in items)
