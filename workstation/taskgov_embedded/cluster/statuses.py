"""What does a job's controller write into its `status`? Counts, times and conditions that follow from its pods.

Fields and conditions are those of Kubernetes v1.36 (Job, Deployment, StatefulSet), of the training operator v1.9
(PyTorchJob; a HyperPodPyTorchJob has the same conditions) and of KubeRay v1.6 (RayJob).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.jobs import JOB_TYPES, is_suspended, pod_sets_of
from taskgov_embedded.cluster.objects import TYPE_OF_KIND, KubeObject, ObjectStore, timestamp
from taskgov_embedded.cluster.pods import suffix
from taskgov_embedded.cluster.states import condition_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

_OTHERS: Final = ("waitsForAdmission",)
"""What others keep in a status: whether Kueue holds a StatefulSet."""
_KINDS: Final = (*(kind for kind in JOB_TYPES if kind != "Pod"), "Deployment")


def write_statuses(store: ObjectStore, now: datetime) -> None:
    """Bring the status of every job to what its pods are now; what is the same stays untouched."""
    pods = _pods_by_owner(store)
    for kind in _KINDS:
        for job in store.list(TYPE_OF_KIND[kind].plural):
            if "generation" not in job["metadata"]:
                continue  # what an add-on installed is not part of what happens
            status = status_of(job, pods.get(job["metadata"]["uid"], ()), now)
            if status != job.get("status"):
                store.apply({**job, "status": status})


def status_of(job: KubeObject, pods: Sequence[KubeObject], now: datetime) -> KubeObject:
    """Return the status of a job with these pods. Conditions keep the moment since which they are what they are."""
    before = job.get("status") or {}
    kept = {name: before[name] for name in _OTHERS if name in before}
    return {**_WRITERS[job["kind"]](job, pods, timestamp(now)), **kept}


def _pods_by_owner(store: ObjectStore) -> dict[str, list[KubeObject]]:
    found: dict[str, list[KubeObject]] = {}
    for pod in store.list("pods"):
        for owner in pod["metadata"].get("ownerReferences", ()):
            found.setdefault(owner["uid"], []).append(pod)
    return found


def _batch(job: KubeObject, pods: Sequence[KubeObject], now: str) -> KubeObject:
    before = job.get("status") or {}
    [pod_set] = pod_sets_of(job)
    conditions = _Conditions(job, now)
    if condition_status(job, "Complete") == "True":
        conditions.hold("SuccessCriteriaMet", "True", "CompletionsReached", "Reached expected number of succeeded pods")
        conditions.hold("Complete", "True", "CompletionsReached", "Reached expected number of succeeded pods")
        completions = job["spec"].get("completions", pod_set.count)
        times = {"startTime": before.get("startTime", now), "completionTime": conditions.since("Complete")}
        return {**times, "succeeded": completions, "ready": 0, "terminating": 0, "conditions": conditions.all}
    if is_suspended(job):
        conditions.hold("Suspended", "True", "JobSuspended", "Job suspended")
        return {"ready": 0, "terminating": _leaving(pods), "conditions": conditions.all}
    if conditions.has("Suspended"):
        conditions.hold("Suspended", "False", "JobResumed", "Job resumed")
    counts = {"active": len(pods) - _leaving(pods), "ready": _running(pods), "terminating": _leaving(pods)}
    shown = {"conditions": conditions.all} if conditions.all else {}
    return {"startTime": before.get("startTime", now), **counts, **shown}


def _training(job: KubeObject, pods: Sequence[KubeObject], now: str) -> KubeObject:
    before = job.get("status") or {}
    conditions, kind, name = _Conditions(job, now), job["kind"], job["metadata"]["name"]
    conditions.hold("Created", "True", f"{kind}Created", f"{kind} {name} is created.")
    done, suspended = condition_status(job, "Succeeded") == "True", is_suspended(job)
    running = _running(pods)
    if done:
        conditions.end("Running", f"{kind}Succeeded", f"{kind} {name} is successfully completed.")
        conditions.hold("Succeeded", "True", f"{kind}Succeeded", f"{kind} {name} is successfully completed.")
    elif suspended:
        conditions.end("Running", f"{kind}Suspended", f"{kind} {name} is suspended.")
        conditions.hold("Suspended", "True", f"{kind}Suspended", f"{kind} {name} is suspended.")
    else:
        conditions.end("Suspended", f"{kind}Resumed", f"{kind} {name} is resumed.")
        if running:
            conditions.hold("Running", "True", f"{kind}Running", f"{kind} {name} is running.")
    times = {} if suspended and not done else {"startTime": before.get("startTime", now)}
    if done:
        times["completionTime"] = conditions.since("Succeeded")
    counts = {} if suspended and not done else {"replicaStatuses": _replica_statuses(job, pods, done=done)}
    return {**times, **counts, "conditions": conditions.all}


def _replica_statuses(job: KubeObject, pods: Sequence[KubeObject], *, done: bool) -> KubeObject:
    """Count a training job's pods by replica type; pods are named after it."""
    statuses: KubeObject = {}
    for pod_set in pod_sets_of(job):
        start = f"{job['metadata']['name']}-{pod_set.name}-"
        own = [pod for pod in pods if pod["metadata"]["name"].startswith(start)]
        shown = pod_set.name.capitalize() if job["kind"] == "PyTorchJob" else pod_set.name
        statuses[shown] = {"succeeded": pod_set.count} if done else {"active": _running(own)}
    return statuses


