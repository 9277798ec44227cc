"""How does the API server show it? Workloads and ClusterQueues with the status Kueue would have written.

Called by `view`. v1beta1 and v1beta2 workloads differ only in how the spec names its priority class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from taskgov.quantities import format_quantity
from taskgov.scheduling.check_reading import check_list
from taskgov.scheduling.fair_admission import quantity
from taskgov.scheduling.instants import NEVER_AGAIN, ZERO, timestamp
from taskgov.scheduling.shares import dominant_share
from taskgov.scheduling.state import ADMITTED, QueueState, Record

if TYPE_CHECKING:
    from taskgov.scheduling.fair_admission import Account
    from taskgov.scheduling.objects import Admission, LocalQueue, PodSet, Workload
    from taskgov.scheduling.quota import QuotaNode

Object = dict[str, Any]

_GROUP: Final = "kueue.x-k8s.io"
_CLASS_KINDS: Final = {
    "kueue.x-k8s.io/workloadpriorityclass": "WorkloadPriorityClass",
    "scheduling.k8s.io/priorityclass": "PriorityClass",
}
_LONGEST_MESSAGE: Final = 32768  # what the API server takes in a condition


def workload_object(record: Record, version: str) -> Object:
    """Write a workload: its own metadata and spec, and the status."""
    source = record.workload.source
    obj = dict(source) if source is not None else _bare_workload(record.workload)
    obj["spec"] = _spec_in_version(record.workload, dict(obj.get("spec") or {}), version)
    obj |= {"apiVersion": f"{_GROUP}/{version}", "kind": "Workload"}
    status = dict(obj.get("status") or {})
    status.pop("admission", None)
    status.pop("requeueState", None)
    status.pop("admissionChecks", None)
    if record.checks:
        status["admissionChecks"] = check_list(record.checks)
    status["conditions"] = condition_list(record)
    if record.admission is not None:
        status["admission"] = admission_object(record.admission)
    state: Object = {"count": record.requeue_count} if record.requeue_count else {}
    if record.requeue_at is not None and record.requeue_at != NEVER_AGAIN:
        state["requeueAt"] = timestamp(record.requeue_at)
    if state:
        status["requeueState"] = state
    return obj | {"status": status}


def _spec_in_version(workload: Workload, spec: Object, version: str) -> Object:
    """Name the priority class as the version does, and give the priority that counts."""
    spec["priority"] = workload.priority
    spec["active"] = workload.active
    name, source = spec.pop("priorityClassName", None), spec.pop("priorityClassSource", None)
    reference = spec.pop("priorityClassRef", None)
    if reference is None and name and source:
        kind = _CLASS_KINDS[source]
        reference = {"group": source.partition("/")[0], "kind": kind, "name": name}
    if reference and version == "v1beta2":
        spec["priorityClassRef"] = reference
    elif reference:
        spec["priorityClassName"] = reference["name"]
        spec["priorityClassSource"] = f"{reference['group']}/{reference['kind'].lower()}"
    return spec


def condition_list(record: Record) -> list[Object]:
    """Write `status.conditions`."""
    return [
        {
            "type": kind,
            "status": "True" if condition.status else "False",
            "reason": condition.reason,
            "message": str(condition.message)[:_LONGEST_MESSAGE],
            "lastTransitionTime": timestamp(condition.since),
        }
        for kind, condition in record.conditions.items()
    ]


def admission_object(admission: Admission) -> Object:
    """Write `status.admission`."""
    return {
        "clusterQueue": admission.cluster_queue,
        "podSetAssignments": [
            {
                "name": p.name,
                "flavors": dict(p.flavors),
                "resourceUsage": {r: format_quantity(r, amount) for r, amount in p.usage.items()},
                "count": p.count,
            }
            for p in admission.pod_sets
        ],
    }


def cluster_queue_object(state: QueueState, inactive: str | None) -> Object:
    """Write a ClusterQueue's status: usage, counts, share, and whether it is active."""
    admitted = [r for r in state.running_records() if _is_admitted(r)]
    return {
        "apiVersion": f"{_GROUP}/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": state.spec.name},
        "status": {
            "flavorsReservation": _flavors_usage(state, state.node.usage),
            "flavorsUsage": _flavors_usage(state, _usage_of(admitted)),
            "pendingWorkloads": len(state.pending),
            "reservingWorkloads": len(state.running),
            "admittedWorkloads": len(admitted),
            "fairSharing": {"weightedShare": dominant_share(state.node).weighted},
            "conditions": [
                {
                    "type": "Active",
                    "status": "False" if inactive else "True",
                    "reason": inactive or "Ready",
                    "message": f"Can't admit new workloads: {inactive}." if inactive else "Can admit new workloads",
                },
            ],
        },
    }


