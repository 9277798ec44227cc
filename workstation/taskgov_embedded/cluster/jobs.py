"""What does a job ask for, and what is its workload called? Manifests in, pod sets and Workload objects out.

Kinds: PyTorchJob (Kubeflow), HyperPodPyTorchJob (HyperPod training operator), RayJob, batch Job, StatefulSet, and the
single Pod (which is what a Deployment comes to). Names and pod sets are those of Kueue's integrations.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov.hyperpod.names import PRIORITY_CLASS_LABEL, QUEUE_NAME_LABEL
from taskgov_embedded.cluster.objects import KUEUE_GROUP, TYPE_OF_KIND, KubeObject
from taskgov_manifests.pod_sets import pod_sets_of as known_pod_sets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_manifests.pod_sets import PodSet

JOB_UID_LABEL: Final = "kueue.x-k8s.io/job-uid"
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
WORKLOAD_NAME_LENGTH: Final = 63
"""Kueue 0.19 keeps workload names within a label value (feature ShortWorkloadNames)."""
HASH_LENGTH: Final = 5


@dataclass(frozen=True, slots=True)
class JobType:
    """Where one kind of job is suspended; what pods it has is read by `taskgov_manifests.pod_sets`.

    A StatefulSet has no such field: Kueue gates its pods. Here its status says that it waits for admission.
    """

    kind: str
    suspend_path: tuple[str, ...]


def pod_sets_of(job: Mapping[str, Any]) -> tuple[PodSet, ...]:
    """Return a job's pod sets. Raises ValueError when the kind is none of those that this cluster simulates."""
    _type_of(job)
    return known_pod_sets_of(job)


def queue_of(job: Mapping[str, Any]) -> str | None:
    """Return the LocalQueue that a job names in its own labels, where Kueue looks."""
    return _labels(job).get(QUEUE_NAME_LABEL)


def priority_class_of(job: Mapping[str, Any]) -> str | None:
    """Return the WorkloadPriorityClass that a job names, if any."""
    return _labels(job).get(PRIORITY_CLASS_LABEL)


def is_suspended(job: Mapping[str, Any]) -> bool:
    """Return whether a job is suspended (a Pod: gated)."""
    if job["kind"] == "Pod":
        return any(gate["name"] == ADMISSION_GATE for gate in job["spec"].get("schedulingGates", ()))
    found: Any = job
    for part in _type_of(job).suspend_path:
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found is True


def with_suspend(job: Mapping[str, Any], *, suspended: bool) -> KubeObject:
    """Return the job suspended or resumed, as Kueue's job controller patches it."""
    if job["kind"] == "Pod":
        gates = [{"name": ADMISSION_GATE}] if suspended else []
        return {**job, "spec": {**job["spec"], "schedulingGates": gates}}
    return _with(job, _type_of(job).suspend_path, suspended)


def workload_name(kind: str, name: str, uid: str) -> str:
    """Return the name that Kueue gives the workload of a job: kind, name and five digits of a hash.

    Example:
        >>> workload_name("PyTorchJob", "imagenet-gpu-team-a-1", "0001")[:-5]
        'pytorchjob-imagenet-gpu-team-a-1-'

    """
    group = TYPE_OF_KIND[kind].group
    digest = hashlib.sha1(f"{kind}\n{group}\n{name}\n{uid}".encode(), usedforsecurity=False).hexdigest()
    return f"{kind.lower()}-{name}"[: WORKLOAD_NAME_LENGTH - 1 - HASH_LENGTH] + f"-{digest[:HASH_LENGTH]}"


def workload_of(job: KubeObject, priority: int) -> KubeObject:
    """Return the Workload object of a stored, governed job."""
    metadata = job["metadata"]
    spec: KubeObject = {
        "active": True,
        "queueName": queue_of(job),
        "priority": priority,
        "podSets": [
            {"name": pod_set.name, "count": pod_set.count, "template": pod_set.template} for pod_set in pod_sets_of(job)
        ],
    }
    if name := priority_class_of(job):
        spec["priorityClassRef"] = {"group": KUEUE_GROUP, "kind": "WorkloadPriorityClass", "name": name}
    return {
        "apiVersion": f"{KUEUE_GROUP}/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": workload_name(job["kind"], metadata["name"], metadata["uid"]),
            "namespace": metadata["namespace"],
            "labels": {JOB_UID_LABEL: metadata["uid"]},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def owner_reference(job: KubeObject) -> dict[str, Any]:
    """Return the reference by which what belongs to a job names it."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": name, "uid": uid, "controller": True}


def asks(job: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what makes two versions of a job different for a queue: pods, queue and priority class."""
    if job["kind"] == "Deployment":
        return (job["spec"].get("replicas", 1), job["spec"]["template"], queue_of(job), priority_class_of(job))
    return (pod_sets_of(job), queue_of(job), priority_class_of(job))


def _type_of(job: Mapping[str, Any]) -> JobType:
    found = JOB_TYPES.get(job["kind"])
    if found is None:
        raise ValueError(f"{job['kind']} is none of the simulated cluster's kinds of job: {', '.join(JOB_TYPES)}")
    return found


def _labels(item: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = item.get("metadata", {}).get("labels") or {}
    return labels


def _with(item: Mapping[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    first, *rest = path
    return {**item, first: _with(item.get(first) or {}, tuple(rest), value) if rest else value}


JOB_TYPES: Final[Mapping[str, JobType]] = {
    job_type.kind: job_type
    for job_type in (
        JobType("PyTorchJob", ("spec", "runPolicy", "suspend")),
        JobType("HyperPodPyTorchJob", ("spec", "runPolicy", "suspend")),
        JobType("RayJob", ("spec", "suspend")),
        JobType("Job", ("spec", "suspend")),
        JobType("StatefulSet", ("status", "waitsForAdmission")),
        JobType("Pod", ()),
    )
}
SUBMITTED: Final = frozenset({*JOB_TYPES, "Deployment"})
"""The kinds that people submit: their controllers make pods and workloads."""