def _ray(job: KubeObject, pods: Sequence[KubeObject], now: str) -> KubeObject:
    before = job.get("status") or {}
    conditions = [condition for condition in before.get("conditions", ()) if condition["type"] == "Succeeded"]
    shown = {"conditions": conditions} if conditions else {}
    if is_suspended(job) and not conditions:
        return {"jobDeploymentStatus": "Suspended"}
    begun = {
        "rayClusterName": f"{job['metadata']['name']}-{suffix(job['metadata']['uid'], 0)}",
        "startTime": before.get("startTime", now),
    }
    if conditions:
        end = conditions[0]["lastTransitionTime"]
        return {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete", **begun, "endTime": end, **shown}
    if pods and _running(pods) == len(pods):
        return {"jobStatus": "RUNNING", "jobDeploymentStatus": "Running", **begun}
    return {"jobDeploymentStatus": "Initializing", **begun}


def _deployment(job: KubeObject, pods: Sequence[KubeObject], now: str) -> KubeObject:
    present, running, wanted = len(pods) - _leaving(pods), _running(pods), _replicas(job)
    conditions = _Conditions(job, now)
    if running >= wanted:
        conditions.hold(
            "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", in_place=True
        )
    else:
        told = "Deployment does not have minimum availability."
        conditions.hold("Available", "False", "MinimumReplicasUnavailable", told, in_place=True)
    counts = {
        "replicas": present,
        "updatedReplicas": present,
        "readyReplicas": running,
        "availableReplicas": running,
        "unavailableReplicas": max(0, wanted - running),
    }
    observed = {"observedGeneration": job["metadata"]["generation"]}
    return {**observed, **{name: count for name, count in counts.items() if count}, "conditions": conditions.all}


def _stateful(job: KubeObject, pods: Sequence[KubeObject], _now: str) -> KubeObject:
    present, running = len(pods), _running(pods)
    digest = hashlib.sha256(job["metadata"]["uid"].encode()).hexdigest()[:10]
    revision = f"{job['metadata']['name']}-{digest}"
    return {
        "observedGeneration": job["metadata"]["generation"],
        "replicas": present,
        **({"readyReplicas": running, "currentReplicas": running, "updatedReplicas": running} if running else {}),
        "availableReplicas": running,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


_WRITERS: Final[Mapping[str, Callable[[KubeObject, Sequence[KubeObject], str], KubeObject]]] = {
    "Job": _batch,
    "PyTorchJob": _training,
    "HyperPodPyTorchJob": _training,
    "RayJob": _ray,
    "Deployment": _deployment,
    "StatefulSet": _stateful,
}


class _Conditions:
    """A job's conditions as its controller keeps them: one that changes moves to the end."""

    def __init__(self, job: KubeObject, now: str) -> None:
        self.all: list[dict[str, Any]] = list((job.get("status") or {}).get("conditions", ()))
        self._now = now

    def has(self, kind: str) -> bool:
        return any(condition["type"] == kind for condition in self.all)

    def since(self, kind: str) -> str:
        return str(next(condition["lastTransitionTime"] for condition in self.all if condition["type"] == kind))

    def end(self, kind: str, reason: str, message: str) -> None:
        """Let a condition that holds hold no more; one that was never there is not made."""
        if any(condition["type"] == kind and condition["status"] == "True" for condition in self.all):
            self.hold(kind, "False", reason, message)

    def hold(self, kind: str, status: str, reason: str, message: str, *, in_place: bool = False) -> None:
        old = next((known for known in self.all if known["type"] == kind), None)
        if old is not None and old["status"] == status and "reason" in old:
            return
        since = old["lastTransitionTime"] if old is not None and old["status"] == status else self._now
        told = {"reason": reason, "message": message, "lastUpdateTime": self._now, "lastTransitionTime": since}
        condition = {"type": kind, "status": status, **told}
        if old is not None and in_place:
            self.all = [condition if known is old else known for known in self.all]
        else:
            self.all = [*(other for other in self.all if other is not old), condition]


def _running(pods: Sequence[KubeObject]) -> int:
    return sum(pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"] for pod in pods)


def _leaving(pods: Sequence[KubeObject]) -> int:
    return sum("deletionTimestamp" in pod["metadata"] for pod in pods)


def _replicas(job: KubeObject) -> int:
    return int(job["spec"].get("replicas", 1))
