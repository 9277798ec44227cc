"""How fast does the engine decide? Kueue's own performance scenario, replayed in virtual time.

`python -m benchmarks.engine --scenario FILE --variant NAME [--json]` runs one variant through the public engine;
without `--variant` all of them, with the growth by queues and pending workloads. Every decision log is compared with
Kueue's where the file gives it.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.scenario import AIMS, GROWTH, KUEUE_NEEDS, SCENARIO
from taskgov.bootstrap import ALLOCATIONS
from taskgov.scheduling import KueueModel, ManagerConfig, PodSet, Workload
from taskgov_explain.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MILLISECOND = 1000
_LETTERS = {"admitted": "A", "preempted": "P"}


@dataclass(frozen=True, slots=True)
class Load:
    """One workload of the scenario: when it comes and how long it runs, in milliseconds."""

    workload: Workload
    arrival: int
    run_time: int


def world_of(scenario: Mapping[str, Any], variant: Mapping[str, Any]) -> KueueModel:
    """Build the queues of a variant."""
    # The log was recorded with a Kueue newer than v0.19.2, where this gate is on by default.
    world = KueueModel(ManagerConfig(gates={"RecomputeAssignmentUponPreemptionTargetsOverlap": True}))
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
    figures = {
        "variant": name,
        "workloads": len(loads),
        "queues": variant["cohorts"] * variant["queuesPerCohort"],
        "admissions": counts[0],
        "preemptions": counts[1],
        "cycles": timeline.cycles,
        "cyclesWithoutDecision": timeline.idle_cycles,
        "instants": timeline.instants,
        "makespanMs": timeline.end // MILLISECOND,
        "unfinished": len(timeline.unfinished),
        "decisionsSha256": hashlib.sha256("".join(f"{line}\n" for line in log).encode()).hexdigest(),
        "cpuSeconds": round(cpu, 2),
        "wallSeconds": round(wall, 2),
        "microsecondsPerCycle": round(cpu * 1e6 / max(1, timeline.cycles)),
        "microsecondsPerDecision": round(cpu * 1e6 / max(1, sum(counts))),
        "peakMegabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return figures | {"decisions": _verdict(variant.get("expected"), figures)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 1 when a decision log differs from what the scenario expects."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--scenario", type=Path, help="a scenario file; without it Kueue's baseline as restated here")
    parser.add_argument("--variant", help="run this variant alone, in this process; without it all of them")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    gc.set_threshold(ALLOCATIONS)  # as functions and commands have it
    scenario = json.loads(options.scenario.read_text()) if options.scenario else SCENARIO
    if options.variant:
        figures = [run({**GROWTH, **scenario, "variants": GROWTH["variants"] | scenario["variants"]}, options.variant)]
    else:
        figures = [_apart(name, options.scenario) for name in (*scenario["variants"], *GROWTH["variants"])]
    if options.json:
        print(json.dumps(figures[0] if options.variant else figures, indent=2))
    else:
        _print(figures)
    return 1 if any(f["decisions"] == "DIFFERENT" for f in figures) else 0


def _apart(variant: str, scenario: Path | None) -> dict[str, Any]:
    """Run one variant in a process of its own, so that its peak of memory is its own."""
    command = [sys.executable, "-m", "benchmarks.engine", "--variant", variant, "--json"]
    command += ["--scenario", str(scenario)] if scenario else []
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)  # noqa: S603 -- our own module
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _print(figures: Sequence[Mapping[str, Any]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - not in processes that are measured
    from rich.table import Table  # noqa: PLC0415

    columns = {
        "variant": "variant",
        "workloads": "workloads",
        "queues": "queues",
        "admissions": "admissions",
        "preemptions": "preemptions",
        "cycles": "cycles",
        "makespanMs": "makespan ms",
        "cpuSeconds": "CPU s",
        "microsecondsPerCycle": "us/cycle",
        "microsecondsPerDecision": "us/decision",
        "peakMegabytes": "MB",
        "decisions": "decisions",
        "decisionsSha256": "sha256",
    }
    table = Table(*columns.values(), "aim", "Kueue needs")
    for row in figures:
        shown = [str(row[key])[:12] if key == "decisionsSha256" else str(row[key]) for key in columns]
        table.add_row(*shown, AIMS.get(row["variant"], ""), KUEUE_NEEDS.get(row["variant"], ""))
    Console(width=200).print(table)


def _verdict(expected: Mapping[str, Any] | None, figures: Mapping[str, Any]) -> str:
    """Say whether everything that the scenario expects came out so."""
    if not expected:
        return "not recorded"
    differs = [key for key, value in expected.items() if key in figures and figures[key] != value]
    return "DIFFERENT" if differs else "as Kueue"


if __name__ == "__main__":
    sys.exit(main())
