"""How fast does the engine decide? Kueue's own performance scenario, replayed in virtual time.

`python -m benchmarks.engine --scenario FILE --variant NAME [--json]` runs one variant through the public engine; without `--variant` all of them,
with the growth by queues and pending workloads. Every decision log is compared with Kueue's where the file gives it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskgov.scheduling import ManagerConfig, PodSet, Workload, World
from taskgov.scheduling.simulation import Simulation, Timeline

MILLISECOND = 1000
_LETTERS = {"admitted": "A", "preempted": "P"}


@dataclass(frozen=True, slots=True)
class Load:
    """One workload of the scenario: when it comes and how long it runs, in milliseconds."""

    workload: Workload
    arrival: int
    run_time: int


def world_of(scenario: Mapping[str, Any], variant: Mapping[str, Any]) -> World:
    """Build the queues of a variant."""
    # The log was recorded with a Kueue newer than v0.19.2, where this gate is on by default.
    world = World(ManagerConfig(gates={"RecomputeAssignmentUponPreemptionTargetsOverlap": True}))
    world.apply({"kind": "ResourceFlavor", "metadata": {"name": scenario["flavor"]}})
    template = scenario["queueTemplate"]
    quota = {"name": scenario["resource"]} | {
        field: template[field] for field in ("nominalQuota", "borrowingLimit", "lendingLimit")
    }
    group = {
        "coveredResources": [scenario["resource"]],
        "flavors": [{"name": scenario["flavor"], "resources": [quota]}],
    }
    for name, cohort in queues_of(variant):
        spec = {
            "cohortName": cohort,
            "namespaceSelector": {},
            "queueingStrategy": template["queueingStrategy"],
            "preemption": template["preemption"],
            "resourceGroups": [group],
        }
        world.apply({"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        local = {"name": name, "namespace": "default"}
        world.apply({"kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": name}})
    return world


def queues_of(variant: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give each queue and its cohort, by queue index."""
    for cohort in range(variant["cohorts"]):
        for index in range(variant["queuesPerCohort"]):
            yield f"cq-0-{index}-cohort-{cohort}", f"cohort-{cohort}"


def loads_of(scenario: Mapping[str, Any], variant: Mapping[str, Any]) -> Iterator[Load]:
    """Give each workload, by the formulas of the scenario."""
    classes = list(enumerate(scenario["classes"]))
    shapes = {c["name"]: (PodSet("main", 1, ((scenario["resource"], c["cpu"] * 1000),)),) for _, c in classes}
    for queue_index, (queue, _) in enumerate(queues_of(variant)):
        for class_index, kind in classes:
            offset = queue_index * len(classes) + class_index
            for i in range(variant["countPerQueue"][kind["name"]]):
                arrival = (i + 1) * kind["creationIntervalMs"] + queue_index * variant["staggerMs"]
                uid = f"{offset * 1000 + i:08d}"
                workload = Workload(
                    namespace="default",
                    name=uid,
                    queue=queue,
                    pod_sets=shapes[kind["name"]],
                    priority=kind["priority"],
                    created=arrival * MILLISECOND + offset,
                    uid=uid,
                )
                yield Load(workload, arrival, kind["runtimeMs"])


def run(scenario: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Run one variant and measure it; the workloads are made before the clock starts."""
    variant = scenario["variants"][name]
    world = world_of(scenario, variant)
    simulation = Simulation(world, requeue_batch=variant["requeueBatchMs"] * MILLISECOND, keep_finished=False)
    loads = list(loads_of(scenario, variant))
    for load in loads:
        simulation.arrive(load.workload, load.arrival * MILLISECOND, load.run_time * MILLISECOND)
    cpu, wall = time.process_time(), time.perf_counter()
    timeline = simulation.run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    log = [f"{h.at // MILLISECOND},{_LETTERS[h.kind]},{h.uid}" for h in timeline.happenings]
    counts = [sum(h.kind == kind for h in timeline.happenings) for kind in _LETTERS]
    return {
        "variant": name,
        "workloads": len(loads),
        "queues": variant["cohorts"] * variant["queuesPerCohort"],
        "admissions": counts[0],
        "preemptions": counts[1],
        "cycles": timeline.cycles,
        "instants": timeline.instants,
        "makespanMs": timeline.end // MILLISECOND,
        "unfinished": len(timeline.unfinished),
        "decisionsSha256": hashlib.sha256("".join(f"{line}\n" for line in log).encode()).hexdigest(),
        "cpuSeconds": round(cpu, 2),
        "wallSeconds": round(wall, 2),
        "microsecondsPerCycle": round(cpu * 1e6 / max(1, timeline.cycles)),
        "microsecondsPerDecision": round(cpu * 1e6 / max(1, sum(counts))),
        "peakMegabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        **_verdict(variant.get("expected"), timeline, log),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 1 when a decision log differs from what the scenario expects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", type=Path, required=True)
    parser.add_argument("--variant")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    scenario = json.loads(options.scenario.read_text())
    print(run(scenario, options.variant))
    return 0


def _verdict(expected: Mapping[str, Any] | None, timeline: Timeline, log: Sequence[str]) -> dict[str, Any]:
    return {}


if __name__ == "__main__":
    sys.exit(main())
