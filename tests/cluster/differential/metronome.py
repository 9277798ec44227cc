"""A workload that waits for ever for another to leave, so that the scheduler never stops looking around.

Kueue keeps how far it came in a search over flavors for one cycle, and longer unless the queue's quota changes
(`pkg/scheduler/flavorassigner`). On a cluster with other cohorts cycles go on all the time; with nobody else around the
next cycle is whenever something happens. So that it does not matter how many sequences are played beside one another,
there is always somebody else around.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tests.cluster.kube import conditions

if TYPE_CHECKING:
    from tests.cluster.differential.api import Api, Workloads
    from tests.cluster.kube import Object

_NAME: Final = "metronome"


def start(api: Api, workloads: Workloads) -> None:
    """Make the queue and its two workloads; wait until one waits for the other."""
    for one in _objects():
        api.apply(one)
    for name, priority in (("stays", 0), ("waits", 1)):
        api.create(_workload(name, priority))
        workloads.wait(f"{name} is looked at", partial(_looked_at, workloads, name))


def stop(api: Api) -> None:
    """Take everything away."""
    for name in ("stays", "waits"):
        api.delete(_workload(name, 0))
    for one in reversed(_objects()[1:]):
        api.delete(one)


def _looked_at(workloads: Workloads, name: str) -> bool:
    return "QuotaReserved" in conditions(workloads.get(f"{_NAME}/{name}") or {})


def _objects() -> list[Object]:
    quota = {"name": _NAME, "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    queue = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAME}},
        _kueue("ResourceFlavor", {"name": _NAME}, {}),
        _kueue("ClusterQueue", {"name": _NAME}, queue),
        _kueue("LocalQueue", {"name": _NAME, "namespace": _NAME}, {"clusterQueue": _NAME}),
    ]


def _workload(name: str, priority: int) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec = {"queueName": _NAME, "priority": priority, "podSets": [pods]}
    return _kueue("Workload", {"name": name, "namespace": _NAME}, spec)


def _kueue(kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}
