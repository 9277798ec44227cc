"""What in the input does this model not follow? Found when objects are applied, and said in every result.

| feature | what the model does instead |
| --- | --- |
| topology-aware scheduling | counts quota only; placement may keep a workload out longer |
| MultiKueue | schedules locally |
| dynamic resource allocation | counts containers' requests, not claims |
| priority boost, preemption gates, concurrent admission | ignores them |
| nodes that should be replaced | ignores them |
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
MULTI_KUEUE: Final = "MultiKueue"
CLAIMS: Final = "DynamicResourceAllocation"
PRIORITY_BOOST: Final = "PriorityBoost"
PREEMPTION_GATES: Final = "PreemptionGates"
CONCURRENT_ADMISSION: Final = "ConcurrentAdmission"
UNHEALTHY_NODES: Final = "TASFailedNodeReplacement"
FEATURE_GATE: Final = "FeatureGate"
QUOTA_CHECK: Final = "QuotaCheckStrategy"
ASSUMED_CONFIGURATION: Final = "AssumedConfiguration"

CONFIGURATION: Final = "Configuration"
"""The kind of what the manager is configured with."""


_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        TOPOLOGY: "topology",
        CLAIMS: "resource claims",
        PRIORITY_BOOST: "priority boost",
        PREEMPTION_GATES: "preemption gates",
        CONCURRENT_ADMISSION: "concurrent admission",
        UNHEALTHY_NODES: "unhealthy nodes",
        FEATURE_GATE: "feature gates",
        QUOTA_CHECK: "quota check",
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

    Settings in use, and feature gates with other settings than the default and change decisions.
    """
    gates = [
        NotModelled(FEATURE_GATE, CONFIGURATION, gate)
        for gate, on in sorted(config.gates.items())
        if gate not in GATE_DEFAULTS and not kueue_gates.is_without_influence(gate, on=on)
    ]
    return gates + [NotModelled(feature, CONFIGURATION, setting) for feature, setting in config.not_followed]
