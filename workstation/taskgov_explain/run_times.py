"""How a snapshot's workloads continue in time, when it is known how long they run."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from taskgov.allocation.loaded import finish_evictions
from taskgov.scheduling import KueueModel, instant
from taskgov.scheduling.status_reading import read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov_explain.simulation import Simulation

RunTimes = Mapping[str, timedelta]
"""Workload (`namespace/name`) -> how long it runs from its admission."""

HORIZON: Final = timedelta(days=365)
"""How far ahead a simulation looks."""
_FOR_EVER: Final = timedelta(days=36500)
_MICROSECOND: Final = timedelta(microseconds=1)


def run_times_of(snapshot: Snapshot, told: RunTimes) -> dict[str, timedelta]:
    """Return the given run times, and for others Kueue's limit (`maximumExecutionTimeSeconds`)."""
    known: dict[str, timedelta] = {}
    for item in snapshot.kueue.workloads:
        key, most = key_of(item), item["spec"].get("maximumExecutionTimeSeconds")
        if key in told:
            known[key] = told[key]
        elif most is not None:
            known[key] = timedelta(seconds=int(most))
    return known


def simulation_of(world: KueueModel, snapshot: Snapshot, run_times: RunTimes) -> Simulation:
    """Return a simulation that begins at the snapshot; it changes `world`. Who has no run time runs forever.

    Preempted jobs resume from a checkpoint. So does what ran in the snapshot and
    waits in `world`.
    """
    finish_evictions(world, snapshot.taken_at)
    now = instant(snapshot.taken_at)
    simulation = Simulation(world, requeue_batch=0)
    for item in snapshot.kueue.workloads:
        key = key_of(item)
        total = run_times.get(key)
        conditions = read_conditions(item.get("status") or {})
        if "Finished" in conditions and conditions["Finished"].status:
            continue
        admitted = conditions.get("Admitted")
        ran = now - admitted.since if admitted and admitted.status else 0
        left = max(0, (total or _FOR_EVER) // _MICROSECOND - ran)
        if world.admission(key) is None:
            simulation.arrive({**item, "kind": "Workload"}, now, left)
        elif total is not None:
            simulation.running(key, left, now)
    return simulation


def until(snapshot: Snapshot) -> datetime:
    """Return the end of a simulation."""
    return snapshot.taken_at + HORIZON


def key_of(item: KubernetesObject) -> str:
    """Return Kueue's key of a workload."""
    namespace = item["metadata"].get("namespace")
    return f"{namespace}/{item['metadata']['name']}" if namespace else str(item["metadata"]["name"])
