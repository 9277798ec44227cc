"""The real cluster with the face of the simulated one, so that the same walkthroughs are played on it.

Kueue decides, and writes what it decides. What does not run here is played as the simulation plays it: nodes are
objects that a test makes, pods are derived from the jobs that Kueue lets run, and a job that is deleted takes its
workload along.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.usage.workload_facts import facts_of
from taskgov.usage.workloads import preemptions_of
from taskgov_embedded.cluster.fleet import Fleet
from taskgov_embedded.cluster.jobs import is_suspended, pod_sets_of
from taskgov_embedded.cluster.objects import RESOURCE_TYPES, TYPE_OF_KIND, key_of
from taskgov_embedded.cluster.placement import place_all
from taskgov_embedded.cluster.pods import placed, pods_of
from taskgov_embedded.cluster.states import condition_status
from tests.cluster.kube import is_true, really_wait
from tests.cluster.workbench import succeed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from taskgov_embedded.sagemaker.cluster_port import GroupFact, NodeFact
    from tests.cluster.kube import Kube, Object

Objects = list[dict[str, Any]]
State = tuple[tuple[tuple[str, str], ...], bool]
JOBS: Final = ("jobs", "pytorchjobs")
STEADY: Final = 0.5
STEADY_WHILE_SOME_WAIT: Final = 1.4
"""Kueue reconsiders those that wait once a second."""
LONGEST: Final = 90.0
"""A machine that is shared with other work may be slow."""


class RealStore:
    """The cluster's objects by plural name, as the simulated cluster's store has them."""

    def __init__(self, kube: Kube, now: Callable[[], datetime]) -> None:
        self._kube = kube
        self._now = now

    @property
    def resource_version(self) -> str:
        return str(self._kube.get("v1", "Namespace", "default")["metadata"]["resourceVersion"])

    def list(self, plural: str, namespace: str | None = None) -> Objects:
        """Return all objects of a type; pods are derived, jobs of kinds that are not installed are none."""
        if plural == "pods":
            found = self._pods()
        elif plural in {"hyperpodpytorchjobs", "events", "deployments"}:
            found = []
        else:
            kind = RESOURCE_TYPES[plural]
            found = [
                {"apiVersion": kind.api_version(), "kind": kind.kind, **one}
                for one in self._kube.list(kind.api_version(), kind.kind)
            ]
        return [one for one in found if namespace is None or one["metadata"].get("namespace", "") == namespace]

    def find(self, plural: str, name: str, namespace: str = "") -> Object | None:
        """Return an object, or None."""
        found = [one for one in self.list(plural, namespace or None) if one["metadata"]["name"] == name]
        return found[0] if found else None

    def get(self, plural: str, name: str, namespace: str = "") -> Object:
        """Return an object. Raises KeyError."""
        found = self.find(plural, name, namespace)
        if found is None:
            raise KeyError(f"{plural} {namespace}/{name}")
        return found

    def apply(self, item: Mapping[str, Any]) -> Object:
        """Write a Node with its status, as its kubelet would."""
        stored = {name: value for name, value in item.items() if name != "status"}
        spec = {"taints": [], **item["spec"]}
        # Twice: the API server taints a new node as not ready, and no controller runs that would take that away.
        for _ in range(2):
            self._kube.apply({**stored, "spec": spec}, manager="kubelet", force=True)
        self._kube.patch_status(dict(item), item["status"])
        return dict(item)

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        """Delete an object, if it is there."""
        kind = RESOURCE_TYPES[plural]
        place = {"namespace": namespace} if namespace else {}
        item = {"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name, **place}}
        self._kube.delete([item])

    def _pods(self) -> Objects:
        """Return the pods that the running jobs would have, placed where they fit (kube-scheduler's part)."""
        found: Objects = []
        for plural in JOBS:
            for job in self.list(plural):
                done = {condition_status(job, "Complete"), condition_status(job, "Succeeded")}
                if not is_suspended(job) and "True" not in done:
                    found += [self._born(pod, job) for pod in pods_of(job, pod_sets_of(job), {})]
        nodes, now = self.list("nodes"), self._now()
        spots = place_all(found, nodes)
        return [placed(pod, *spots[key_of(pod)], now) for pod in found]

    @staticmethod
    def _born(pod: Object, job: Object) -> Object:
        created = job["metadata"]["creationTimestamp"]
        uid = f"{job['metadata']['uid']}-{pod['metadata']['name']}"
        return {**pod, "metadata": {**pod["metadata"], "creationTimestamp": created, "uid": uid}}


@dataclass(slots=True)
class Watched:
    """What a watch on workloads has seen of each."""

    admitted: bool = False
    preempted_at: str = ""


@dataclass(slots=True)
class Decisions:
    """What Kueue decided, in the order in which it wrote it: the walkthrough's record of cycles."""

    cycles: list[Any] = field(default_factory=list)
    _seen: dict[str, Watched] = field(default_factory=dict)

    def note(self, workload: Object) -> None:
        """Take in one state of a workload."""
        name, seen = "/".join(key_of(workload)), self._seen.setdefault(workload["metadata"]["uid"], Watched())
        for one in preemptions_of([facts_of({**workload, "kind": "Workload"})]):
            if one.identity != seen.preempted_at:
                seen.preempted_at = one.identity
                queue = one.preempting_queue or f"hyperpod-ns-{one.preempting_team}-clusterqueue"
                lost = SimpleNamespace(workload=name, preemptor_queue=queue, reason=one.reason)
                self.cycles.append(SimpleNamespace(preempted=[lost], admitted=[]))
        admitted = is_true(workload, "Admitted")
        if admitted and not seen.admitted:
            self.cycles.append(SimpleNamespace(preempted=[], admitted=[SimpleNamespace(workload=name)]))
        seen.admitted = admitted


@dataclass(slots=True)
class Lengths:
    """The jobs that end by themselves: how long each runs, and since when it does."""

    now: Callable[[], datetime]
    _runs_for: dict[str, timedelta] = field(default_factory=dict)
    _since: dict[str, datetime] = field(default_factory=dict)

    def note(self, job: Object, seconds: int) -> None:
        """Let a job end after it has run so long without a break."""
        self._runs_for[job["metadata"]["uid"]] = timedelta(seconds=seconds)

    def due(self, jobs: Objects) -> Objects:
        """Return, once, those that have run to their end."""
        found: Objects = []
        for job in jobs:
            uid = job["metadata"]["uid"]
            if is_suspended(job):
                self._since.pop(uid, None)
            elif uid in self._runs_for and self.now() - self._since.setdefault(uid, self.now()) >= self._runs_for[uid]:
                del self._runs_for[uid]
                found.append(job)
        return found


class RealCluster:
    """What walkthroughs do with a cluster, done on a real one."""

    def __init__(self, name: str, kube: Kube, now: Callable[[], datetime], run_kueue: Callable[[bool], None]) -> None:
        self.name = name
        self.kube = kube
        self.store = RealStore(kube, now)
        self.fleet = Fleet(self.store, name, now, InstanceTypeTable())  # type: ignore[arg-type]
        self._run_kueue = run_kueue
        self._lengths = Lengths(now)
        self._decisions = Decisions()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def cycles(self) -> list[Any]:
        """What Kueue decided so far."""
        return self._decisions.cycles

    def close(self) -> None:
        """End the watch."""
        self._stopped.set()
        self._thread.join()

    def configure_kueue(self, *, fair_sharing: bool) -> None:
        """Run Kueue's manager so."""
        self._run_kueue(fair_sharing)

    def nodes(self) -> Sequence[NodeFact]:
        """Return every instance."""
        return self.fleet.nodes()

    def groups(self) -> Sequence[GroupFact]:
        """Return every instance group."""
        return self.fleet.groups()

    def set_target(self, group: GroupFact) -> None:
        """Let nodes join or leave."""
        self.fleet.set_target(group)

    def fail_node(self, node: str) -> None:
        """Let a node fail."""
        self.fleet.fail(node)

    def recover_node(self, node: str) -> None:
        """Let a failed node be well again."""
        self.fleet.recover(node)

    def submit(self, manifest: Mapping[str, Any], *, run_seconds: int | None = None) -> Object:
        """Create a job, and keep when it ends by itself."""
        job = self.kube.create(runnable(manifest))
        if run_seconds is not None:
            self._lengths.note(job, run_seconds)
        return job

    def delete_job(self, kind: str, namespace: str, name: str) -> None:
        """Delete a job and what Kueue made of it; there is no garbage collector to do it."""
        job = self.store.get(TYPE_OF_KIND[kind].plural, name, namespace)
        uid = job["metadata"]["uid"]
        owned = [
            one
            for one in self.store.list("workloads", namespace)
            if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", ()))
        ]
        self.kube.delete([job])
        self.kube.delete(owned)

    def update_object(self, body: Mapping[str, Any], manager: str) -> None:
        """Replace an object's spec, as `kubectl edit` does."""
        self.kube.merge(dict(body), {"spec": body["spec"]}, manager)

    def settle(self) -> State:
        """Wait, in real time, until nothing has changed for a while; return how it stands then."""
        for job in self._lengths.due([one for plural in JOBS for one in self.store.list(plural)]):
            succeed(self.kube, job)
        steady, before, waited = 0.0, self.state(), 0.0
        while waited < LONGEST:
            really_wait(0.1)
            waited += 0.1
            now = self.state()
            steady = steady + 0.1 if now == before and self._queues_know() else 0.0
            before = now
            if steady >= (STEADY_WHILE_SOME_WAIT if now[1] else STEADY):
                return now
        raise AssertionError(f"the cluster did not come to rest within {LONGEST} seconds")

    def state(self) -> State:
        """Return the versions of all workloads and queues, and whether some wait."""
        workloads, queues = self.store.list("workloads"), self.store.list("clusterqueues")
        versions = ((one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for one in (*workloads, *queues))
        some_wait = any(not is_true(one, "QuotaReserved") and not is_true(one, "Finished") for one in workloads)
        return tuple(sorted(versions)), some_wait

    def _queues_know(self) -> bool:
        """Say whether each queue's status counts who holds quota in it: Kueue writes it some time later."""
        reserving = Counter(
            one["status"]["admission"]["clusterQueue"]
            for one in self.store.list("workloads")
            if is_true(one, "QuotaReserved") and not is_true(one, "Finished")
        )
        queues = self.store.list("clusterqueues")
        return all(
            one.get("status", {}).get("reservingWorkloads", 0) == reserving[one["metadata"]["name"]] for one in queues
        )

    def _watch(self) -> None:
        kind = self.kube.kind_of({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"})
        while not self._stopped.is_set():
            try:
                for event in kind.watch(timeout=1):
                    if event["type"] in {"ADDED", "MODIFIED"}:
                        self._decisions.note(event["raw_object"])
            except (ApiException, HTTPError):
                really_wait(0.1)  # the server is away; a new watch begins with how everything stands


def runnable(manifest: Mapping[str, Any]) -> Object:
    """Return a job as the real API server takes it: an image, a restart policy, limits of extended resources."""
    job: Object = {**manifest, "metadata": dict(manifest["metadata"]), "spec": dict(manifest["spec"])}
    for pod in _pod_specs(job["spec"]):
        pod.setdefault("restartPolicy", "Never")
        for container in pod["containers"]:
            container.setdefault("image", "none")
            asked = container.get("resources", {}).get("requests", {})
            limits = {name: amount for name, amount in asked.items() if "/" in name}
            container["resources"] = {"requests": dict(asked), **({"limits": limits} if limits else {})}
    return job


def _pod_specs(spec: Any) -> list[Any]:
    if isinstance(spec, dict):
        own = [spec] if "containers" in spec else []
        return own + [found for value in spec.values() for found in _pod_specs(value)]
    return []
