"""What does each kind of conformance case ask? Runs a case through the public engine API.

The answer has the form of the case's `expected`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from taskgov.quantities import format_quantity
from taskgov.scheduling import CycleResult, KueueModel, ManagerConfig, events, instant, moment
from taskgov.scheduling.assignment import NO_CANDIDATES, POSSIBILITIES, PREEMPT, PUBLIC_MODES, RECLAIM, Assignment
from taskgov_cli.conformance_objects import NEWER_GATES, Case, workload_object, world_of
from taskgov_cli.conformance_recorded import KIND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Answer = dict[str, Any]

_ORACLE_MODES = {"Preempt": PREEMPT, "Reclaim": RECLAIM, "NoCandidates": NO_CANDIDATES}


def answer(case: Case) -> Answer:
    """Return what the engine says to a case, shaped like its `expected`."""
    return KINDS[case["kind"]](case)


def _quota_available(case: Case) -> Answer:
    world = world_of(case)
    names = [queue["name"] for queue in case["clusterQueues"]]
    views = {name: world.quota(name) for name in names}
    return {
        "available": {name: {fr: max(0, n) for fr, n in view.available.items()} for name, view in views.items()},
        "potentiallyAvailable": {name: view.potential for name, view in views.items()},
    }


def _shares(case: Case) -> Answer:
    world, extra = world_of(case), case.get("extraRequest") or {}
    shares = []
    for wanted in case["expected"]["shares"]:
        share = world.share(wanted["node"], cohort=wanted["kind"] == "Cohort", extra=extra)
        shares.append(
            {
                "node": wanted["node"],
                "kind": wanted["kind"],
                "weightedShare": share.weighted,
                "dominantResource": share.dominant,
                "borrowing": share.borrowing,
            },
        )
    return {"shares": shares}


def _candidates(case: Case) -> Answer:
    held = {c["admission"]["clusterQueue"] for c in case["candidates"] if c.get("admission")}
    queues = held | {case["preemptorClusterQueue"]}
    world = KueueModel(ManagerConfig())
    world.load({"kind": "ClusterQueue", "metadata": {"name": name}} for name in sorted(queues))
    world.load(workload_object(candidate) for candidate in case["candidates"])
    return {"order": world.candidates(case["preemptorClusterQueue"])}


def _preemption(case: Case) -> Answer:
    world, incoming = world_of(case, gates=NEWER_GATES), case["incoming"]
    flavors = {
        p["podSet"]: {r: (c["flavor"], c["mode"] == "Preempt") for r, c in p["flavors"].items()}
        for p in incoming["assignment"]
    }
    victims = world.victims(workload_object(incoming), incoming["clusterQueue"], flavors)
    told = {k for k in world.workloads() if _is_true(world.workload(k), "Evicted")}
    return {
        "preempted": _by_workload(
            [
                {"workload": v.workload, "reason": v.reason, "message": v.message}
                for v in victims
                if v.workload not in told
            ]
        ),
        "targetCount": len(victims),
    }


def _flavor_assigner(case: Case) -> Answer:
    world, incoming, stub = world_of(case, gates=NEWER_GATES), case["incoming"], case["preemptionOracle"]

    def oracle(fr: str, amount: int) -> tuple[int, int]:
        del amount  # the recorded stub answers by flavor and resource alone
        reply = stub["byFlavorResource"].get(fr, stub["default"])
        return _ORACLE_MODES[reply["possibility"]], reply["borrowAfter"]

    assignment = world.assign(workload_object(incoming), incoming["clusterQueue"], oracle)
    return {
        "representativeMode": PUBLIC_MODES[assignment.mode],
        "borrowing": assignment.borrowing,
        "podSets": _pod_sets(assignment),
        "usage": assignment.usage,
        "noFitReason": assignment.blocker.token,
        "flavors": {p.name: {r: c.flavor for r, c in p.choices.items()} for p in assignment.pod_sets},
    }


def _pod_sets(assignment: Assignment) -> list[Answer]:
    return [
        {
            "name": p.name,
            "count": p.count,
            "flavors": {
                r: {"flavor": c.flavor, "mode": PUBLIC_MODES[c.mode], "triedFlavorIdx": c.tried}
                for r, c in p.choices.items()
            },
            "requests": {r: format_quantity(r, amount) for r, amount in p.requests.items()},
            "reasons": sorted(str(reason) for reason in p.reasons),
            "attempts": [
                {
                    "flavor": a.flavor,
                    "mode": PUBLIC_MODES[a.mode],
                    "borrow": a.borrow,
                    "preemptionPossibility": POSSIBILITIES[a.mode],
                    "reasons": sorted(str(reason) for reason in a.reasons),
                    "noFitReason": a.blocker.token,
                }
                for group in p.attempts
                for a in group
            ],
        }
        for p in assignment.pod_sets
    ]


def _schedule(case: Case) -> Answer:
    world = world_of(case, gates=NEWER_GATES)
    result = world.cycle(case["now"])
    return {
        "newlyAdmitted": {a.workload: _admission(world, a.workload) for a in result.admitted},
        **_state(world, result),
        "skippedPreemptions": {q["name"]: result.skipped_preemptions.get(q["name"], 0) for q in case["clusterQueues"]},
        "events": [
            {
                "namespace": e.workload.partition("/")[0],
                "name": e.workload.partition("/")[2],
                "type": e.type,
                "reason": e.reason,
                "message": e.message,
            }
            for e in events(result)
        ],
    }


def _two_cycles(case: Case) -> Answer:
    world = world_of(case, gates=NEWER_GATES)
    found: Answer = {}
    for step in case["steps"]:
        if step == "cycle":
            result = world.cycle(case["now"])
            found.setdefault("afterFirstCycle", _state(world, result))
        elif step == "requeueInadmissible":
            world.requeue_inadmissible(world.trees)
        else:
            for key in step["delete"]:
                namespace, _, name = key.rpartition("/")
                world.delete("Workload", name, namespace)
    return found | {"assignmentsAfterSecondCycle": _assignments(world)}


def _cycles(case: Case) -> Answer:
    world = world_of(case)
    cycles: list[Answer] = []
    clock = instant(case["now"])
    for _ in range(case["maxCycles"]):
        if not world.has_heads():
            break
        now = moment(clock) + timedelta(seconds=len(cycles))
        result = world.cycle(now)
        cycles.append(_state(world, result))
        for victim in result.preempted:
            world.finish_eviction(victim.workload, now)
        for done in case.get("finish", {}).get(len(cycles), ()):
            world.finish(done, now)
        world.requeue_inadmissible()
    return {"cycles": cycles}


def _state(world: KueueModel, result: CycleResult) -> Answer:
    names = sorted({*world.cluster_queues()})
    pending = {name: world.pending(name) for name in names}
    return {
        "assignments": _assignments(world),
        "preempted": _by_workload(
            [{"workload": p.workload, "reason": p.reason, "message": p.message} for p in result.preempted],
        ),
        "pendingConditions": _pending_conditions(world),
        "left": {name: in_line for name, (in_line, _) in pending.items() if in_line},
        "inadmissibleLeft": {name: out for name, (_, out) in pending.items() if out},
    }


def _assignments(world: KueueModel) -> Answer:
    return {key: _admission(world, key) for key in world.workloads() if world.admission(key) is not None}


def _admission(world: KueueModel, key: str) -> Any:
    return world.workload(key)["status"]["admission"]


def _pending_conditions(world: KueueModel) -> list[Answer]:
    return _by_workload(
        [
            {"workload": key, "reason": condition["reason"], "message": condition["message"]}
            for key in world.workloads()
            for condition in world.workload(key)["status"]["conditions"]
            if condition["type"] == "QuotaReserved" and condition["status"] == "False"
        ],
    )


def _is_true(workload: Mapping[str, Any], kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in workload["status"]["conditions"])


def _by_workload(items: list[Answer]) -> list[Answer]:
    return sorted(items, key=lambda item: str(item["workload"]))


KINDS: Mapping[str, Callable[[Case], Answer]] = {
    "quota_available": _quota_available,
    "dominant_resource_share": _shares,
    "preemption_candidates_ordering": _candidates,
    "preemption_classical": _preemption,
    "preemption_hierarchical": _preemption,
    "preemption_fair": _preemption,
    "flavor_assigner": _flavor_assigner,
    "flavor_assigner_hierarchical": _flavor_assigner,
    "flavor_assigner_reclaim_order": _flavor_assigner,
    "schedule": _schedule,
    "schedule_fair": _schedule,
    "schedule_recompute": _schedule,
    "schedule_two_cycles": _two_cycles,
    "fuzz_schedule": _cycles,
    KIND: _cycles,
}
