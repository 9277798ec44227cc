"""What does a person submit? Manifests of jobs, from the few things that matter to queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from taskgov.hyperpod.names import (
    PRIORITY_CLASS_LABEL,
    QUEUE_NAME_LABEL,
    local_queue_of,
    namespace_of,
    priority_class_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.cluster.objects import KubeObject

JobKind = Literal["PyTorchJob", "HyperPodPyTorchJob", "RayJob", "Job", "Pod", "Deployment", "StatefulSet"]

_API_VERSIONS: Mapping[JobKind, str] = {
    "PyTorchJob": "kubeflow.org/v1",
    "HyperPodPyTorchJob": "sagemaker.amazonaws.com/v1",
    "RayJob": "ray.io/v1",
    "Job": "batch/v1",
    "Pod": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
}


def job_manifest(
    team: str,
    name: str,
    requests: Mapping[str, str | int],
    *,
    kind: JobKind = "PyTorchJob",
    pods: int = 1,
    priority: str | None = None,
) -> KubeObject:
    """Return a job of `pods` equal pods for a team's queue.

    `requests` are of one pod; `priority` is a class of the cluster policy, without the `-priority` of its name in
    Kubernetes. The labels are where Kueue reads them: on the job itself.
    """
    labels = {QUEUE_NAME_LABEL: local_queue_of(team)}
    if priority is not None:
        labels[PRIORITY_CLASS_LABEL] = priority_class_of(priority)
    return {
        "apiVersion": _API_VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace_of(team), "labels": labels},
        "spec": _spec(kind, pods, {"spec": _pod_spec(requests)}),
    }


def _pod_spec(requests: Mapping[str, str | int]) -> dict[str, Any]:
    amounts = {resource: str(amount) for resource, amount in requests.items()}
    return {"containers": [{"name": "main", "resources": {"requests": amounts}}]}


def _spec(kind: JobKind, pods: int, template: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case "PyTorchJob":
            return {"pytorchReplicaSpecs": {"Worker": {"replicas": pods, "template": template}}}
        case "HyperPodPyTorchJob":
            return {"replicaSpecs": [{"name": "pod", "replicas": pods, "template": template}]}
        case "Job":
            return {"parallelism": pods, "completions": pods, "template": template}
        case "RayJob":
            workers = {"groupName": "workers", "replicas": pods, "template": template}
            cluster = {"headGroupSpec": {"template": {"spec": _pod_spec({"cpu": 1})}}, "workerGroupSpecs": [workers]}
            return {"entrypoint": "python train.py", "submissionMode": "HTTPMode", "rayClusterSpec": cluster}
        case "Deployment" | "StatefulSet":
            return {"replicas": pods, "template": template}
        case "Pod":
            spec: dict[str, Any] = template["spec"]
            return spec
