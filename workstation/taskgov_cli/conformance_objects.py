"""How does a conformance case look as Kubernetes objects? Turns case files into what `KueueModel.load` takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taskgov.scheduling import KueueModel, ManagerConfig, Strategy

Case = Mapping[str, Any]
Object = dict[str, Any]

NEWER_GATES = {
    "RecomputeAssignmentUponPreemptionTargetsOverlap": True,
    "UnadmittedWorkloadsObservability": True,
}
"""Gates whose defaults rose after v0.19.2: cases taken from Kueue's own tests assume them on."""


def world_of(case: Case, *, gates: Mapping[str, bool] | None = None) -> KueueModel:
    """Build the world of a case: configuration, objects, running and pending workloads."""
    world = KueueModel(_config(case, gates or {}))
    world.load(case["objects"] if "objects" in case else [*_infrastructure(case), *_workloads(case)])
    return world


def workload_object(workload: Mapping[str, Any]) -> Object:
    """Turn a case's workload into a Workload object."""
    metadata: Object = {
        "name": workload.get("name") or workload.get("key") or "incoming",
        "namespace": workload.get("namespace") or "",
        "uid": workload.get("uid") or "",
        "labels": workload.get("labels") or {},
        "creationTimestamp": workload.get("creationTimestamp"),
    }
    status: Object = {
        "conditions": _conditions(workload),
        "admission": workload.get("admission"),
        "reclaimablePods": workload.get("reclaimablePods") or [],
    }
    spec = {
        "queueName": workload.get("queueName") or "",
        "priority": workload.get("priority") or 0,
        "podSets": [_pod_set(p) for p in workload["podSets"]],
    }
    return {"kind": "Workload", "metadata": metadata, "spec": spec, "status": status}


def _config(case: Case, gates: Mapping[str, bool]) -> ManagerConfig:
    config = case.get("config") or {}
    fair = config.get("fairSharing") or {}
    strategies = tuple(Strategy(s) for s in fair.get("preemptionStrategies") or ())
    settings: dict[str, Any] = {"strategies": strategies} if strategies else {}
    return ManagerConfig(
        fair_sharing=bool(fair.get("enabled")),
        gates={**gates, **(config.get("featureGates") or {})},
        **settings,
    )


def _infrastructure(case: Case) -> Iterator[Object]:
    for name, labels in (case.get("namespaces") or {}).items():
        yield {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    for flavor in case.get("resourceFlavors") or ():
        yield _object("ResourceFlavor", flavor, {k: v for k, v in flavor.items() if k != "name"})
    for cohort in case.get("cohorts") or ():
        spec = {"parentName": cohort["parent"], "resourceGroups": cohort["resourceGroups"]}
        yield _object("Cohort", cohort, spec | _weight(cohort))
    for queue in case.get("clusterQueues") or ():
        spec = {k: v for k, v in queue.items() if k not in {"name", "cohort", "fairSharingWeight"}}
        yield _object("ClusterQueue", queue, spec | {"cohortName": queue["cohort"]} | _weight(queue))
    for queue in case.get("localQueues") or ():
        yield {
            "kind": "LocalQueue",
            "metadata": {"name": queue["name"], "namespace": queue["namespace"]},
            "spec": {"clusterQueue": queue["clusterQueue"], "stopPolicy": queue.get("stopPolicy")},
        }


def _workloads(case: Case) -> Iterator[Object]:
    workloads = case.get("workloads") or {}
    for workload in (workloads.get("admitted") or []) + (workloads.get("pending") or []):
        yield workload_object(workload)
    for queue, usage in (case.get("usage") or {}).items():
        yield from _usage_holders(queue, usage)


def _usage_holders(queue: str, usage: Mapping[str, int]) -> Iterator[Object]:
    """Make running workloads that hold exactly `usage`; cpu is given in milli."""
    for index, (key, amount) in enumerate(usage.items()):
        flavor, _, resource = key.partition("/")
        quantity = f"{amount}m" if resource == "cpu" else str(amount)
        assignment = {"name": "main", "count": 1, "flavors": {resource: flavor}, "resourceUsage": {resource: quantity}}
        yield workload_object(
            {
                "name": f"usage-{queue}-{index}",
                "podSets": [{"name": "main", "count": 1, "requests": {resource: quantity}}],
                "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            },
        )


def _object(kind: str, item: Mapping[str, Any], spec: Object) -> Object:
    return {"kind": kind, "metadata": {"name": item["name"]}, "spec": spec}


def _weight(item: Mapping[str, Any]) -> Object:
    weight = item.get("fairSharingWeight")
    return {} if weight is None else {"fairSharing": {"weight": weight}}


def _conditions(workload: Mapping[str, Any]) -> list[Object]:
    conditions = list(workload.get("conditions") or ())
    reserved = workload.get("quotaReservedAt")
    if reserved and all(c["type"] != "QuotaReserved" for c in conditions):
        conditions.append({"type": "QuotaReserved", "status": "True", "lastTransitionTime": reserved})
    return conditions


def _pod_set(pod_set: Mapping[str, Any]) -> Object:
    pod: Object = {
        "containers": [{"name": "main", "resources": {"requests": pod_set.get("requests") or {}}}],
        "nodeSelector": pod_set.get("nodeSelector"),
        "tolerations": pod_set.get("tolerations"),
    }
    if terms := pod_set.get("requiredNodeAffinityTerms"):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod["affinity"] = {"nodeAffinity": required}
    obj: Object = {"name": pod_set["name"], "count": pod_set["count"], "template": {"spec": pod}}
    if pod_set.get("minCount") is not None:
        obj["minCount"] = pod_set["minCount"]
    if pod_set.get("podSetGroup"):
        obj["topologyRequest"] = {"podSetGroupName": pod_set["podSetGroup"]}
    return obj
