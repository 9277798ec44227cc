"""Which fields of Kueue 0.19.2 does this model follow? One row for each, and nothing is ignored without a word.

A row stands for its path and for everything below it; of two rows the longer one counts. Paths: `[]` is each item of a
list, `[type=X]` the item with that type, and `{name}` an annotation. A test walks the schemas of Kueue's release and
its Go source, and fails for a field, annotation or condition without a row (`tests/scheduling/test_kueue_fields.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from taskgov.scheduling.unmodelled import (
    CLAIMS,
    CONCURRENT_ADMISSION,
    MULTI_KUEUE,
    PREEMPTION_GATES,
    PRIORITY_BOOST,
    TOPOLOGY,
    UNHEALTHY_NODES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class Followed(StrEnum):
    """Whether the model does with a field what Kueue does."""

    MODELLED = "modelled"
    WITHOUT_INFLUENCE = "without influence"
    NOT_MODELLED = "not modelled"


@dataclass(frozen=True, slots=True)
class Row:
    """What the model does with a field: `note` is why it has no influence, or the feature that is not modelled."""

    path: str
    followed: Followed
    note: str = ""


_MODELLED: Final = """
ClusterQueue.spec.admissionScope
AdmissionCheck.status
ClusterQueue.spec.admissionChecks
ClusterQueue.spec.admissionChecksStrategy
ClusterQueue.spec.cohort
ClusterQueue.spec.cohortName
ClusterQueue.spec.fairSharing
ClusterQueue.spec.flavorFungibility
ClusterQueue.spec.namespaceSelector
ClusterQueue.spec.preemption
ClusterQueue.spec.queueingStrategy
ClusterQueue.spec.resourceGroups
ClusterQueue.spec.stopPolicy
Cohort.spec.fairSharing
Cohort.spec.parentName
Cohort.spec.resourceGroups
LocalQueue.spec.clusterQueue
LocalQueue.spec.fairSharing
LocalQueue.spec.stopPolicy
LocalQueue.status.fairSharing
ResourceFlavor.spec.nodeLabels
ResourceFlavor.spec.nodeTaints
ResourceFlavor.spec.tolerations
WorkloadPriorityClass.value
Workload.metadata.annotations{kueue.x-k8s.io/admission-gated-by}
Workload.metadata.annotations{kueue.x-k8s.io/workload-slice-replacement-for}
Workload.spec.active
Workload.spec.podSets[].count
Workload.spec.podSets[].minCount
Workload.spec.podSets[].name
Workload.spec.podSets[].template.spec.affinity
Workload.spec.podSets[].template.spec.containers[].ports
Workload.spec.podSets[].template.spec.containers[].resources
Workload.spec.podSets[].template.spec.containers[].restartPolicy
Workload.spec.podSets[].template.spec.initContainers
Workload.spec.podSets[].template.spec.nodeSelector
Workload.spec.podSets[].template.spec.overhead
Workload.spec.podSets[].template.spec.priority
Workload.spec.podSets[].template.spec.resources
Workload.spec.podSets[].template.spec.runtimeClassName
Workload.spec.podSets[].template.spec.tolerations
Workload.spec.podSets[].template.spec.topologySpreadConstraints
Workload.spec.podSets[].topologyRequest.podSetGroupName
Workload.spec.priority
Workload.spec.priorityClassName
Workload.spec.priorityClassRef
Workload.spec.priorityClassSource
Workload.spec.queueName
Workload.status.admission
Workload.status.admissionChecks
Workload.status.conditions[type=Admitted]
Workload.status.conditions[type=Evicted]
Workload.status.conditions[type=Finished]
Workload.status.conditions[type=PodsReady]
Workload.status.conditions[type=Preempted]
Workload.status.conditions[type=QuotaReserved]
Workload.status.conditions[type=Requeued]
Workload.status.conditions[type=WaitingForReplacementPods]
Workload.status.reclaimablePods
Workload.status.requeueState
"""

_POD_FIELDS: Final = """
activeDeadlineSeconds automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks ephemeralContainers
hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets nodeName os
preemptionPolicy priorityClassName readinessGates restartPolicy schedulerName schedulingGates schedulingGroup
securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain
terminationGracePeriodSeconds volumes
"""

_OF_JOBS: Final = """
admission component-workload-index elastic-job is-group-workload job-owner-gvk job-owner-name managed
pod-group-fast-admission pod-group-name pod-group-pod-index pod-group-pod-index-label pod-group-serving
pod-group-total-count pod-index-offset pod-suspending-parent podset podset-group-name podset-preferred-topology
podset-required-topology podset-slice-required-topology podset-slice-required-topology-constraints podset-slice-size
podset-unconstrained-topology prebuilt-workload-name queue-name retriable-in-group role-hash
safe-to-forcefully-delete workload workload-slice-name
"""

_WITHOUT_INFLUENCE: Final[Mapping[str, tuple[str, ...]]] = {
    "it numbers pods for a topology that another field requests": (
        "Workload.spec.podSets[].topologyRequest.podIndexLabel",
        "Workload.spec.podSets[].topologyRequest.subGroupIndexLabel",
    ),
    "it names the object": ("*.apiVersion", "*.kind", "*.metadata", "WorkloadPriorityClass.description"),
    "Kueue writes it and decides nothing by it": (
        "ClusterQueue.status",
        "Cohort.status",
        "LocalQueue.status",
        "Workload.status.conditions",
        "Workload.status.conditions[type=BlockedOnPreemptionGates]",
        "Workload.status.conditions[type=DeactivationTarget]",
        "Workload.status.resourceRequests",
        "Workload.status.schedulingStats",
    ),
    "Kueue deactivates the workload by it, which `spec.active` shows": (
        "Workload.spec.maximumExecutionTimeSeconds",
        "Workload.status.accumulatedPastExecutionTimeSeconds",
        "Workload.status.accumulatedPastExexcutionTimeSeconds",  # so it is spelled in v1beta1
    ),
    "it is about pods that run already, or about how they are started": (
        "Workload.spec.podSets[].template.metadata",
        *(f"Workload.spec.podSets[].template.spec.{field}" for field in _POD_FIELDS.split()),
    ),
    "a job's controller reads it when it makes the workload": tuple(
        f"Workload.metadata.annotations{{kueue.x-k8s.io/{name}}}" for name in _OF_JOBS.split()
    ),
    "it names what holds an object, not what it requests": (
        "Workload.metadata.annotations{kueue.x-k8s.io/cluster-queue-name}",
        "Workload.metadata.annotations{kueue.x-k8s.io/local-queue-name}",
        "Workload.metadata.annotations{kueue.x-k8s.io/resource-in-use}",
    ),
    "the controller of an admission check reads it, whose answer is modelled": (
        "AdmissionCheck.spec",
        "ProvisioningRequestConfig",
        "Workload.metadata.annotations{kueue.x-k8s.io/provisioning-request}",
    ),
    "it is a label, and modelled": (
        "Workload.metadata.annotations{kueue.x-k8s.io/job-uid}",
        "Workload.metadata.annotations{kueue.x-k8s.io/priority-class}",
        "Workload.metadata.annotations{kueue.x-k8s.io/workloadpriorityclass}",
    ),
}

_NOT_MODELLED: Final[Mapping[str, tuple[str, ...]]] = {
    TOPOLOGY: (
        "ResourceFlavor.spec.topologyName",
        "Topology",
        "Workload.metadata.annotations{kueue.x-k8s.io/topology}",
        "Workload.spec.podSets[].topologyRequest.podSetSliceRequiredTopology",
        "Workload.spec.podSets[].topologyRequest.podSetSliceSize",
        "Workload.spec.podSets[].topologyRequest.podsetSliceRequiredTopologyConstraints",
        "Workload.spec.podSets[].topologyRequest.preferred",
        "Workload.spec.podSets[].topologyRequest.required",
        "Workload.spec.podSets[].topologyRequest.subGroupCount",
        "Workload.spec.podSets[].topologyRequest.unconstrained",
        "Workload.status.admission.podSetAssignments[].delayedTopologyRequest",
        "Workload.status.admission.podSetAssignments[].topologyAssignment",
    ),
    MULTI_KUEUE: (
        "MultiKueueCluster",
        "MultiKueueConfig",
        "Workload.metadata.annotations{kueue.x-k8s.io/multikueue}",
        "Workload.metadata.annotations{kueue.x-k8s.io/multikueue-dispatcher-all-at-once}",
        "Workload.metadata.annotations{kueue.x-k8s.io/multikueue-dispatcher-incremental}",
        "Workload.metadata.annotations{kueue.x-k8s.io/multikueue-origin}",
        "Workload.metadata.annotations{kueue.x-k8s.io/multikueue-origin-uid}",
        "Workload.metadata.annotations{kueue.x-k8s.io/multikueue-worker-workload-pod}",
        "Workload.status.clusterName",
        "Workload.status.nominatedClusterNames",
    ),
    CLAIMS: (
        "Workload.spec.podSets[].template.spec.containers[].resources.claims",
        "Workload.spec.podSets[].template.spec.initContainers[].resources.claims",
        "Workload.spec.podSets[].template.spec.resourceClaims",
    ),
    CONCURRENT_ADMISSION: (
        "ClusterQueue.spec.concurrentAdmissionPolicy",
        "Workload.metadata.annotations{kueue.x-k8s.io/concurrent-admission}",
        "Workload.metadata.annotations{kueue.x-k8s.io/concurrent-admission-parent}",
        "Workload.metadata.annotations{kueue.x-k8s.io/workload-allowed-resource-flavors}",
    ),
    PREEMPTION_GATES: ("Workload.spec.preemptionGates", "Workload.status.preemptionGates"),
    PRIORITY_BOOST: ("Workload.metadata.annotations{kueue.x-k8s.io/priority-boost}",),
    UNHEALTHY_NODES: ("Workload.status.unhealthyNodes",),
}

ROWS: Final[tuple[Row, ...]] = (
    *(Row(path, Followed.MODELLED) for path in _MODELLED.split()),
    *(Row(path, Followed.WITHOUT_INFLUENCE, why) for why, paths in _WITHOUT_INFLUENCE.items() for path in paths),
    *(Row(path, Followed.NOT_MODELLED, feature) for feature, paths in _NOT_MODELLED.items() for path in paths),
)
"""One row for each field of Kueue's objects, as short as one statement holds for all fields below it."""

ANNOTATIONS: Final = frozenset(
    row.path.partition("{")[2].rstrip("}")
    for row in ROWS
    if row.followed is not Followed.WITHOUT_INFLUENCE and "{" in row.path
)
"""The annotations that are modelled, or stand for a feature that is not: without them a decision would be another."""

KINDS: Final = frozenset(row.path.partition(".")[0] for row in ROWS) - {"*"}
"""The kinds of Kueue's API that the model accepts, whether or not they have an effect."""


def row_of(path: str) -> Row | None:
    """Return the row that a path of one of `KINDS` stands under, `None` when there is none.

    Example:
        >>> row_of("Workload.spec.podSets[].template.spec.resourceClaims[].name").note
        'DynamicResourceAllocation'
        >>> row_of("Workload.spec.surprise") is None
        True

    """
    kind, _, rest = path.partition(".")
    found = [row for row in ROWS if _covers(row.path, path) or (row.path[:2] == "*." and _covers(row.path[2:], rest))]
    return max(found, key=lambda row: len(row.path), default=None) if kind in KINDS else None


def _covers(above: str, path: str) -> bool:
    return path.startswith(above) and (len(path) == len(above) or path[len(above)] in ".[{")