def cohort_object(node: QuotaNode) -> Object:
    """Write a Cohort's status: its share."""
    return {
        "apiVersion": f"{_GROUP}/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": node.name},
        "status": {"fairSharing": {"weightedShare": dominant_share(node).weighted}},
    }


def local_queue_object(queue: LocalQueue, members: list[Record], account: Account | None = None) -> Object:
    """Write a LocalQueue's status: how many of its workloads wait, hold quota, are admitted, and what it consumed."""
    running = [r for r in members if r.admission is not None and not r.finished]
    return {
        "apiVersion": f"{_GROUP}/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": queue.name, "namespace": queue.namespace},
        "spec": {"clusterQueue": queue.cluster_queue, "stopPolicy": queue.stop_policy},
        "status": {
            "pendingWorkloads": sum(r.admission is None and not r.finished for r in members),
            "reservingWorkloads": len(running),
            "admittedWorkloads": sum(_is_admitted(r) for r in running),
            **({} if account is None or account.updated is None else {"fairSharing": _fair_sharing(account)}),
        },
    }


def _fair_sharing(account: Account) -> Object:
    """Write what a LocalQueue consumed; whole seconds, as the API server keeps them."""
    consumed = {resource: quantity(amount) for resource, amount in sorted(account.consumed.items())}
    last = timestamp(account.updated or ZERO)
    return {"admissionFairSharingStatus": {"consumedResources": consumed, "lastUpdate": last}}


def _is_admitted(record: Record) -> bool:
    condition = record.conditions.get(ADMITTED)
    return condition is not None and condition.status


def _usage_of(records: list[Record]) -> dict[str, int]:
    usage: dict[str, int] = {}
    for record in records:
        for fr, amount in record.usage.items():
            usage[fr] = usage.get(fr, 0) + amount
    return usage


def _flavors_usage(state: QueueState, usage: dict[str, int]) -> list[Object]:
    """Write usage by flavor, in the order of the spec; what exceeds nominal quota is borrowed."""
    return [
        {"name": flavor, "resources": [_resource_usage(state.node, usage, flavor, r) for r in group.resources]}
        for group in state.spec.groups
        for flavor in group.flavors
    ]


def _resource_usage(node: QuotaNode, usage: dict[str, int], flavor: str, resource: str) -> Object:
    fr = f"{flavor}/{resource}"
    total = usage.get(fr, 0)
    quota = node.quotas.get(fr)
    nominal = 0 if quota is None else quota.nominal
    borrowed = max(0, total - nominal) if node.parent is not None else 0
    return {
        "name": resource,
        "total": format_quantity(resource, total),
        "borrowed": format_quantity(resource, borrowed),
    }


def _bare_workload(workload: Workload) -> Object:
    """Write the spec of a workload that was not read from an object."""
    metadata: Object = {"name": workload.name, "namespace": workload.namespace, "uid": workload.uid}
    if workload.created != ZERO:
        metadata["creationTimestamp"] = timestamp(workload.created)
    return {
        "metadata": metadata,
        "spec": {
            "queueName": workload.queue,
            "priority": workload.priority,
            "active": workload.active,
            "podSets": [_pod_set_object(p) for p in workload.pod_sets],
        },
    }


def _pod_set_object(pod_set: PodSet) -> Object:
    requests = {r: format_quantity(r, amount) for r, amount in pod_set.requests}
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}
    return {"name": pod_set.name, "count": pod_set.count, "template": template}
