"""Random worlds of elastic jobs for Kueue's scheduler to decide on: slices that replace others, and neighbours."""

from __future__ import annotations

from random import Random
from typing import Any

Object = dict[str, Any]
_NOW = "2026-11-20T09:00:00Z"
_PREEMPTION: tuple[Object, ...] = (
    {},
    {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    {
        "withinClusterQueue": "LowerOrNewerEqualPriority",
        "reclaimWithinCohort": "LowerPriority",
        "borrowWithinCohort": {"policy": "LowerPriority"},
    },
)


def worlds(count: int, seed: int = 1) -> list[Object]:
    """Return so many worlds, the same for the same seed."""
    return [_world(Random(f"{seed}/{number}"), number) for number in range(count)]  # noqa: S311 - cases, not secrets


def _world(draw: Random, number: int) -> Object:
    queues = [f"q{i}" for i in range(draw.randint(1, 3))]
    fair = draw.random() < 0.4
    gates = {"RecomputeAssignmentUponPreemptionTargetsOverlap": True} if draw.random() < 0.2 else {}
    flavors = ["a", "b"][: draw.randint(1, 2)]
    groups = draw.random() < 0.25
    objects: list[Object] = [{"kind": "Namespace", "metadata": {"name": "default"}}]
    objects += [{"kind": "ResourceFlavor", "metadata": {"name": flavor}} for flavor in flavors]
    for queue in queues:
        rules = draw.choice(_PREEMPTION[: 2 if fair else 3])
        objects += [_queue(draw, queue, flavors, rules), _door(queue)]
    for index in range(draw.randint(2, 6)):
        objects += _job(draw, index, draw.choice(queues), draw.choice(flavors), grouped=groups)
    config = {"fairSharing": fair, "strategies": [], "gates": gates}
    return {"name": f"slices-{number}", "set": "slices", "now": _NOW, "cycles": 5, "config": config, "objects": objects}


def _queue(draw: Random, name: str, flavors: list[str], rules: Object) -> Object:
    given = [
        {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": str(draw.randint(0, 12))}]} for flavor in flavors
    ]
    fungibility = {"whenCanBorrow": "TryNextFlavor"} if draw.random() < 0.3 else {}
    spec: Object = {
        "namespaceSelector": {},
        "queueingStrategy": draw.choice(["BestEffortFIFO", "StrictFIFO"]),
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": given}],
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor", **fungibility},
        "preemption": {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never", **rules},
    }
    if draw.random() < 0.8:
        spec["cohortName"] = "c"
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def _door(queue: str) -> Object:
    metadata = {"name": queue, "namespace": "default"}
    return {"kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": queue}}


def _job(draw: Random, index: int, queue: str, flavor: str, *, grouped: bool) -> list[Object]:
    """Return a pending job, a running one, or a running one with a slice that replaces it."""
    priority, counts = draw.randint(0, 2), [draw.randint(1, 4) for _ in range(2 if grouped else 1)]
    kind = draw.choice(["pending", "running", "slice", "slice"])
    if kind == "pending":
        return [_workload(f"j{index}", queue, counts, priority, index)]
    running = _workload(f"r{index}", queue, counts, priority, index)
    running["status"] = _status(queue, flavor, counts)
    if kind == "running":
        return [running]
    new = [max(0, count + draw.choice([-1, 1, 2, 4])) for count in counts]
    replacing = _workload(f"s{index}", queue, new, priority, index + 20)
    replacing["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": f"default/r{index}"}
    return [running, replacing]


def _workload(name: str, queue: str, counts: list[int], priority: int, second: int) -> Object:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": f"2026-11-20T08:00:{second:02d}Z",
    }
    pod_sets = [{"name": f"p{i}", "count": count, "template": template} for i, count in enumerate(counts)]
    spec = {"queueName": queue, "priority": priority, "active": True, "podSets": pod_sets}
    return {"kind": "Workload", "metadata": metadata, "spec": spec}


def _status(queue: str, flavor: str, counts: list[int]) -> Object:
    held = [
        {"name": f"p{i}", "count": count, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": str(count)}}
        for i, count in enumerate(counts)
    ]
    conditions = [
        {"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-11-20T08:30:00Z"}
        for kind in ("QuotaReserved", "Admitted")
    ]
    return {"admission": {"clusterQueue": queue, "podSetAssignments": held}, "conditions": conditions}
