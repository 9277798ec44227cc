"""What in the input does this model not follow? Found when objects are applied, and said in every result.

| feature | what the model does instead |
| --- | --- |
| topology-aware scheduling | counts quota only; placement may keep a workload out longer |
| admission checks, MultiKueue, provisioning | admits as soon as quota is reserved |
| dynamic resource allocation | counts containers' requests, not claims |
| admission fair sharing | orders a queue by priority and time only |
| priority boost, preemption gates, concurrent admission | ignores them |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from taskgov.scheduling.config import GATE_DEFAULTS, ManagerConfig

Object = Mapping[str, Any]

TOPOLOGY: Final = "TopologyAwareScheduling"
ADMISSION_CHECKS: Final = "AdmissionChecks"
MULTI_KUEUE: Final = "MultiKueue"
CLAIMS: Final = "DynamicResourceAllocation"
ADMISSION_FAIR_SHARING: Final = "AdmissionFairSharing"
PRIORITY_BOOST: Final = "PriorityBoost"
PREEMPTION_GATES: Final = "PreemptionGates"
CONCURRENT_ADMISSION: Final = "ConcurrentAdmission"
FEATURE_GATE: Final = "FeatureGate"

KINDS: Final[Mapping[str, str]] = {
    "Topology": TOPOLOGY,
    "AdmissionCheck": ADMISSION_CHECKS,
    "ProvisioningRequestConfig": ADMISSION_CHECKS,
    "MultiKueueConfig": MULTI_KUEUE,
    "MultiKueueCluster": MULTI_KUEUE,
}
"""Objects of Kueue's API that are accepted and have no effect here."""

_TOPOLOGY_FIELDS: Final = {
    "required",
    "preferred",
    "unconstrained",
    "podSetSliceRequiredTopology",
    "podSetSliceSize",
}


@dataclass(frozen=True, slots=True, order=True)
class NotModelled:
    """A feature that an object uses and this model does not follow."""

    feature: str
    kind: str
    name: str


def features_of(obj: Object) -> frozenset[str]:
    """Return the features an object uses that are not modelled."""
    spec = obj.get("spec") or {}
    match obj["kind"]:
        case "ResourceFlavor":
            return frozenset({TOPOLOGY} if spec.get("topologyName") else ())
        case "ClusterQueue":
            return frozenset(_of_cluster_queue(spec))
        case "LocalQueue":
            return frozenset({ADMISSION_FAIR_SHARING} if spec.get("fairSharing") else ())
        case "Workload":
            return frozenset(_of_workload(obj, spec))
        case kind:
            return frozenset({KINDS[kind]} if kind in KINDS else ())


def of_config(config: ManagerConfig) -> list[NotModelled]:
    """Return the feature gates that are set and not followed."""
    return [
        NotModelled(FEATURE_GATE, "Configuration", gate)
        for gate, on in sorted(config.gates.items())
        if on and gate not in GATE_DEFAULTS
    ]


def _of_cluster_queue(spec: Object) -> Iterator[str]:
    if spec.get("admissionChecks") or (spec.get("admissionChecksStrategy") or {}).get("admissionChecks"):
        yield ADMISSION_CHECKS
    if spec.get("admissionScope"):
        yield ADMISSION_FAIR_SHARING
    if spec.get("concurrentAdmissionPolicy"):
        yield CONCURRENT_ADMISSION


def _of_workload(obj: Object, spec: Object) -> Iterator[str]:
    status = obj.get("status") or {}
    if status.get("admissionChecks"):
        yield ADMISSION_CHECKS
    if status.get("clusterName") or status.get("nominatedClusterNames"):
        yield MULTI_KUEUE
    if spec.get("preemptionGates"):
        yield PREEMPTION_GATES
    if "kueue.x-k8s.io/priority-boost" in (obj["metadata"].get("annotations") or {}):
        yield PRIORITY_BOOST
    for pod_set in spec.get("podSets") or ():
        if _TOPOLOGY_FIELDS & set(pod_set.get("topologyRequest") or ()):
            yield TOPOLOGY
        if ((pod_set.get("template") or {}).get("spec") or {}).get("resourceClaims"):
            yield CLAIMS
