"""What in the input does this model not follow? Found when objects are applied, and said in every result.

| feature | what the model does instead |
| --- | --- |
| topology-aware scheduling | counts quota only; placement may keep a workload out longer |
| admission checks, MultiKueue, provisioning | admits as soon as quota is reserved |
| dynamic resource allocation | counts containers' requests, not claims |
| priority boost, preemption gates, admission gates, concurrent admission | ignores them |
| elastic workload slices | takes a slice that replaces another for a workload of its own |
| pods that wait for replacements, nodes that are to be replaced | ignores them |
| the manager's `blockAdmission`, `quotaCheckStrategy`, excluded prefixes and transformations | ignores them |
| a manager whose configuration cannot be read | takes what the cluster policy says, and Kueue's defaults |

`kueue_fields` says by which fields each is found, `kueue_gates` and `kueue_settings` do for the manager's gates and
settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from taskgov.scheduling import kueue_gates
from taskgov.scheduling.config import GATE_DEFAULTS, ManagerConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOPOLOGY: Final = "TopologyAwareScheduling"
ADMISSION_CHECKS: Final = "AdmissionChecks"
MULTI_KUEUE: Final = "MultiKueue"
CLAIMS: Final = "DynamicResourceAllocation"
PRIORITY_BOOST: Final = "PriorityBoost"
PREEMPTION_GATES: Final = "PreemptionGates"
CONCURRENT_ADMISSION: Final = "ConcurrentAdmission"
ADMISSION_GATES: Final = "AdmissionGatedBy"
ELASTIC_SLICES: Final = "ElasticJobsViaWorkloadSlices"
REPLACEMENT_PODS: Final = "WaitingForReplacementPods"
UNHEALTHY_NODES: Final = "TASFailedNodeReplacement"
FEATURE_GATE: Final = "FeatureGate"
BLOCKED_ADMISSION: Final = "BlockAdmission"
QUOTA_CHECK: Final = "QuotaCheckStrategy"
RESOURCES: Final = "ResourceTransformations"
ASSUMED_CONFIGURATION: Final = "AssumedConfiguration"

CONFIGURATION: Final = "Configuration"
"""The kind of what the manager is configured with."""


_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        TOPOLOGY: "topology",
        ADMISSION_CHECKS: "admission checks",
        CLAIMS: "resource claims",
        ADMISSION_FAIR_SHARING: "admission fair sharing",
        PRIORITY_BOOST: "priority boost",
        PREEMPTION_GATES: "preemption gates",
        CONCURRENT_ADMISSION: "concurrent admission",
        ADMISSION_GATES: "admission gates",
        ELASTIC_SLICES: "elastic workload slices",
        REPLACEMENT_PODS: "replacement pods",
        POD_OVERHEAD: "RuntimeClass overhead",
        UNHEALTHY_NODES: "unhealthy nodes",
        FEATURE_GATE: "feature gates",
        BLOCKED_ADMISSION: "blocked admission",
        QUOTA_CHECK: "quota check",
        RESOURCES: "resource transformations",
    },
)


def words_of(features: Iterable[str]) -> str:
    """Return features as people call them; one without a name of its own has Kueue's.

    Example:
        >>> words_of(["MultiKueue", "TopologyAwareScheduling"])
        'MultiKueue, topology'

    """
    return ", ".join(_WORDS.get(feature, feature) for feature in features)


@dataclass(frozen=True, slots=True, order=True)
class NotModelled:
    """A feature that an object uses and this model does not follow."""

    feature: str
    kind: str
    name: str


def of_config(config: ManagerConfig) -> list[NotModelled]:
    """Return what of the manager is not followed.

    Settings in use, and feature gates that are set otherwise than by default and change decisions.
    """
    gates = [
        NotModelled(FEATURE_GATE, CONFIGURATION, gate)
        for gate, on in sorted(config.gates.items())
        if gate not in GATE_DEFAULTS and not kueue_gates.is_without_influence(gate, on=on)
    ]
    return gates + [NotModelled(feature, CONFIGURATION, setting) for feature, setting in config.not_followed]
