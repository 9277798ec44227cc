"""In what state is a job, a pod, or any object with conditions? Read from the stored objects."""

from __future__ import annotations

from typing import Final

from taskgov_embedded.cluster.jobs import JOB_TYPES, is_suspended
from taskgov_embedded.cluster.objects import TYPE_OF_KIND, KubeObject, Listable

RUNNING: Final = "Running"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
WAITING_FOR_NODES: Final = "Admitted, waiting for nodes"


def jobs_in(store: Listable, namespace: str | None = None) -> list[KubeObject]:
    """Return the jobs that are not plain pods, by kind, namespace and name."""
    kinds = [kind for kind in JOB_TYPES if kind != "Pod"]
    return [job for kind in kinds for job in store.list(TYPE_OF_KIND[kind].plural, namespace)]


def job_state(store: Listable, job: KubeObject) -> str:
    """Return what a job is doing: suspended, running, waiting for nodes though admitted, or done."""
    if "True" in {condition_status(job, "Succeeded"), condition_status(job, "Complete")}:
        return SUCCEEDED
    if is_suspended(job):
        return SUSPENDED
    pods = pods_belonging_to(store, job)
    running = bool(pods) and all(pod["status"]["phase"] == "Running" for pod in pods)
    return RUNNING if running else WAITING_FOR_NODES


def pods_belonging_to(store: Listable, job: KubeObject) -> list[KubeObject]:
    """Return the pods whose owner is this job (a pod is its own)."""
    uid = job["metadata"]["uid"]
    return [
        pod
        for pod in store.list("pods", job["metadata"]["namespace"])
        if pod["metadata"]["uid"] == uid
        or any(reference["uid"] == uid for reference in pod["metadata"].get("ownerReferences", ()))
    ]


def workloads_of(store: Listable, job: KubeObject) -> list[KubeObject]:
    """Return the Workloads whose owner is this job."""
    uid = job["metadata"]["uid"]
    return [
        workload
        for workload in store.list("workloads", job["metadata"]["namespace"])
        if any(owner["uid"] == uid for owner in workload["metadata"].get("ownerReferences", ()))
    ]


def condition_status(item: KubeObject, kind: str) -> str:
    """Return a condition's status, or nothing when the object has no such condition."""
    for condition in item.get("status", {}).get("conditions", ()):
        if condition["type"] == kind:
            return str(condition["status"])
    return ""


def pod_state(pod: KubeObject) -> tuple[str, str]:
    """Return kubectl's READY and STATUS of a pod."""
    containers = len(pod["spec"].get("containers", ())) or 1
    phase: str = pod["status"]["phase"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"{containers}/{containers}", "Terminating"
    if pod["spec"].get("schedulingGates"):
        return f"0/{containers}", "SchedulingGated"
    return f"{containers if phase == 'Running' else 0}/{containers}", phase
