"""The Kueue objects that stand for a cluster's compute quotas, as HyperPod's task governance add-on makes them.

The simulated cluster plays the add-on with it, and the `kueue` backend applies it where no add-on does. Objects are
plain dicts in the API's form, quantities in canonical text, in an order that Kueue's webhooks accept.

| what | source |
| --- | --- |
| ClusterQueue and LocalQueue, field by field, with names and labels | printed in the add-on's documentation |
| namespace labels, `<class>-priority`, value = Weight | developer guide |
| `Never` for PreemptTeamTasks, Hold for a disabled quota, ResourceFlavor by instance type label | inferred |
| MIG partitions as further covered resources, 0 on flavors that have none | inferred |
| Kueue's fair sharing switched on by FairShare | inferred |
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from taskgov.hyperpod import names
from taskgov.hyperpod.borrowing import FlavorQuota, flavor_quotas, sharing_of
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import (
    ActivationState,
    ComputeQuota,
    ComputeQuotaConfig,
    PreemptTeamTasks,
    SchedulerConfig,
    SharingStrategy,
    Switch,
)
from taskgov.quantities import CPU, EFA, GPU, MEMORY, NEURON_DEVICE, ResourceName, format_quantity

KueueVersion = Literal["v1beta1", "v1beta2"]
Manifest = dict[str, Any]

COVERED_RESOURCES: Final = (GPU, NEURON_DEVICE, CPU, MEMORY, EFA)
"""What every ClusterQueue of HyperPod covers, in the order in which it is printed; MIG partitions follow."""


@dataclass(frozen=True, slots=True)
class RenderedObjects:
    """The objects of one cluster, by kind; `in_order()` gives them as they must be applied."""

    namespaces: tuple[Manifest, ...]
    resource_flavors: tuple[Manifest, ...]
    priority_classes: tuple[Manifest, ...]
    cluster_queues: tuple[Manifest, ...]
    local_queues: tuple[Manifest, ...]

    def in_order(self) -> tuple[Manifest, ...]:
        """Return all objects: what others refer to comes first."""
        return (
            *self.namespaces,
            *self.resource_flavors,
            *self.priority_classes,
            *self.cluster_queues,
            *self.local_queues,
        )


@dataclass(frozen=True, slots=True)
class ManagerConfiguration:
    """The configuration of Kueue's manager: fair sharing as the cluster policy says, gang scheduling where wanted."""

    fair_sharing: bool
    wait_for_pods_ready: bool = False

    def to_manifest(self) -> Manifest:
        """Return the parts of Kueue's Configuration that task governance decides (`config.kueue.x-k8s.io/v1beta2`).

        In v1beta2 a manager waits for pods unless a gate says otherwise (Kueue 0.19, apis/config/v1beta2/defaults.go).
        Timeout and `blockAdmission` are those that v1beta1 has by default.
        """
        manifest: Manifest = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
        if self.fair_sharing:
            manifest["fairSharing"] = {
                "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
            }
        if self.wait_for_pods_ready:
            manifest["waitForPodsReady"] = {"timeout": "5m", "blockAdmission": True}
        else:
            manifest["featureGates"] = {"DisableWaitForPodsReady": True}
        return manifest


def render(
    quotas: Iterable[ComputeQuota],
    scheduler: SchedulerConfig | None,
    table: InstanceTypeTable,
    version: KueueVersion = "v1beta1",
) -> RenderedObjects:
    """Render the compute quotas (one a team) and the cluster policy; teams, flavors and classes by name.

    Raises `UnknownInstanceTypeError` when a quota is on a type whose numbers are not known.
    """
    by_team = sorted(quotas, key=lambda quota: quota.compute_quota_target.team_name)
    flavors = [flavor_quotas(quota.compute_quota_config, table) for quota in by_team]
    types = sorted({flavor.instance_type for some in flavors for flavor in some})
    classes = (scheduler.priority_classes if scheduler else None) or ()
    return RenderedObjects(
        namespaces=tuple(_namespace(quota) for quota in by_team),
        resource_flavors=tuple(_resource_flavor(name, version) for name in types),
        priority_classes=tuple(
            _priority_class(priority_class.name, priority_class.weight, version)
            for priority_class in sorted(classes, key=lambda priority_class: priority_class.name)
        ),
        cluster_queues=tuple(
            _cluster_queue(quota, some, version) for quota, some in zip(by_team, flavors, strict=True)
        ),
        local_queues=tuple(_local_queue(quota, version) for quota in by_team),
    )


