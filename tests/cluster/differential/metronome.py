"""A workload that waits forever for another to leave, so that the scheduler never stops looking around.

Kueue keeps how far it came in a search over flavors for one cycle, and longer unless the queue's quota changes
(`pkg/scheduler/flavorassigner`). On a cluster with other cohorts cycles go on all the time; with nobody else around the
next cycle is whenever something happens. So that it does not matter how many sequences are played beside one another,
there is always somebody else around.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.cluster.differential.api import key_of
from tests.cluster.kube import conditions

if TYPE_CHECKING:
    from tests.cluster.differential.api import Api, Workloads
    from tests.cluster.kube import Object

_NAMESPACE: Final = "metronome"


class Metronome:
    """One such workload. Each has objects of its own: those of the last may still be on their way out."""

    _numbers = itertools.count(1)

    def __init__(self, api: Api) -> None:
        self._api = api
        self._name = f"metronome-{next(self._numbers)}"

    def start(self, workloads: Workloads) -> None:
        """Make the queue and its two workloads; wait until one waits for the other."""
        for one in self._objects():
            self._api.apply(one)
        for name, priority in (("stays", 0), ("waits", 1)):
            workload = self._workload(name, priority)
            self._api.create(workload)
            workloads.wait(f"{name} is looked at", partial(_looked_at, workloads, key_of(workload)))

    def stop(self) -> None:
        """Take everything away but the namespace."""
        for name in ("stays", "waits"):
            self._api.delete(self._workload(name, 0))
        for one in reversed(self._objects()[1:]):
            self._api.delete(one)

    def _objects(self) -> list[Object]:
        quota = {"name": self._name, "resources": [{"name": "cpu", "nominalQuota": "1"}]}
        queue = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        }
        door = {"name": self._name, "namespace": _NAMESPACE}
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
            _kueue("ResourceFlavor", {"name": self._name}, {}),
            _kueue("ClusterQueue", {"name": self._name}, queue),
            _kueue("LocalQueue", door, {"clusterQueue": self._name}),
        ]

    def _workload(self, name: str, priority: int) -> Object:
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        pods = {"name": "main", "count": 1, "template": template}
        spec = {"queueName": self._name, "priority": priority, "podSets": [pods]}
        return _kueue("Workload", {"name": f"{self._name}-{name}", "namespace": _NAMESPACE}, spec)


def _looked_at(workloads: Workloads, key: str) -> bool:
    return "QuotaReserved" in conditions(workloads.get(key) or {})


def _kueue(kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}
