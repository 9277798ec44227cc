"""What does HyperPod's task governance add-on keep in the cluster? Namespaces, flavors, queues and priority classes.

It follows the compute quotas and the cluster policy that SageMaker holds: what is new is applied, what changed is
changed, and queues and classes whose quota or class is gone are deleted. Namespaces stay, and what runs in them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.hyperpod.names import MANAGED_QUEUE_LABEL, NAMESPACE_NAME_LABEL
from taskgov.kueue.render import manager_configuration, render
from taskgov_embedded.cluster.objects import TYPE_OF_KIND, KubeObject, ObjectStore, key_of
from taskgov_embedded.cluster.versions import as_v1beta2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
    from taskgov_embedded.cluster.manager import KueueManager

PRUNED: Final = ("localqueues", "clusterqueues", "workloadpriorityclasses", "resourceflavors")
"""What goes when nothing stands for it any more, in an order in which nothing is left referring to what is gone."""


class AddOn:
    """The add-on of one cluster."""

    def __init__(self, store: ObjectStore, manager: KueueManager, types: InstanceTypeTable) -> None:
        self._store = store
        self._manager = manager
        self._types = types

    def follow(self, quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig | None) -> None:
        """Bring the cluster to these quotas and this policy.

        Raises `UnknownInstanceTypeError` for a quota on a type whose numbers are not known; nothing is changed then.
        """
        objects = [_stored_form(item) for item in render(quotas, scheduler, self._types, "v1beta2").in_order()]
        self._manager.configure(fair_sharing=manager_configuration(scheduler).fair_sharing)
        for item in objects:
            self._manager.apply(item)
        wanted = {(TYPE_OF_KIND[item["kind"]].plural, key_of(item)) for item in objects}
        for plural in PRUNED:
            for item in self._store.list(plural):
                if (plural, key_of(item)) not in wanted and _is_ours(plural, item):
                    self._manager.delete(plural, item["metadata"]["name"], item["metadata"].get("namespace", ""))


def _stored_form(item: KubeObject) -> KubeObject:
    if item["kind"] != "Namespace":
        return as_v1beta2(item)
    metadata = item["metadata"]
    # The API server labels every namespace with its name; queues select by it.
    return {**item, "metadata": {**metadata, "labels": {**metadata["labels"], NAMESPACE_NAME_LABEL: metadata["name"]}}}


def _is_ours(plural: str, item: KubeObject) -> bool:
    """Say whether the add-on may delete an object: queues carry its label, flavors and classes are all its own."""
    labelled = plural in {"localqueues", "clusterqueues"}
    return not labelled or item["metadata"].get("labels", {}).get(MANAGED_QUEUE_LABEL) == "true"