def manager_configuration(
    scheduler: SchedulerConfig | None, *, wait_for_pods_ready: bool = False
) -> ManagerConfiguration:
    """Return how Kueue's manager runs under this cluster policy.

    FairShare is Enabled by default; without any cluster policy HyperPod serves first come first served. Gang scheduling
    (`waitForPodsReady`) is not part of a cluster policy: HyperPod has it off unless somebody switches it on.
    """
    fair = scheduler is not None and scheduler.fair_share is not Switch.DISABLED
    return ManagerConfiguration(fair_sharing=fair, wait_for_pods_ready=wait_for_pods_ready)


def _cluster_queue(quota: ComputeQuota, flavors: tuple[FlavorQuota, ...], version: KueueVersion) -> Manifest:
    team = quota.compute_quota_target.team_name
    config = quota.compute_quota_config
    isolated = sharing_of(config).strategy is SharingStrategy.DONT_LEND
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "ClusterQueue",
        "metadata": {"name": names.cluster_queue_of(team), "labels": _labels(team)},
        "spec": {
            **({} if isolated else _cohort(version)),
            "fairSharing": {"weight": str(quota.compute_quota_target.fair_share_weight or 0)},
            "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
            "namespaceSelector": {"matchLabels": {names.NAMESPACE_NAME_LABEL: names.namespace_of(team)}},
            "preemption": _preemption(config),
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": _resource_groups(flavors),
            "stopPolicy": _stop_policy(quota),
        },
    }


def _preemption(config: ComputeQuotaConfig) -> Manifest:
    """Let the team reclaim its own from anybody, and preempt its own lower priorities unless the quota says Never."""
    never = config.preempt_team_tasks is PreemptTeamTasks.NEVER
    return {
        "borrowWithinCohort": {"policy": "LowerPriority"},
        "reclaimWithinCohort": "Any",
        "withinClusterQueue": "Never" if never else "LowerPriority",
    }


def _resource_groups(flavors: tuple[FlavorQuota, ...]) -> list[Manifest]:
    """One group: HyperPod assigns all resources of a pod from one instance type. No flavor, no group."""
    if not flavors:
        return []
    partitions = sorted({name for flavor in flavors for name in flavor.nominal if name not in COVERED_RESOURCES})
    covered = (*COVERED_RESOURCES, *partitions)
    return [{"coveredResources": list(covered), "flavors": [_flavor(flavor, covered) for flavor in flavors]}]


def _flavor(quota: FlavorQuota, covered: tuple[ResourceName, ...]) -> Manifest:
    return {"name": quota.instance_type, "resources": [_resource(quota, resource) for resource in covered]}


def _resource(quota: FlavorQuota, resource: ResourceName) -> Manifest:
    """Name the nominal quota, and the borrowing limit where there is a cohort (Kueue refuses one without)."""
    entry = {"name": resource, "nominalQuota": format_quantity(resource, quota.nominal.get(resource, 0))}
    if quota.borrowing is not None:
        entry["borrowingLimit"] = format_quantity(resource, quota.borrowing.get(resource, 0))
    return entry


def _local_queue(quota: ComputeQuota, version: KueueVersion) -> Manifest:
    team = quota.compute_quota_target.team_name
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "LocalQueue",
        "metadata": {
            "name": names.local_queue_of(team),
            "namespace": names.namespace_of(team),
            "labels": _labels(team),
        },
        "spec": {"clusterQueue": names.cluster_queue_of(team), "stopPolicy": _stop_policy(quota)},
    }


def _namespace(quota: ComputeQuota) -> Manifest:
    team = quota.compute_quota_target.team_name
    labels = {**_labels(team), names.ACTIVATE_QUOTA_LABEL: str(quota.activation_state)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.namespace_of(team), "labels": labels}}


def _resource_flavor(instance_type: str, version: KueueVersion) -> Manifest:
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "ResourceFlavor",
        "metadata": {"name": instance_type},
        "spec": {"nodeLabels": {names.INSTANCE_TYPE_LABEL: instance_type}},
    }


def _priority_class(name: str, weight: int, version: KueueVersion) -> Manifest:
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": names.priority_class_of(name)},
        "value": weight,
    }


def _stop_policy(quota: ComputeQuota) -> str:
    """Let a disabled quota admit nothing more while what runs may finish."""
    return "Hold" if quota.activation_state is ActivationState.DISABLED else "None"


def _cohort(version: KueueVersion) -> Manifest:
    """Kueue renamed the field between the versions."""
    return {"cohort" if version == "v1beta1" else "cohortName": names.COHORT}


def _labels(team: str) -> dict[str, str]:
    return {names.QUOTA_ALLOCATION_LABEL: team, names.MANAGED_QUEUE_LABEL: "true"}
