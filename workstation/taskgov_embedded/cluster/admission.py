"""Does a job name its queue where Kueue looks? The cluster's admission policy demands it in a governed namespace.

The policy is the one that `taskgov.kueue.foundation` renders; its CEL is played here by the same three questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.hyperpod.names import ADMISSION_POLICY, MANAGED_QUEUE_LABEL, QUEUE_NAME_LABEL
from taskgov.kueue.foundation import GOVERNED_JOBS
from taskgov_embedded.cluster.objects import timestamp
from taskgov_manifests.queue_name import labels_as_stored, queue_on_pods_only

if TYPE_CHECKING:
    from datetime import datetime

    from taskgov_embedded.cluster.objects import KubeObject, Objects, ResourceType

_GOVERNED: Final = {(group, plural) for group, plurals in GOVERNED_JOBS for plural in plurals}


def denial_of(objects: Objects, kind: ResourceType, job: KubeObject) -> str | None:
    """Return why a new job is refused, as the API server says it, or None where it is let in."""
    metadata = job["metadata"]
    namespace = objects.find("namespaces", metadata.get("namespace", ""))
    if (
        (kind.group, kind.plural) not in _GOVERNED
        or metadata.get("ownerReferences")
        or labels_as_stored(job).get(QUEUE_NAME_LABEL)
        or objects.find("validatingadmissionpolicybindings", ADMISSION_POLICY) is None
        or namespace is None
        or namespace["metadata"].get("labels", {}).get(MANAGED_QUEUE_LABEL) != "true"
    ):
        return None
    place = metadata["namespace"]
    because = (
        f"the label {QUEUE_NAME_LABEL} is on the pod template, where Kueue does not look: "
        "write it into the metadata of the job itself"
        if queue_on_pods_only(job)
        else f"jobs in namespace {place} are governed: name the queue of your team in the label "
        f"{QUEUE_NAME_LABEL}, here {place}-localqueue"
    )
    where = f"ValidatingAdmissionPolicy '{ADMISSION_POLICY}' with binding '{ADMISSION_POLICY}' denied request"
    return f'{kind.plural}.{kind.group} "{metadata["name"]}" is forbidden: {where}: {because}'


def not_governed(job: KubeObject, now: datetime) -> KubeObject:
    """Return the event that warns of a job whose queue is named on its pod template only."""
    metadata = job["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.not-governed", "namespace": metadata["namespace"]},
        "involvedObject": {"kind": job["kind"], "name": metadata["name"], "namespace": metadata["namespace"]},
        "type": "Warning",
        "reason": "NotGoverned",
        "message": "The pod template names a queue but the job's own metadata does not: Kueue leaves it alone.",
        "firstTimestamp": timestamp(now),
    }
