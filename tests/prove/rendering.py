"""The Kueue objects of a compute quota, written anew field by field from what the add-on's documentation prints.

The product has its own rendering (`taskgov.kueue.render`); a test compares the two, so that a difference is seen where
it is made and not as a strange preemption.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from taskgov.hyperpod.model import (
    ActivationState,
    ComputeQuota,
    PreemptTeamTasks,
    ResourceSharingConfig,
    SchedulerConfig,
    SharingStrategy,
    Switch,
)
from tests.prove.amounts import CPU, EFA, GPU, MEMORY, NEURON, Amounts, Book, completed

API = "kueue.x-k8s.io/v1beta1"
PRINTED = (GPU, NEURON, CPU, MEMORY, EFA)
"""What every ClusterQueue covers, in the order in which it is printed; MIG profiles follow."""
Object = dict[str, Any]


class UnknownTypeError(Exception):
    """A quota is on a type whose numbers nobody knows: only HyperPod could render it."""


def is_fair(scheduler: SchedulerConfig | None) -> bool:
    """Say whether Kueue shares fairly: by default where there is a cluster policy, and not where there is none."""
    return scheduler is not None and scheduler.fair_share is not Switch.DISABLED


def objects_of(quota: ComputeQuota, book: Book) -> Iterator[Object]:
    """Yield the namespace, the flavors and the two queues of a quota. Raises `UnknownTypeError`."""
    team = quota.compute_quota_target.team_name
    labels = {
        "sagemaker.amazonaws.com/quota-allocation-id": team,
        "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
    }
    active = {"sagemaker.amazonaws.com/activate-quota": str(quota.activation_state)}
    namespace, queue = f"hyperpod-ns-{team}", f"hyperpod-ns-{team}-clusterqueue"
    flavors = _flavors(quota, book)
    stopped = "Hold" if quota.activation_state is ActivationState.DISABLED else "None"
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {**labels, **active}}}
    for name in sorted(flavors):
        node_labels = {"nodeLabels": {"node.kubernetes.io/instance-type": name}}
        yield {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": node_labels}
    yield {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": queue, "labels": labels},
        "spec": {
            **({} if _sharing(quota).strategy is SharingStrategy.DONT_LEND else {"cohort": "shared-pool"}),
            "fairSharing": {"weight": str(quota.compute_quota_target.fair_share_weight or 0)},
            "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "preemption": _preemption(quota),
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": _groups(flavors),
            "stopPolicy": stopped,
        },
    }
    yield {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": f"{namespace}-localqueue", "namespace": namespace, "labels": labels},
        "spec": {"clusterQueue": queue, "stopPolicy": stopped},
    }


def priority_classes(scheduler: SchedulerConfig | None) -> Iterator[Object]:
    """Yield the WorkloadPriorityClasses of a cluster policy."""
    for item in (scheduler.priority_classes if scheduler else None) or ():
        yield {
            "apiVersion": API,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": f"{item.name}-priority"},
            "value": item.weight,
        }


def _sharing(quota: ComputeQuota) -> ResourceSharingConfig:
    return quota.compute_quota_config.resource_sharing_config or ResourceSharingConfig()


def _preemption(quota: ComputeQuota) -> Object:
    never = quota.compute_quota_config.preempt_team_tasks is PreemptTeamTasks.NEVER
    return {
        "borrowWithinCohort": {"policy": "LowerPriority"},
        "reclaimWithinCohort": "Any",
        "withinClusterQueue": "Never" if never else "LowerPriority",
    }


def _flavors(quota: ComputeQuota, book: Book) -> dict[str, tuple[Amounts, Amounts | None]]:
    """Return instance type -> nominal quota and borrowing limit; types that may only be borrowed come last."""
    sharing = _sharing(quota)
    nominal = _by_type(quota.compute_quota_config.compute_quota_resources, book)
    limits: dict[str, Amounts] = {}
    if sharing.strategy is SharingStrategy.LEND_AND_BORROW:
        limits = _by_type(sharing.absolute_borrow_limits or (), book)
    for name, limit in limits.items():
        nominal.setdefault(name, dict.fromkeys(limit, 0))
    return {name: (own, _borrowing(sharing, own, limits.get(name, {}))) for name, own in nominal.items()}


def _by_type(rows: Iterable[Any], book: Book) -> dict[str, Amounts]:
    found: dict[str, Amounts] = {}
    for row in rows:
        if row.instance_type not in book:
            raise UnknownTypeError(row.instance_type)
        total = found.setdefault(row.instance_type, {})
        for resource, amount in completed(row, book[row.instance_type]).items():
            total[resource] = total.get(resource, 0) + amount
    return found


def _borrowing(sharing: ResourceSharingConfig, nominal: Amounts, absolute: Amounts) -> Amounts | None:
    """Return the limit of each resource: none outside the cohort, 0 for who only lends, half where nothing is said."""
    if sharing.strategy is SharingStrategy.DONT_LEND:
        return None
    percent = 50 if sharing.borrow_limit is None else sharing.borrow_limit
    if sharing.strategy is SharingStrategy.LEND:
        percent = 0
    return {name: amount * percent // 100 for name, amount in nominal.items()} | absolute


def _groups(flavors: dict[str, tuple[Amounts, Amounts | None]]) -> list[Object]:
    if not flavors:
        return []
    profiles = sorted({name for nominal, _ in flavors.values() for name in nominal if name not in PRINTED})
    covered = [*PRINTED, *profiles]
    rows = [
        {"name": name, "resources": [_resource(each, *amounts) for each in covered]}
        for name, amounts in flavors.items()
    ]
    return [{"coveredResources": covered, "flavors": rows}]


def _resource(resource: str, nominal: Amounts, borrowing: Amounts | None) -> Object:
    entry = {"name": resource, "nominalQuota": _text(resource, nominal.get(resource, 0))}
    if borrowing is not None:
        entry["borrowingLimit"] = _text(resource, borrowing.get(resource, 0))
    return entry


def _text(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU else str(amount)
