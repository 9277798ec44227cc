"""What does HyperPod's task governance add-on keep in the cluster? Namespaces, flavors, queues and priority classes.

And the admission policy that demands that jobs name their queue. It follows the compute quotas and the cluster policy
that SageMaker holds: what is new is applied, what changed is changed, and queues and classes whose quota or class is
gone are deleted. Namespaces stay, and what runs in them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.hyperpod.names import KUEUE_NAMESPACE, MANAGED_QUEUE_LABEL, NAMESPACE_NAME_LABEL
from taskgov.kueue.foundation import admission_policy
from taskgov.kueue.render import manager_configuration, render
from taskgov_embedded.cluster.objects import (
    KUEUE_GROUP,
    RESOURCE_TYPES,
    TYPE_OF_KIND,
    KubeObject,
    ObjectStore,
    key_of,
    timestamp,
)
from taskgov_embedded.cluster.versions import as_v1beta2

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
    from taskgov_embedded.cluster.manager import KueueManager

PRUNED: Final = ("localqueues", "clusterqueues", "workloadpriorityclasses", "resourceflavors")
"""What goes when nothing stands for it any more, in an order in which nothing is left referring to what is gone."""


ADD_ON_MANAGER: Final = {"manager": "eks", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:spec": {}}}
"""Who owns the fields of what an add-on installs (EKS user guide, "Determine fields you can customize")."""
KUEUE_TYPES: Final = tuple(plural for plural, kind in RESOURCE_TYPES.items() if kind.group == KUEUE_GROUP)


class AddOn:
    """The add-on of one cluster."""

    def __init__(self, store: ObjectStore, manager: KueueManager, types: InstanceTypeTable) -> None:
        self._store = store
        self._manager = manager
        self._types = types

    def install(self) -> None:
        """Put what the add-on installs into the cluster: Kueue's controller and the definitions of its types."""
        for item in (_controller(), *map(_definition, KUEUE_TYPES)):
            self._store.place(item)

    def follow(self, quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig | None) -> None:
        """Bring the cluster to these quotas and this policy.

        Raises `UnknownInstanceTypeError` for a quota on a type whose numbers are not known; nothing is changed then.
        """
        objects = [_stored_form(item) for item in render(quotas, scheduler, self._types, "v1beta2").in_order()]
        self._manager.configure(fair_sharing=manager_configuration(scheduler).fair_sharing)
        for item in objects:
            self._manager.apply(item)
        for item in admission_policy():
            if self._store.find(TYPE_OF_KIND[item["kind"]].plural, item["metadata"]["name"]) is None:
                self._store.place(_installed(item, self._store.now))
        wanted = {(TYPE_OF_KIND[item["kind"]].plural, key_of(item)) for item in objects}
        for plural in PRUNED:
            for item in self._store.list(plural):
                if (plural, key_of(item)) not in wanted and _is_ours(plural, item):
                    self._manager.delete(plural, item["metadata"]["name"], item["metadata"].get("namespace", ""))


def _controller() -> KubeObject:
    labels = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
    image = "602401143452.dkr.ecr.us-east-1.amazonaws.com/sagemaker/kueue:v0.19.2"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "kueue-controller-manager",
            "namespace": KUEUE_NAMESPACE,
            "uid": "00000000-0000-4000-8000-00000000c0de",
            "labels": labels,
            "managedFields": [ADD_ON_MANAGER],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": image}]}}},
        "status": {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1},
    }


def _definition(plural: str) -> KubeObject:
    name = f"{plural}.{KUEUE_GROUP}"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "uid": f"definition-of-{name}", "managedFields": [ADD_ON_MANAGER]},
        "spec": {"group": KUEUE_GROUP, "names": {"plural": plural, "kind": RESOURCE_TYPES[plural].kind}},
    }


def _installed(item: KubeObject, now: datetime) -> KubeObject:
    """Return an object as the add-on has installed it, at this moment."""
    metadata = {"uid": f"admission-{item['kind']}", "creationTimestamp": timestamp(now), "generation": 1}
    owned = {"resourceVersion": "1", "managedFields": [ADD_ON_MANAGER]}
    return {**item, "metadata": {**item["metadata"], **metadata, **owned}}


def _stored_form(item: KubeObject) -> KubeObject:
    if item["kind"] != "Namespace":
        return as_v1beta2(item)
    metadata = item["metadata"]
    # The API server labels every namespace with its name; queues select by it.
    return {**item, "metadata": {**metadata, "labels": {**metadata["labels"], NAMESPACE_NAME_LABEL: metadata["name"]}}}


def _is_ours(plural: str, item: KubeObject) -> bool:
    """Return whether the add-on may delete an object: queues carry its label, flavors and classes are all its own."""
    labelled = plural in {"localqueues", "clusterqueues"}
    return not labelled or item["metadata"].get("labels", {}).get(MANAGED_QUEUE_LABEL) == "true"
