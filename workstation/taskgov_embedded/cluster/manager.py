"""What does Kueue do in the cluster? The engine's decisions, written on the stored objects as the manager would.

One instance is one running manager; a change of its configuration restarts it, which keeps what the objects say.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import yaml

from taskgov.hyperpod.names import KUEUE_NAMESPACE, MANAGER_CONFIG_KEY, MANAGER_CONFIG_MAP
from taskgov.kueue.render import ManagerConfiguration
from taskgov.scheduling import KueueModel, ManagerConfig
from taskgov_embedded.cluster.inadmissible import with_blocker
from taskgov_embedded.cluster.objects import RESOURCE_TYPES, TYPE_OF_KIND, KubeObject, ObjectStore, key_of, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from taskgov.scheduling import CycleResult

SCHEDULED: Final = (
    "namespaces",
    "limitranges",
    "runtimeclasses",
    "resourceflavors",
    "workloadpriorityclasses",
    "cohorts",
    "clusterqueues",
    "localqueues",
    "workloads",
)
"""What the manager watches."""
MAX_CYCLES: Final = 10_000
"""Far more than any settled cluster needs: rules can be set up so that workloads preempt one another forever."""


class KueueManager:
    """Kueue's manager over the objects of one cluster."""

    def __init__(self, store: ObjectStore, now: Callable[[], datetime], *, requeue_seconds: int = 0) -> None:
        self._store = store
        self._now = now
        self._batches_last = timedelta(seconds=requeue_seconds)
        self._batch_ends: datetime | None = None
        self._world = KueueModel(ManagerConfig())
        self._touched: set[str] = set()
        self._changed = False

    @property
    def fair_sharing(self) -> bool:
        """Whether `fairSharing` is configured."""
        return self._world.config.fair_sharing

    def configure(self, *, fair_sharing: bool) -> None:
        """Restart with or without fair sharing, when that changes anything: the objects are read again."""
        self._store.place(_config_map(ManagerConfiguration(fair_sharing=fair_sharing)))
        if fair_sharing == self.fair_sharing:
            return
        self._world = KueueModel(ManagerConfig(fair_sharing=fair_sharing))
        self._world.load(item for plural in SCHEDULED for item in self._store.list(plural))
        self._touched.update(self._world.workloads())
        self._changed = True

    def apply(self, item: KubeObject) -> KubeObject:
        """Store an object and let the manager see it."""
        existing = self._store.find(_plural(item), item["metadata"]["name"], item["metadata"].get("namespace", ""))
        status = {"status": existing["status"]} if existing and "status" in existing else {}
        stored = self._store.apply({**item, **status})
        if _plural(item) in SCHEDULED:
            self._world.apply(stored)
        self._touch(stored)
        if item["kind"] == "WorkloadPriorityClass":
            self._rank(item["metadata"]["name"], item["value"])
        return stored

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        """Remove an object, from the manager's view too."""
        if self._store.find(plural, name, namespace) is not None:
            gone = self._store.get(plural, name, namespace)
            self._store.delete(plural, name, namespace)
            if plural in SCHEDULED:
                self._world.delete(RESOURCE_TYPES[plural].kind, name, namespace)
            self._touch(gone)

    def run(self) -> list[CycleResult]:
        """Run cycles until nothing more is admitted or preempted, and write what changed.

        Workloads that may not run any more (deactivated, or of a drained queue) are evicted first.
        """
        stopped = self._world.evict_stopped(self._now())
        self._touched.update(stopped)
        self._changed = self._changed or bool(stopped)
        results = list(self._cycles())
        for result in results:
            for decided in (result.admitted, result.preempted, result.waiting):
                self._touched.update(decision.workload for decision in decided)
        if results or self._changed:
            self._write_statuses()
        return results

    def release_inadmissible(self) -> bool:
        """Let workloads that waited for a change be considered again; say whether there were any.

        Changes are gathered for a while, as Kueue does, so that those who wait are considered together.
        """
        if not self._world.notified:
            self._batch_ends = None
            return False
        self._batch_ends = self._batch_ends or self._now() + self._batches_last
        if self._batch_ends > self._now():
            return False
        self._batch_ends = None
        return self._world.requeue_inadmissible() > 0

    def next_due(self) -> datetime | None:
        """Return when those who wait for a change will be considered."""
        return self._batch_ends

    def finish_eviction(self, workload: str) -> None:
        """Free the quota of an evicted workload (`namespace/name`) whose pods are gone, and queue it again."""
        self._world.finish_eviction(workload, self._now())
        self._touched.add(workload)
        self._changed = True

    def finish(self, workload: str) -> None:
        """Free the quota of a workload whose job has succeeded."""
        self._world.finish(workload, self._now())
        self._touched.add(workload)
        self._changed = True

    def _touch(self, item: KubeObject) -> None:
        """Keep whose status may have to be written: that workload's, or everybody's when queues changed."""
        self._changed = True
        if item["kind"] == "Workload":
            self._touched.add("/".join(key_of(item)))
        else:
            self._touched.update(self._world.workloads())

    def _rank(self, priority_class: str, value: int) -> None:
        """Write a class's value on the workloads that name it: the queues rank them again."""
        for workload in self._store.list("workloads"):
            spec = workload["spec"]
            if spec.get("priorityClassRef", {}).get("name") == priority_class and spec["priority"] != value:
                self.apply({**workload, "spec": {**spec, "priority": value}})

    def _cycles(self) -> Iterator[CycleResult]:
        """Run cycles; stop when no head was admitted since the last progress."""
        tried: set[str] = set()
        for _ in range(MAX_CYCLES):
            if not self._world.has_heads():
                return
            result = self._world.cycle(self._now())
            heads = {waiting.workload for waiting in result.waiting}
            yield result
            if result.idle and heads <= tried:
                return
            tried = tried | heads if result.idle else set()
        raise RuntimeError(f"the queues did not settle within {MAX_CYCLES} cycles")

    def _write_statuses(self) -> None:
        for queue in self._store.list("clusterqueues"):
            shown = self._world.cluster_queue(queue["metadata"]["name"])
            status = _cluster_queue_status(shown["status"], fair=self.fair_sharing)
            self._store.apply({**queue, "status": _observed(status, queue["metadata"]["generation"])})
        for local in self._store.list("localqueues"):
            whole = self._store.find("clusterqueues", local["spec"]["clusterQueue"])
            if whole is not None:
                self._store.apply({**local, "status": _local_queue_status(whole["status"])})
        known = set(self._world.workloads())
        for key in sorted(self._touched & known):
            self._store.apply(with_blocker(self._world.workload(key), self._store, timestamp(self._now())))
        self._touched.clear()
        self._changed = False


