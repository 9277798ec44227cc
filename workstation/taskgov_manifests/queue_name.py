"""Which queue does a job name, where Kueue looks? Kueue reads the labels of the job as the API server has stored it.

The API server gives a batch Job *without any label of its own* the labels of its pod template (seen on 1.36, a default
of `batch/v1`). With one label of its own, or in any other kind of job, a queue named on the pods only is not seen.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from taskgov.hyperpod.names import QUEUE_NAME_LABEL

_REPLICA_SPECS = "ReplicaSpecs"
"""How Kubeflow's jobs name their pods: `pytorchReplicaSpecs`, `mpiReplicaSpecs`, ..."""


def labels_as_stored(job: Mapping[str, Any]) -> Mapping[str, str]:
    """Return a job's labels once the API server has stored it.

    Example:
        >>> template = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}}
        >>> printed = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
        >>> labels_as_stored(printed), labels_as_stored({**printed, "metadata": {"labels": {"app": "x"}}})
        ({'kueue.x-k8s.io/queue-name': 'lq'}, {'app': 'x'})

    """
    own = _labels(job)
    if own or job.get("kind") != "Job":
        return own
    return _labels((job.get("spec") or {}).get("template") or {})


def queue_on_pods_only(job: Mapping[str, Any]) -> str | None:
    """Return the queue that only the pods of a job name, so that Kueue leaves the job alone; None when it is governed.

    Example:
        >>> template = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}}
        >>> queue_on_pods_only({"kind": "Job", "metadata": {"labels": {"app": "x"}}, "spec": {"template": template}})
        'lq'

    """
    if QUEUE_NAME_LABEL in labels_as_stored(job):
        return None
    named = (_labels(template).get(QUEUE_NAME_LABEL) for template in _templates(job))
    return next((name for name in named if name), None)


def _templates(job: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = job.get("spec") or {}
    if "template" in spec:
        yield spec["template"]
    for key, replicas in spec.items():
        if key.lower().endswith(_REPLICA_SPECS.lower()):
            for replica in replicas.values() if isinstance(replicas, Mapping) else replicas:
                yield replica.get("template") or {}


def _labels(item: Mapping[str, Any]) -> Mapping[str, str]:
    return (item.get("metadata") or {}).get("labels") or {}
