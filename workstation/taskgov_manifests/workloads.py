"""What would a job ask for? Manifests as people submit them, turned into the Workloads that Kueue would make of them.

Pod sets are read by `taskgov_manifests.pod_sets`; here they get their queue, namespace and priority class. A Workload
stays as it is.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from taskgov.hyperpod.names import (
    PRIORITY_CLASS_LABEL,
    QUEUE_NAME_LABEL,
    local_queue_of,
    namespace_of,
    namespace_of_local_queue,
)
from taskgov.scheduling.instants import instant, timestamp
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov_manifests.pod_sets import QUEUED_BY_REPLICA, ManifestError, pod_sets_of, replicas_of
from taskgov_manifests.queue_name import labels_as_stored, queue_on_pods_only

QUEUE_ON_PODS: Final = "taskgov/queue-on-pods"
"""Annotation of a Workload made here: the queue that only the pod template names, where Kueue does not look."""
MOST_REPLICAS: Final = 1_000
"""Replicas that are workloads of their own; more would only make the model slow."""
GROUP: Final = "kueue.x-k8s.io/pod-group-name"
GROUP_TOTAL: Final = "kueue.x-k8s.io/pod-group-total-count"
GROUP_FAST: Final = "kueue.x-k8s.io/pod-group-fast-admission"
_WITHOUT_PODS: Final = frozenset(
    {
        *("ClusterTrainingRuntime", "TrainingRuntime", "ConfigMap", "HorizontalPodAutoscaler", "Ingress", "Namespace"),
        *("NetworkPolicy", "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "PriorityClass"),
        *("Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "StorageClass"),
    }
)
"""What stands beside jobs in the files that people apply, and requests nothing."""
Manifest = Mapping[str, Any]


def workloads_of(
    manifests: Iterable[Manifest], snapshot: Snapshot, team: str | None = None
) -> tuple[KubernetesObject, ...]:
    """Return the Workloads of all that is submitted together at the moment of the snapshot; `team` overrides whose.

    Each replica of a Deployment or LeaderWorkerSet is a Workload, and so are all pods of a group together. What has no
    pods (a Service, the runtime of a TrainJob) is passed over. Raises `ManifestError`: everything that is wrong, for
    each manifest in which it is, a line each.
    """
    given = [item for manifest in manifests for item in _unfolded(manifest)]
    found: list[KubernetesObject] = []
    problems: list[str] = []
    for job in (
        manifest for manifest in given if manifest.get("kind") not in _WITHOUT_PODS and _group_of(manifest) is None
    ):
        try:
            found += _workloads(job, given, snapshot, team)
        except ManifestError as error:
            problems += [f"{_named(job)}: {line}" for line in str(error).splitlines()]
    for pods in _groups(given).values():
        try:
            found.append(_group_workload(pods, snapshot, team))
        except ManifestError as error:
            problems += [f"{_named(pods[0])}: {line}" for line in str(error).splitlines()]
    twice = Counter(f"{workload['metadata']['namespace']}/{workload['metadata']['name']}" for workload in found)
    problems += [f"{key} is submitted {count} times" for key, count in sorted(twice.items()) if count > 1]
    if not problems and not found:
        kinds = ", ".join(sorted({str(manifest.get("kind")) for manifest in given}))
        problems.append(f"{kinds or 'nothing'} has no pods: there is nothing to submit")
    if problems:
        raise ManifestError("\n".join(problems))
    return tuple(found)


def _unfolded(manifest: Manifest) -> Iterator[Manifest]:
    """Give the items of a List, as kubectl takes them."""
    if manifest.get("kind") == "List" and isinstance(manifest.get("items"), list):
        for item in manifest["items"]:
            if not isinstance(item, Mapping):
                raise ManifestError(f"items of a List must be manifests, not {json.dumps(item, default=str)[:80]}")
            yield from _unfolded(item)
    else:
        yield manifest


def _named(manifest: Manifest) -> str:
    return f"{manifest.get('kind')} {_name(manifest)}"


def _name(manifest: Manifest) -> str:
    metadata = _metadata(manifest)
    return str(metadata.get("name") or str(metadata.get("generateName") or "job").rstrip("-"))


def _metadata(manifest: Manifest) -> Mapping[str, Any]:
    metadata = manifest.get("metadata") or {}
    if not isinstance(metadata, Mapping) or not all(
        isinstance(metadata.get(key) or {}, Mapping) for key in ("labels", "annotations")
    ):
        raise ManifestError("metadata, its labels and its annotations must be mappings")
    return metadata


# One job


def _workloads(
    job: Manifest, beside: Sequence[Manifest], snapshot: Snapshot, team: str | None
) -> Iterator[KubernetesObject]:
    kind, name = str(job.get("kind")), _name(job)
    if kind == "Workload":
        pod_sets_of(job)  # refuses what cannot be read
        yield _workload(job, dict(job["spec"]), (kind, name, name), snapshot, team)
        return
    if kind == "Deployment":
        job = _labels_on_pods(job)
    spec = {"podSets": _pod_sets(job, beside)}
    if kind not in QUEUED_BY_REPLICA:
        yield _workload(job, spec, (kind, name, f"{kind.lower()}-{name}"), snapshot, team)
        return
    replicas = replicas_of(job)
    if not 1 <= replicas <= MOST_REPLICAS:
        raise ManifestError(f"spec.replicas: {replicas} - must be 1 to {MOST_REPLICAS:,} to be tried here")
    owner, first = ("LeaderWorkerSet", 0) if kind == "LeaderWorkerSet" else ("Pod", 1)
    for number in range(first, first + replicas):
        own = name if replicas == 1 else f"{name}-{number}"
        yield _workload(job, spec, (owner, own, f"{owner.lower()}-{own}"), snapshot, team)


def _labels_on_pods(deployment: Manifest) -> Manifest:
    """Let a Deployment have its pods' queue and class where it names none itself: Kueue queues its pods one by one."""
    template = (deployment.get("spec") or {}).get("template") if isinstance(deployment.get("spec"), Mapping) else None
    labels = _metadata(template).get("labels") if isinstance(template, Mapping) else None
    metadata = _metadata(deployment)
    return {**deployment, "metadata": {**metadata, "labels": {**(labels or {}), **(metadata.get("labels") or {})}}}


