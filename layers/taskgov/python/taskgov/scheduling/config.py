"""How is the Kueue manager configured? Settings of its Configuration and feature gates that change decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

GATE_DEFAULTS: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "AdmissionFairSharing": True,
        "DisableWaitForPodsReady": False,
        "AdmissionGatedBy": True,
        "ElasticJobsViaWorkloadSlices": True,
        "FairSharingPreemptWithinNominal": True,
        "FairSharingPrioritizeNonBorrowing": True,
        "FlavorFungibilityPreserveScanProgress": True,
        "PartialAdmission": True,
        "PrioritySortingWithinCohort": True,
        "ReclaimablePods": True,
        "RecomputeAssignmentUponPreemptionTargetsOverlap": False,
        "SchedulingEquivalenceHashing": True,
        "UnadmittedWorkloadsObservability": False,
    },
)
"""The feature gates this model follows, with their defaults in Kueue v0.19.2."""


class Strategy(StrEnum):
    """When fair sharing lets a workload preempt across queues (Kueue KEP-1714)."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"


DEFAULT_STRATEGIES: Final = (Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE, Strategy.LESS_THAN_INITIAL_SHARE)


@dataclass(frozen=True, slots=True)
class RequeueBackoff:
    """`waitForPodsReady.requeuingStrategy`: how long an eviction for pods that are not ready keeps a workload out.

    The n-th wait is `base_seconds * 2**(n-1)`, at most `max_seconds`; after `limit` evictions (None: never) the
    workload is deactivated. `by_creation` is `timestamp: Creation`: an evicted workload keeps its place in line.
    """

    base_seconds: int = 60
    max_seconds: int = 3600
    limit: int | None = None
    by_creation: bool = False


@dataclass(frozen=True, slots=True)
class ResourceTransformation:
    """One of `resources.transformations`: requests of `input` are counted as `outputs` (Kueue KEP-2937).

    `outputs` are quantities for each unit of the input, as the manager's configuration writes them (`"1"`, `"500m"`,
    negative ones too). With `multiply_by` the input is multiplied first by what the pod requests of that resource.
    `Retain` keeps the input beside its outputs, `Replace` does not.
    """

    input: str
    outputs: Mapping[str, str | float] = field(default_factory=dict)
    strategy: str = "Retain"
    multiply_by: str = ""


@dataclass(frozen=True, slots=True)
class AdmissionFairSharing:
    """`admissionFairSharing`: how the usage of LocalQueues is counted by which they take turns (Kueue KEP-4136).

    Times are seconds: usage decays by half in `usage_half_life_time` (0: it is forgotten at once) and is sampled every
    `usage_sampling_interval`. A resource without weight counts once.
    """

    usage_half_life_time: float = 0
    usage_sampling_interval: float = 300
    resource_weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ManagerConfig:
    """What the Kueue manager was started with.

    Parameters
    ----------
    fair_sharing
        Whether `fairSharing` is configured: entries are ordered and victims chosen by dominant resource share.
    strategies
        `fairSharing.preemptionStrategies`, one or two, in order.
    gates
        Feature gates that differ from `GATE_DEFAULTS`; gates this model does not know are kept and reported as not
        modelled.
    backoff
        The requeue backoff of `waitForPodsReady`.
    resources_exclude_prefixes
        `resources.excludeResourcePrefixes`: requests of resources whose name begins with one of them are not counted.
    resource_transformations
        `resources.transformations`, at most one for each input; applied after the exclusions.
    wait_for_pods_ready_block_admission
        `waitForPodsReady.blockAdmission`: nobody is admitted while the pods of anybody who is admitted are not ready.
    admission_fair_sharing
        `admissionFairSharing`; without it, no ClusterQueue orders by the usage of LocalQueues, whatever its
        `admissionScope` says.
    not_followed
        Settings in use that this model does not follow: the feature, and where it is set (`kueue_settings`).

    """

    fair_sharing: bool = False
    strategies: tuple[Strategy, ...] = DEFAULT_STRATEGIES
    gates: Mapping[str, bool] = field(default_factory=dict)
    backoff: RequeueBackoff = RequeueBackoff()
    resources_exclude_prefixes: tuple[str, ...] = ()
    resource_transformations: tuple[ResourceTransformation, ...] = ()
    wait_for_pods_ready_block_admission: bool = False
    admission_fair_sharing: AdmissionFairSharing | None = None
    not_followed: tuple[tuple[str, str], ...] = ()

    def gate(self, name: str) -> bool:
        """Return whether the feature gate `name` is on; raises `KeyError` for a gate this model does not follow."""
        return self.gates.get(name, GATE_DEFAULTS[name])


DEFAULTS: Final = ManagerConfig()
"""What Kueue's manager does without a configuration of its own."""
