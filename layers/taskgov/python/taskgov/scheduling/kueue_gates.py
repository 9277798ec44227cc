"""Which feature gates of Kueue 0.19.2 does this model follow? One row for each known gate.

A gate is followed whatever it is set to (`config.GATE_DEFAULTS`), followed as it is set by default (`AS_BY_DEFAULT`),
or without influence on who is admitted, preempted and kept waiting (`WITHOUT_INFLUENCE`). A test walks the gates in
Kueue's source and fails for one without a row, or with another default (`tests/scheduling/test_kueue_fields.py`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

AS_BY_DEFAULT: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "ConcurrentAdmission": False,
        "FlavorFungibility": True,
        "HierarchicalCohorts": True,
        "KueueDRAIntegration": True,
        "KueueDRAIntegrationConsumableCapacity": False,
        "KueueDRAIntegrationExtendedResource": True,
        "KueueDRAIntegrationPartitionableDevices": True,
        "MultiKueue": True,
        "MultiKueueOrchestratedPreemption": False,
        "PrioritizePreemptorWorkloads": False,
        "PriorityBoost": False,
        "QuotaCheckStrategy": True,
        "SchedulerLibraryIntegration": False,
        "SchedulerLongRequeueInterval": False,
        "SchedulerTimestampPreemptionBuffer": False,
        "TopologyAwareScheduling": True,
        "UnadmittedWorkloadsExplicitStatus": False,
        "WorkloadPriorityClassDefaulting": False,
    },
)
"""Gates that change decisions, with the default that the model follows. What they need besides, such as a field, has
its own row in `kueue_fields`."""

WITHOUT_INFLUENCE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "it is about metrics, visibility or speed": (
            "CustomMetricLabels",
            "LocalQueueMetrics",
            "MetricForWorkloadCreationLatency",
            "MetricsForCohorts",
            "TASCacheNodeMatchResults",
            "TASCacheTopologyTree",
            "TASCachingRemainingResources",
            "VectorizedResourceRequests",
            "VisibilityOnDemand",
        ),
        "it is about how objects are written, named, kept or secured": (
            "AssignQueueLabelsForPods",
            "CleanupProvisioningRequestsOnEviction",
            "DeferRayServiceFinalizationForRedisCleanup",
            "FailureRecoveryPolicy",
            "FastQuotaReleaseInPodIntegration",
            "FinishOrphanedWorkloads",
            "ObjectRetentionPolicies",
            "PropagateBatchJobLabelsToWorkload",
            "RemoveFinalizersWithStrictPatch",
            "ShortWorkloadNames",
            "SkipAncestorCheckForDeletedWorkloads",
            "SkipFinalizersForPodsSuspendedByParent",
            "TASAssignmentsEncodingByHostnamePrefix",
            "TLSOptions",
            "WorkloadIdentifierAnnotations",
            "WorkloadRequestUseMergePatch",
        ),
        "it is about which objects are accepted, or made into workloads": (
            "KueueDRARejectWorkloadsWhenDRADisabled",
            "LWSImmutableGroupSize",
            "ManagedJobsNamespaceSelectorAlwaysRespected",
            "PodIntegrationValidateGroupOwner",
            "RejectUpdatesToCQWithInvalidOnFlavors",
            "SparkApplicationIntegration",
            "TASValidateWorkloadSliceSize",
            "ValidateRayAndSparkJobUpdates",
            "WorkloadValidateResourcesAreNonNegative",
            "WorkloadValidationForPodSetMetadata",
        ),
        "it is about clusters of MultiKueue, whose use is named by itself": (
            "MultiKueueAdaptersForCustomJobs",
            "MultiKueueAllowInsecureKubeconfigs",
            "MultiKueueClusterProfile",
            "MultiKueueIncrementalDispatcherConfig",
            "MultiKueueIncrementalDispatcherRespectConfigOrder",
            "MultiKueueKubeConfigPathValidation",
            "MultiKueueManagerQuotaAutomation",
            "MultiKueueRedoAdmissionOnEvictionInWorker",
            "MultiKueueRemoteSpecSync",
            "MultiKueueWaitForWorkloadAdmitted",
        ),
        "it is about topologies, whose use is named by itself": (
            "ElasticJobsViaWorkloadSlicesWithTAS",
            "SkipReassignmentForPodOwnedWorkloads",
            "TASBalancedPlacement",
            "TASFailedNodeReplacement",
            "TASFailedNodeReplacementFailFast",
            "TASHandleOverlappingFlavors",
            "TASMultiLayerTopology",
            "TASProfileMixed",
            "TASRecomputeAssignmentWithinSchedulingCycle",
            "TASReplaceNodeDueToNotReadyOverFixedTime",
            "TASReplaceNodeOnNodeTaints",
            "TASReplaceNodeOnPodTermination",
            "TASRespectNodeAffinityPreferred",
        ),
    },
)
"""Gates that change no decision about quota, by the reason why."""

_HARMLESS: Final = frozenset(gate for gates in WITHOUT_INFLUENCE.values() for gate in gates)


def is_without_influence(gate: str, *, on: bool) -> bool:
    """Return whether a gate that the model does not follow may be `on` or off without changing a decision."""
    return gate in _HARMLESS or AS_BY_DEFAULT.get(gate) is on