def _plural(item: KubeObject) -> str:
    return TYPE_OF_KIND[item["kind"]].plural


def _cluster_queue_status(status: dict[str, Any], *, fair: bool) -> dict[str, Any]:
    """Order resources by name, as Kueue does; the share is only recorded under fair sharing."""
    shown = {name: value for name, value in status.items() if fair or name != "fairSharing"}
    for usage in ("flavorsReservation", "flavorsUsage"):
        shown[usage] = [
            {**flavor, "resources": sorted(flavor["resources"], key=lambda resource: resource["name"])}
            for flavor in status[usage]
        ]
    return shown


def _config_map(configuration: ManagerConfiguration) -> KubeObject:
    """Return what the manager is started with, as it is kept in the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": MANAGER_CONFIG_MAP, "namespace": KUEUE_NAMESPACE, "uid": f"uid-of-{MANAGER_CONFIG_MAP}"},
        "data": {MANAGER_CONFIG_KEY: yaml.safe_dump(configuration.to_manifest(), sort_keys=False)},
    }


def _observed(status: dict[str, Any], generation: int) -> dict[str, Any]:
    """Name the generation of the queue that the conditions describe."""
    return {
        **status,
        "conditions": [{**condition, "observedGeneration": generation} for condition in status["conditions"]],
    }


def _local_queue_status(status: dict[str, Any]) -> dict[str, Any]:
    """Show the queue's numbers: HyperPod gives every ClusterQueue exactly one LocalQueue."""
    counts = {name: status[name] for name in ("pendingWorkloads", "reservingWorkloads", "admittedWorkloads")}
    usages = {
        usage: [
            {
                "name": flavor["name"],
                "resources": [{"name": r["name"], "total": r["total"]} for r in flavor["resources"]],
            }
            for flavor in status[usage]
        ]
        for usage in ("flavorsReservation", "flavorsUsage")
    }
    return {**counts, **usages}
