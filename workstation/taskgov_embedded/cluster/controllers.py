"""What happens to jobs and pods once Kueue has decided? They start, stop, are placed, are lost with nodes, and finish.

Plays the job controllers, Kueue's job reconciler and kube-scheduler. A pod on a node that is gone or not ready is lost
at once (a kubelet would be given five minutes) and made again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from taskgov_embedded.cluster.admission import not_governed
from taskgov_embedded.cluster.jobs import (
    asks,
    is_suspended,
    pod_sets_of,
    queue_of,
    with_suspend,
    workload_of,
)
from taskgov_embedded.cluster.jobs import priority_class_of as class_of
from taskgov_embedded.cluster.objects import TYPE_OF_KIND, KubeObject, ObjectStore, key_of, timestamp
from taskgov_embedded.cluster.placement import place_all
from taskgov_embedded.cluster.pods import leaving, made_anew, placed, pods_of
from taskgov_embedded.cluster.replicas import Replicas
from taskgov_embedded.cluster.runs import TimedRuns
from taskgov_embedded.cluster.states import condition_status, jobs_in, pods_belonging_to, workloads_of
from taskgov_manifests.queue_name import labels_as_stored, queue_on_pods_only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from taskgov_embedded.cluster.manager import KueueManager


class JobControllers:
    """Everything that acts on jobs, workloads and pods."""

    def __init__(
        self, store: ObjectStore, manager: KueueManager, now: Callable[[], datetime], *, eviction_seconds: int
    ) -> None:
        self._store = store
        self._manager = manager
        self._now = now
        self._stops_within = timedelta(seconds=eviction_seconds)
        self._runs = TimedRuns(store, now)
        self._stopping: dict[str, datetime] = {}
        self._replicas = Replicas(store, self.submit, lambda pod: self.delete("Pod", *key_of(pod)))

    # What people do

    def submit(self, manifest: Mapping[str, Any], run_seconds: int | None) -> KubeObject:
        """Create a job (or a Deployment's pods) and, where it is governed, its workload.

        Raises ValueError when there is one of this kind and name.
        """
        namespace, name = key_of(manifest)
        if self._store.find(TYPE_OF_KIND[manifest["kind"]].plural, name, namespace) is not None:
            raise ValueError(f"{manifest['kind']} {namespace}/{name} already exists")
        if manifest["kind"] == "Deployment":
            return self._replicas.deploy(manifest, run_seconds)
        labels = dict(labels_as_stored(manifest))
        manifest = {**manifest, "metadata": {**manifest["metadata"], **({"labels": labels} if labels else {})}}
        job = dict(manifest) if queue_of(manifest) is None else with_suspend(manifest, suspended=True)
        stored = self._store.apply(job)
        if run_seconds is not None:
            self._runs.add(stored, run_seconds)
        if queue_of(stored) is not None:
            self._manager.apply(workload_of(stored, self._priority_of(stored)))
        elif queue_on_pods_only(stored):
            self._store.apply(not_governed(stored, self._now()))
        return stored

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete a job with its pods and its workload. Raises KeyError when there is none."""
        job = self._store.get(TYPE_OF_KIND[kind].plural, name, namespace)
        owned = pods_belonging_to(self._store, job)
        self._store.delete(TYPE_OF_KIND[kind].plural, name, namespace)
        self._forget(job)
        for pod in owned:
            self._store.delete("pods", pod["metadata"]["name"], namespace)
            self._forget(pod)

    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod; its controller, if it has one, makes another. Raises KeyError when there is none."""
        pod = self._store.get("pods", name, namespace)
        self.delete("Pod", namespace, name)
        owners = {reference["uid"] for reference in pod["metadata"].get("ownerReferences", ())}
        job = next((found for found in jobs_in(self._store, namespace) if found["metadata"]["uid"] in owners), None)
        if job is None:
            self._replicas.replace(pod)
        elif not is_suspended(job) and not _is_done(job):
            self._runs.begin_again(owners)
            self._store.apply(made_anew(pod))

    def delete_workload(self, namespace: str, name: str) -> None:
        """Delete a workload: Kueue stops its job and queues it again. Raises KeyError when there is none."""
        job = self._job_of(self._store.get("workloads", name, namespace))
        self._manager.delete("workloads", name, namespace)
        self._stopping.pop(f"{namespace}/{name}", None)
        if job is not None and not _is_done(job):
            self._queue_anew(job)

    def change(self, before: KubeObject, after: KubeObject) -> KubeObject:
        """Take a changed job. Where its pods, queue or class are others now, it is stopped and queued again.

        Of a governed job Kueue alone decides whether it is suspended (`jobframework` reconciler: it reverts what
        others set).
        """
        if after["kind"] == "Deployment":
            return self._replicas.change(before, after)
        if queue_of(after) is not None:
            after = with_suspend(after, suspended=is_suspended(before))
        stored = self._store.apply(after)
        if after["kind"] == "Pod" or _is_done(stored):
            return stored
        if queue_of(stored) is not None:
            if asks(before) != asks(stored):
                self._queue_anew(stored)
        elif is_suspended(stored) or asks(before) != asks(stored):
            self._forget(before)
            self._delete_pods(stored)
        return stored

    # What happens by itself

    def complete_due(self) -> bool:
        """Let jobs whose time is over succeed."""
        done = self._runs.take_done()
        for job in done:
            self._succeed(job)
        return bool(done)

    def stop_due(self) -> bool:
        """Complete evictions: the job is stopped and its pods are gone, so that the quota is free."""
        due = [key for key, moment in self._stopping.items() if moment <= self._now()]
        for key in due:
            del self._stopping[key]
            self._stop(key)
        return bool(due)

    def follow_workloads(self) -> bool:
        """Start what was admitted, and begin to stop what was evicted."""
        moved = False
        for workload in self._store.list("workloads"):
            key = "/".join(key_of(workload))
            if condition_status(workload, "Finished") == "True":
                continue
            if (
                condition_status(workload, "Evicted") == "True"
                and condition_status(workload, "QuotaReserved") == "True"
            ):
                moved |= self._begin_to_stop(key, workload)
            elif condition_status(workload, "Admitted") == "True":
                moved |= self._start(workload)
        return moved

    def run_ungoverned(self) -> None:
        """Make the pods of jobs that no queue holds back."""
        for job in jobs_in(self._store):
            if queue_of(job) is None and not is_suspended(job) and not _is_done(job):
                self._make_pods(job, {})

    def lose_pods(self) -> bool:
        """Lose the pods of nodes that are gone or not ready; who owns them makes them again."""
        nodes = self._store.list("nodes")
        alive = {node["metadata"]["name"] for node in nodes if condition_status(node, "Ready") == "True"}
        lost = [pod for pod in self._store.list("pods") if pod["spec"].get("nodeName", "") not in alive | {""}]
        for pod in lost:
            self._store.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
            self._runs.begin_again(owner["uid"] for owner in pod["metadata"].get("ownerReferences", ()))
            if workloads_of(self._store, pod):
                self._forget(pod)
                self._replicas.replace(pod)
            else:
                self._store.apply(made_anew(pod))
        return bool(lost)

    def place_pods(self) -> None:
        """Place what waits for a place, and start the time of jobs that run in full."""
        pods, nodes = self._store.list("pods"), self._store.list("nodes")
        for (namespace, name), (node, because) in place_all(pods, nodes).items():
            self._store.apply(placed(self._store.get("pods", name, namespace), node, because, self._now()))
        self._runs.start()

    def next_due(self) -> datetime | None:
        """Return when the next job ends or the next eviction is complete."""
        end = self._runs.next_end()
        return min([*([end] if end else []), *self._stopping.values()], default=None)

    # Parts of these

    def _queue_anew(self, job: KubeObject) -> None:
        self._forget(job)
        self._delete_pods(job)
        waiting = self._store.apply(with_suspend(job, suspended=True))
        self._manager.apply(workload_of(waiting, self._priority_of(waiting)))

    def _delete_pods(self, job: KubeObject) -> None:
        for pod in pods_belonging_to(self._store, job):
            self._store.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _priority_of(self, job: KubeObject) -> int:
        """Return the value of the job's class; 0, below every class, without one (or without such a class)."""
        name = class_of(job)
        found = self._store.find("workloadpriorityclasses", name) if name else None
        return int(found["value"]) if found is not None else 0

    def _start(self, workload: KubeObject) -> bool:
        job = self._job_of(workload)
        if job is None or not is_suspended(job):
            return False
        selectors = self._selectors(workload)
        resumed = with_suspend(job, suspended=False)
        if job["kind"] == "Pod":
            own = selectors.get("main", {})
            resumed["spec"] = {**resumed["spec"], "nodeSelector": {**job["spec"].get("nodeSelector", {}), **own}}
            self._store.apply(resumed)
        else:
            self._make_pods(self._store.apply(resumed), selectors)
        return True

    def _begin_to_stop(self, key: str, workload: KubeObject) -> bool:
        if key in self._stopping:
            return False
        self._stopping[key] = self._now() + self._stops_within
        job = self._job_of(workload)
        for pod in pods_belonging_to(self._store, job) if job is not None else ():
            self._store.apply(leaving(pod, self._now()))
        return True

    def _make_pods(self, job: KubeObject, selectors: Mapping[str, Mapping[str, str]]) -> None:
        for pod in pods_of(job, pod_sets_of(job), selectors):
            if self._store.find("pods", pod["metadata"]["name"], pod["metadata"]["namespace"]) is None:
                self._store.apply(pod)

    def _stop(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        workload = self._store.find("workloads", name, namespace)
        job = self._job_of(workload) if workload is not None else None
        if job is None:
            return
        self._delete_pods(job)
        if job["kind"] == "Pod":
            self._forget(job)
            self._replicas.replace(job)
            return
        self._store.apply(with_suspend(job, suspended=True))
        self._runs.begin_again([job["metadata"]["uid"]])
        self._manager.finish_eviction(key)

    def _succeed(self, job: KubeObject) -> None:
        self._delete_pods(job)
        if job["kind"] != "Pod":
            done = {"type": "Complete" if job["kind"] == "Job" else "Succeeded", "status": "True"}
            status = job.get("status") or {}
            conditions = [*status.get("conditions", ()), {**done, "lastTransitionTime": timestamp(self._now())}]
            self._store.apply({**job, "status": {**status, "conditions": conditions}})
        for workload in workloads_of(self._store, job):
            self._manager.finish("/".join(key_of(workload)))

    def _forget(self, job: KubeObject) -> None:
        """Delete what stands for a job that is gone."""
        self._runs.forget(job)
        for workload in workloads_of(self._store, job):
            namespace, name = key_of(workload)
            self._stopping.pop(f"{namespace}/{name}", None)
            self._manager.delete("workloads", name, namespace)

    def _selectors(self, workload: KubeObject) -> dict[str, dict[str, str]]:
        """Return the node labels of the flavors that each pod set was given."""
        selectors: dict[str, dict[str, str]] = {}
        for assigned in workload["status"]["admission"]["podSetAssignments"]:
            labels = selectors.setdefault(assigned["name"], {})
            for flavor in sorted(set(assigned["flavors"].values())):
                labels.update(self._store.get("resourceflavors", flavor)["spec"].get("nodeLabels", {}))
        return selectors

    def _job_of(self, workload: KubeObject) -> KubeObject | None:
        [owner] = workload["metadata"]["ownerReferences"]
        return self._store.find(TYPE_OF_KIND[owner["kind"]].plural, owner["name"], workload["metadata"]["namespace"])


def _is_done(job: KubeObject) -> bool:
    return "True" in {condition_status(job, "Succeeded"), condition_status(job, "Complete")}
