"""Which pods does a running job have? Named as the operators name them, with what Kueue injects.

A pod is Pending until it is placed and Running from then on: images are there, containers start at once.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.jobs import owner_reference
from taskgov_embedded.cluster.objects import KubeObject, timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from taskgov_manifests.pod_sets import PodSet

JOB_NAME_LABEL: Final = "training.kubeflow.org/job-name"
_KEPT_METADATA: Final = ("name", "namespace", "labels", "ownerReferences")
_SAFE_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes draws random suffixes from: no vowels, so no words."""


def pods_of(
    job: KubeObject, pod_sets: tuple[PodSet, ...], selectors: Mapping[str, Mapping[str, str]]
) -> list[KubeObject]:
    """Return the pods of a job that is to run; `selectors` are the labels of each pod set's flavor (by Kueue)."""
    return [
        _pod(job, pod_set, index, selectors.get(pod_set.name, {}))
        for pod_set in pod_sets
        for index in range(pod_set.count)
    ]


def replica_pod(deployment: KubeObject, ordinal: int) -> KubeObject:
    """Return a replica of a Deployment; each one gets its own name, the labels of both go with it."""
    name, template = deployment["metadata"]["name"], deployment["spec"]["template"]
    revision = hashlib.sha256(deployment["metadata"]["uid"].encode()).hexdigest()[:10]
    labels = {**deployment["metadata"].get("labels", {}), **template.get("metadata", {}).get("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{revision}-{suffix(revision, ordinal)}",
            "namespace": deployment["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {**template["spec"]},
        "status": {"phase": "Pending"},
    }


def placed(pod: KubeObject, node: str | None, because: str, now: datetime) -> KubeObject:
    """Return the pod on its node and running, or pending with the scheduler's sentence."""
    if node is None:
        condition = _condition("PodScheduled", "False", now, reason="Unschedulable", message=because)
        return {**pod, "status": {"phase": "Pending", "conditions": _kept(pod, condition)}}
    conditions = [_condition("PodScheduled", "True", now), _condition("Ready", "True", now)]
    status = {"phase": "Running", "startTime": timestamp(now), "conditions": conditions}
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def made_anew(pod: KubeObject) -> KubeObject:
    """Return the pod that its controller makes in the place of a lost one: on no node, with nothing begun."""
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    metadata = {name: value for name, value in pod["metadata"].items() if name in _KEPT_METADATA}
    return {**pod, "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def leaving(pod: KubeObject, now: datetime) -> KubeObject:
    """Return the pod while it is being stopped: kubectl calls it Terminating."""
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": timestamp(now)}}


def _pod(job: KubeObject, pod_set: PodSet, index: int, selector: Mapping[str, str]) -> KubeObject:
    template = pod_set.template
    metadata = template.get("metadata", {})
    name = job["metadata"]["name"]
    uid = job["metadata"]["uid"]
    own = _pod_name(job["kind"], name, uid, pod_set.name, index)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": own,
            "namespace": job["metadata"]["namespace"],
            "labels": {**metadata.get("labels", {}), JOB_NAME_LABEL: name},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {**template["spec"], "nodeSelector": {**template["spec"].get("nodeSelector", {}), **selector}},
        "status": {"phase": "Pending"},
    }


def _pod_name(kind: str, job: str, uid: str, pod_set: str, index: int) -> str:
    """Return the name that the kind's controller gives a pod."""
    match kind:
        case "Job":
            return f"{job}-{suffix(uid, index)}"
        case "StatefulSet":
            return f"{job}-{index}"
        case "RayJob":
            cluster = f"{job}-{suffix(uid, 0)}"
            role = {"head": "head", "submitter": "submitter"}.get(pod_set, f"{pod_set}-worker")
            return f"{cluster}-{role}-{suffix(f'{uid}/{pod_set}', index)}"
        case _:
            return f"{job}-{pod_set}-{index}"


def suffix(seed: str, ordinal: int) -> str:
    """Return five letters as Kubernetes appends them to generated names."""
    digest = hashlib.sha256(f"{seed}/{ordinal}".encode()).digest()
    return "".join(_SAFE_LETTERS[byte % len(_SAFE_LETTERS)] for byte in digest[:5])


def _condition(kind: str, status: str, now: datetime, **said: str) -> dict[str, Any]:
    return {"type": kind, "status": status, **said, "lastTransitionTime": timestamp(now)}


def _kept(pod: KubeObject, condition: dict[str, Any]) -> list[dict[str, Any]]:
    """Keep the moment at which the pod became unschedulable."""
    before = [earlier for earlier in pod["status"].get("conditions", ()) if earlier["type"] == condition["type"]]
    if before and before[0]["status"] == condition["status"]:
        condition["lastTransitionTime"] = before[0]["lastTransitionTime"]
    return [condition]
