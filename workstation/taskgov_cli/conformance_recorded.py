"""How does a case recorded from Kueue's own scheduler look as a case of taskgov? Whole cycles on Kubernetes objects.

Such a case has Kubernetes objects, the manager's configuration, which workloads finish after which cycle, and what
stood after each cycle (docs/scheduling.md has the form).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND: Final = "recorded_cycles"

Object = dict[str, Any]


def is_recorded(case: Mapping[str, Any]) -> bool:
    """Return whether a case was recorded from Kueue's scheduler: it has objects, and no kind."""
    return "kind" not in case and "objects" in case


def as_cycles(case: Mapping[str, Any]) -> Object:
    """Return a recorded case with the field names of the cases that run several cycles."""
    config = case["config"]
    fair = {"enabled": config["fairSharing"], "preemptionStrategies": config["strategies"]}
    return {
        "kind": KIND,
        "name": case["name"],
        "now": case["now"],
        "maxCycles": case["cycles"],
        "config": {"fairSharing": fair, "featureGates": config["gates"]},
        "objects": case["objects"],
        "finish": {int(cycle): names for cycle, names in (case.get("finish") or {}).items()},
        "expected": {"cycles": [_state(cycle) for cycle in case["expected"]["cycles"]]},
    }


def _state(cycle: Mapping[str, Any]) -> Object:
    return {
        "assignments": {name: _admission(held) for name, held in (cycle["assignments"] or {}).items()},
        "preempted": [_told(*victim) for victim in cycle["preempted"] or ()],
        "pendingConditions": [_told(name, *condition) for name, condition in (cycle["pending"] or {}).items()],
        "left": _waiting(cycle["left"]),
        "inadmissibleLeft": _waiting(cycle["inadmissible"]),
    }


def _admission(held: Mapping[str, Any]) -> Object:
    names = ("name", "count", "flavors")
    pod_sets = [
        {**{name: p[name] for name in names if p.get(name) is not None}, "resourceUsage": p.get("usage") or {}}
        for p in held["podSets"]
    ]
    return {"clusterQueue": held["cq"], "podSetAssignments": pod_sets}


def _told(workload: str, reason: str, message: str) -> Object:
    return {"workload": workload, "reason": reason, "message": message}


def _waiting(queues: Mapping[str, list[str]] | None) -> Object:
    return {queue: names for queue, names in (queues or {}).items() if names}
