"""Words to describe a small Kueue installation in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskgov.scheduling import CycleResult, KueueModel, ManagerConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]
NOW = "2026-11-20T09:00:00Z"
HYPERPOD_PREEMPTION = {
    "withinClusterQueue": "LowerPriority",
    "reclaimWithinCohort": "Any",
    "borrowWithinCohort": {"policy": "LowerPriority"},
}


def a_flavor(name: str = "gpu", **spec: Any) -> Object:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def a_cohort(name: str, parent: str | None = None, **spec: Any) -> Object:
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": parent, **spec}}


def a_group(flavors: Mapping[str, Mapping[str, Any]]) -> Object:
    """Describe one resource group: for each flavor, for each resource, `nominal` or (nominal, borrowing, lending)."""
    return {
        "coveredResources": list(next(iter(flavors.values()))),
        "flavors": [
            {"name": flavor, "resources": [_quota(resource, amount) for resource, amount in resources.items()]}
            for flavor, resources in flavors.items()
        ],
    }


def a_queue(
    name: str,
    *,
    cohort: str | None = None,
    cpu: Any = None,
    flavors: Mapping[str, Mapping[str, Any]] | None = None,
    **spec: Any,
) -> Object:
    """Describe a ClusterQueue with one group: `cpu` of the flavor `gpu`, or the given flavors."""
    groups = [a_group(flavors or {"gpu": {"cpu": cpu}})]
    return {
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": groups, **spec},
    }


def a_door(queue: str, namespace: str = "default") -> Object:
    """Describe a LocalQueue of the same name as its ClusterQueue."""
    return {
        "kind": "LocalQueue",
        "metadata": {"name": queue, "namespace": namespace},
        "spec": {"clusterQueue": queue},
    }


def a_job(
    name: str,
    queue: str,
    *,
    cpu: str = "1",
    count: int = 1,
    priority: int = 0,
    second: int = 0,
    namespace: str = "default",
    requests: Mapping[str, str] | None = None,
    **pod_set: Any,
) -> Object:
    """Describe a pending Workload of one pod set, created at a second of 08:00."""
    return {
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": f"2026-11-20T08:{second // 60:02d}:{second % 60:02d}Z",
            "labels": {"kueue.x-k8s.io/job-uid": f"job-{name}"},
        },
        "spec": {
            "queueName": queue,
            "priority": priority,
            "podSets": [
                {
                    "name": "main",
                    "count": count,
                    "template": {"spec": {"containers": [{"resources": {"requests": requests or {"cpu": cpu}}}]}},
                    **pod_set,
                },
            ],
        },
    }


def a_running_job(
    name: str, queue: str, *, cpu: str = "1", flavor: str = "gpu", since: str = NOW, **job: Any
) -> Object:
    """Describe a Workload that holds quota since a moment."""
    workload = a_job(name, queue, cpu=cpu, **job)
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": cpu}}
    return workload | {
        "status": {
            "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            "conditions": [
                a_condition("QuotaReserved", since),
                a_condition("Admitted", since),
            ],
        },
    }


def a_condition(
    kind: str, since: str = NOW, *, status: str = "True", reason: str = "Test", message: str = ""
) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def a_world(*objects: Object, fair_sharing: bool = False, gates: Mapping[str, bool] | None = None) -> KueueModel:
    """Build a world with the flavor `gpu`, the given objects, and a door to each queue."""
    world = KueueModel(ManagerConfig(fair_sharing=fair_sharing, gates=gates or {}))
    doors = [a_door(o["metadata"]["name"]) for o in objects if o["kind"] == "ClusterQueue"]
    world.load([a_flavor(), *doors, *objects])
    return world


def names(result: CycleResult) -> tuple[list[str], list[str], list[str]]:
    """Give who was admitted, who was preempted, who waits; without the namespace."""
    return (
        [a.workload.removeprefix("default/") for a in result.admitted],
        [p.workload.removeprefix("default/") for p in result.preempted],
        [w.workload.removeprefix("default/") for w in result.waiting],
    )


def conditions(world: KueueModel, name: str) -> dict[str, Object]:
    """Give a workload's conditions by type."""
    return {c["type"]: c for c in world.workload(f"default/{name}")["status"]["conditions"]}


def _quota(resource: str, amount: Any) -> Object:
    nominal, borrowing, lending = amount if isinstance(amount, tuple) else (amount, None, None)
    return {"name": resource, "nominalQuota": nominal, "borrowingLimit": borrowing, "lendingLimit": lending}