def _pod_sets(job: Manifest, beside: Iterable[Manifest] = ()) -> list[dict[str, Any]]:
    return [
        {"name": pod_set.name, "count": pod_set.count, "template": {"spec": pod_set.template["spec"]}}
        for pod_set in pod_sets_of(job, beside)
    ]


def _workload(
    job: Manifest, spec: dict[str, Any], names: tuple[str, str, str], snapshot: Snapshot, team: str | None
) -> KubernetesObject:
    owner, owner_name, name = names
    metadata, labels = _metadata(job), labels_as_stored(job)
    queue = labels.get(QUEUE_NAME_LABEL, "")
    namespace = namespace_of(team) if team else metadata.get("namespace") or namespace_of_local_queue(queue)
    if not namespace:
        raise ManifestError("has no namespace: write metadata.namespace, or give its team")
    on_pods = None if team else queue_on_pods_only(job)
    if "queueName" not in spec or team:
        spec = {**spec, "queueName": local_queue_of(team) if team else queue}
    if PRIORITY_CLASS_LABEL in labels and "priorityClassRef" not in spec:
        spec = {**spec, "priorityClassRef": {"kind": "WorkloadPriorityClass", "name": labels[PRIORITY_CLASS_LABEL]}}
    return {
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"submitted-{namespace}-{name}",
            "creationTimestamp": timestamp(instant(snapshot.taken_at)),
            "labels": dict(labels),
            "ownerReferences": [{"kind": owner, "name": owner_name, "controller": True}],
            **({"annotations": {QUEUE_ON_PODS: on_pods}} if on_pods else {}),
        },
        "spec": spec,
        "status": {},
    }


# Groups of pods


def _group_of(manifest: Manifest) -> str | None:
    """Return the group that a pod names, by label or, as newer versions of Kueue do, by annotation."""
    if manifest.get("kind") != "Pod":
        return None
    metadata = manifest.get("metadata") or {}
    places = (metadata.get(key) for key in ("labels", "annotations")) if isinstance(metadata, Mapping) else ()
    return next((str(place[GROUP]) for place in places if isinstance(place, Mapping) and place.get(GROUP)), None)


def _groups(given: Iterable[Manifest]) -> dict[tuple[str, str], list[Manifest]]:
    groups: dict[tuple[str, str], list[Manifest]] = {}
    for manifest in given:
        if (group := _group_of(manifest)) is not None:
            groups.setdefault((str(manifest["metadata"].get("namespace")), group), []).append(manifest)
    return groups


def _group_workload(pods: Sequence[Manifest], snapshot: Snapshot, team: str | None) -> KubernetesObject:
    """Return the one Workload of a group: pods of the same spec are a pod set."""
    first, group = pods[0], str(_group_of(pods[0]))
    total = _total(pods)
    fast = (_metadata(first).get("annotations") or {}).get(GROUP_FAST) == "true"
    if len(pods) > total or (len(pods) < total and not fast):
        rule = f"the group {group} has {len(pods)} of its {total} pods here: submit all, Kueue admits them together"
        raise ManifestError(rule)
    if len(queues := {str(labels_as_stored(member).get(QUEUE_NAME_LABEL)) for member in pods}) > 1:
        raise ManifestError(f"pods of the group {group} name different queues: {', '.join(sorted(queues))}")
    roles: dict[str, dict[str, Any]] = {}
    for pod in pods[:1] if fast else pods:
        (pod_set,) = _pod_sets(pod)
        shape = hashlib.sha256(json.dumps(pod_set["template"], sort_keys=True, default=str).encode()).hexdigest()[:8]
        role = roles.setdefault(shape, {**pod_set, "name": shape, "count": 0})
        role["count"] += total if fast else 1
    spec = {"podSets": [role for _, role in sorted(roles.items())]}
    return _workload(first, spec, ("Pod", group, group), snapshot, team)


def _total(pods: Sequence[Manifest]) -> int:
    totals = {str((_metadata(pod).get("annotations") or {}).get(GROUP_TOTAL)) for pod in pods}
    total = min(totals)
    if len(totals) > 1 or not total.isdecimal() or not 1 <= int(total) <= MOST_REPLICAS:
        rule = f"must be the same whole number from 1 to {MOST_REPLICAS:,} on each pod of the group"
        raise ManifestError(f'metadata.annotations["{GROUP_TOTAL}"]: {", ".join(sorted(totals))} - {rule}')
    return int(total)
