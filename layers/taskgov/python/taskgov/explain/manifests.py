"""What would a job ask for? Manifests as people submit them, turned into the Workload that Kueue would make of them.

Pod sets are those of Kueue's integrations: batch Job, Kubeflow's jobs, HyperPodPyTorchJob, Pod; a Workload stays as it
is.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from taskgov.hyperpod.names import PRIORITY_CLASS_LABEL, QUEUE_NAME_LABEL, local_queue_of, namespace_of
from taskgov.kueue.jobs import labels_as_stored, queue_on_pods_only
from taskgov.scheduling.instants import instant, timestamp
from taskgov.snapshot.model import KubernetesObject, Snapshot

KINDS: Final = "Job, Pod, PyTorchJob and other Kubeflow jobs, HyperPodPyTorchJob, Workload"
QUEUE_ON_PODS: Final = "taskgov/queue-on-pods"
"""Annotation of a Workload made here: the queue that only the pod template names, where Kueue does not look."""
_REPLICA_SPECS: Final = "ReplicaSpecs"
"""How Kubeflow's jobs name their pods: `pytorchReplicaSpecs`, `mpiReplicaSpecs`, ..."""


def workload_of(manifest: Mapping[str, Any], snapshot: Snapshot, team: str | None = None) -> KubernetesObject:
    """Return the Workload of a job submitted at the moment of the snapshot; `team` overrides whose it is.

    Raises `ValueError` for a kind that queues do not govern, and for a job that says neither namespace nor team.
    """
    kind, metadata = str(manifest.get("kind")), manifest.get("metadata") or {}
    namespace = namespace_of(team) if team else metadata.get("namespace")
    name = metadata.get("name") or metadata.get("generateName", "job").rstrip("-")
    if not namespace:
        raise ValueError(f"{kind} {name} says no namespace: write metadata.namespace, or give its team")
    labels = labels_as_stored(manifest)
    on_pods = None if team else queue_on_pods_only(manifest)
    spec = dict(manifest.get("spec") or {}) if kind == "Workload" else _spec(manifest, labels)
    if team:
        spec["queueName"] = local_queue_of(team)
    return {
        "kind": "Workload",
        "metadata": {
            "name": name if kind == "Workload" else f"{kind.lower()}-{name}",
            "namespace": namespace,
            "uid": f"submitted-{namespace}-{name}",
            "creationTimestamp": timestamp(instant(snapshot.taken_at)),
            "labels": dict(labels),
            "ownerReferences": [{"kind": kind, "name": name, "controller": True}],
            **({"annotations": {QUEUE_ON_PODS: on_pods}} if on_pods else {}),
        },
        "spec": spec,
        "status": {},
    }


def _spec(manifest: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"queueName": labels.get(QUEUE_NAME_LABEL, ""), "podSets": list(_pod_sets(manifest))}
    if PRIORITY_CLASS_LABEL in labels:
        spec["priorityClassRef"] = {"kind": "WorkloadPriorityClass", "name": labels[PRIORITY_CLASS_LABEL]}
    return spec


def _pod_sets(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind, spec = manifest.get("kind"), manifest.get("spec") or {}
    replicas = next((key for key in spec if key.endswith(_REPLICA_SPECS)), None)
    if kind == "Job":
        parallel = spec.get("parallelism", 1)
        yield _pod_set("main", min(parallel, spec.get("completions", parallel)), spec["template"])
    elif kind == "Pod":
        yield _pod_set("main", 1, {"spec": spec})
    elif kind == "HyperPodPyTorchJob":
        for one in spec["replicaSpecs"]:
            yield _pod_set(one["name"], one.get("replicas", 1), one["template"])
    elif replicas is not None:
        # Kubeflow's order: the one that leads comes first.
        for name in sorted(spec[replicas], key=lambda name: (name not in {"Master", "Launcher", "Chief"}, name)):
            yield _pod_set(name.lower(), spec[replicas][name].get("replicas", 1), spec[replicas][name]["template"])
    else:
        raise ValueError(f"{kind} is no kind of job that queues govern here: {KINDS}")


def _pod_set(name: str, count: int, template: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "count": count, "template": {"spec": template["spec"]}}
