"""A sequence's side on the real Kueue: its objects, and what happens to them.

Workloads are made without jobs, as Kueue's own performance test makes them: the player of the sequence takes the part
of the job's controller, and so decides when the pods of a workload that was told to leave are gone. What a release
writes is what `pkg/controller/jobframework/reconciler.go` writes then (step 6, handle eviction).
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.cluster.differential.api import key_of
from tests.cluster.kube import conditions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cluster.differential.api import Api, Workloads
    from tests.cluster.differential.sequence import Sequence
    from tests.cluster.kube import Object

_ORDER_OF_DELETION: Final = ("LimitRange", "LocalQueue", "ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass")


class RealSide:
    """One sequence's objects on the API server."""

    def __init__(self, api: Api, workloads: Workloads, played: Sequence) -> None:
        self._api = api
        self._workloads = workloads
        self._played = played
        self._submitted: dict[str, Object] = {}
        self._written: dict[str, Object] = {}

    def begin(self) -> list[Object]:
        """Make everything that is there at first; return it as stored."""
        return [self._api.create(one) for one in self._played.objects]

    def submit(self, workload: Object) -> Object:
        """Submit a workload; return it as stored."""
        stored = self._api.create(workload)
        self._submitted[key_of(stored)] = stored
        return stored

    def apply(self, manifest: Object) -> Object:
        """Change an object; return it as stored."""
        return self._api.replace(manifest)

    def finish(self, key: str) -> None:
        """Let a workload be done, as its job's controller writes it."""

        def change(status: Object) -> None:
            _set(status, "Finished", "True", "Succeeded", "Job finished successfully")

        self._written[key] = self._api.change_status(self._submitted[key], change)

    def release(self, key: str) -> None:
        """Free the quota of a workload that was told to leave: its pods are gone."""
        self._written[key] = self._api.change_status(self._submitted[key], _leave)

    def reclaim(self, key: str, pod_set: str, count: int) -> None:
        """Write that so many pods of a pod set are done and not needed again."""

        def change(status: Object) -> None:
            others = [one for one in status.get("reclaimablePods", ()) if one["name"] != pod_set]
            status["reclaimablePods"] = [*others, {"name": pod_set, "count": count}]

        self._written[key] = self._api.change_status(self._submitted[key], change)

    def submitted(self, key: str) -> Object:
        """Return a workload as it was stored when it was submitted."""
        return self._submitted[key]

    def delete(self, key: str) -> None:
        """Delete a workload."""
        self._api.delete(self._submitted[key])

    def workload(self, key: str) -> Object | None:
        """Return a workload as last seen, and no older than what was written here."""
        seen, written = self._workloads.get(key), self._written.get(key)
        return written if seen and written and _version(seen) < _version(written) else seen

    def catch_up(self, keys: Iterable[str]) -> None:
        """Wait until the watch has seen what the API server has of workloads now."""
        for key in keys:
            now = self._api.read(self._submitted[key])
            if now is not None:
                self._workloads.wait(f"{key} is seen as it is", partial(self._is_seen, key, _version(now)))

    def _is_seen(self, key: str, version: int) -> bool:
        seen = self._workloads.get(key)
        return seen is not None and _version(seen) >= version

    def end(self) -> None:
        """Take everything away but namespaces, which nobody would clean up behind us."""
        for one in self._played.objects:
            if one["kind"] == "Namespace":
                self._api.delete_workloads(one["metadata"]["name"])
        for kind in _ORDER_OF_DELETION:
            for one in self._played.objects:
                if one["kind"] == kind:
                    self._api.delete(one)


def _version(workload: Object) -> int:
    """Return the version, which etcd counts up."""
    return int(workload["metadata"]["resourceVersion"])


def _leave(status: Object) -> None:
    evicted = conditions({"status": status})["Evicted"]
    message = evicted["message"]
    comes_back = "True" if evicted["reason"] == "Preempted" else "False"
    _set(status, "Requeued", comes_back, evicted["reason"], message)
    _set(status, "QuotaReserved", "False", "Pending", message)
    _set(status, "Admitted", "False", "NoReservation", "The workload has no reservation")
    status.pop("admission", None)


def _set(status: Object, kind: str, value: str, reason: str, message: str) -> None:
    """Write a condition; its moment changes only when its status does."""
    written = status.setdefault("conditions", [])
    found = next((one for one in written if one["type"] == kind), None)
    if found is None:
        found = {"type": kind, "status": "Unknown"}
        written.append(found)
    if found["status"] != value:
        found["lastTransitionTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found |= {"status": value, "reason": reason, "message": message}
