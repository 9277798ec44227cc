"""How long a plan takes, from the raw node list to the last change: `python -m benchmarks.plan`.

The world is the largest one aimed at: 1,000 teams, 10,000 nodes, 20 instance types, 15 types a team (the API's limit),
one node in twenty broken, every third promise in parts of instances, and every quota different from what it is to be.
The yardstick is the time that parsing the node list takes, in the form in which the API server sends it: `orjson` where
it is installed, `json` otherwise. Every size runs in a process of its own, so that memory is that size's alone.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from time import perf_counter
from typing import Any, TypeVar

from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.model import ClusterFacts, Snapshot
from taskgov.snapshot.nodes import NodeMemory, nodes_from_kubernetes, remember_nodes

Result = TypeVar("Result")
SIZES = ((100, 1_000), (200, 2_000), (500, 5_000), (1_000, 10_000))
ROWS = 15
AIM = 3.0
"""Times of the yardstick that planning may take."""
REPEATS = 3
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TYPES = (
    *(f"ml.g5.{size}xlarge" for size in ("", 2, 4, 8, 12, 16, 24, 48)),
    *(f"ml.g6.{size}xlarge" for size in ("", 2, 4, 8, 12, 16, 24, 48)),
    *("ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.p5en.48xlarge", "ml.trn1.32xlarge"),
)
ALLOCATABLE = {"cpu": "191450m", "memory": "2063190Mi", "ephemeral-storage": "94284Mi", "pods": "100"}


@dataclass(frozen=True, slots=True)
class Figures:
    """What one size took: seconds, and bytes of memory at the most."""

    teams: int
    nodes: int
    list_bytes: int
    yardstick: str
    parsing: float
    reading: float
    planning: float
    changes: int
    peak_memory: int

    @property
    def ratio(self) -> float:
        """From parsed list to plan, in times of the yardstick."""
        return (self.reading + self.planning) / self.parsing


def main() -> int:
    """Run every size in a process of its own and print the table; 1 when the largest misses the aim."""
    if len(sys.argv) == 3:
        print(json.dumps(asdict(measure(int(sys.argv[1]), int(sys.argv[2])))))
        return 0
    print(" teams   nodes      list    parse     read     plan  ratio  us/row    memory")
    figures = [_in_a_process_of_its_own(teams, nodes) for teams, nodes in SIZES]
    for each in figures:
        per_row = each.planning * 1e6 / (each.teams * ROWS)
        print(
            f"{each.teams:>6} {each.nodes:>7} {each.list_bytes / 1e6:>6.1f}MB"
            f" {each.parsing:>7.3f}s {each.reading:>7.3f}s {each.planning:>7.3f}s"
            f" {each.ratio:>5.2f}x {per_row:>7.1f} {each.peak_memory / 1e6:>6.0f}MB"
        )
    largest = figures[-1]
    verdict = "kept" if largest.ratio <= AIM else "missed"
    print(f"yardstick {largest.yardstick}.loads; aim at most {AIM:g}x: {verdict} ({largest.changes} changes planned)")
    return 0 if largest.ratio <= AIM else 1


def measure(teams: int, nodes: int) -> Figures:
    """Return the figures of one size, the best of a few runs."""
    raw = json.dumps({"kind": "NodeList", "items": [node(n) for n in range(nodes)]}).encode()
    name, loads = _yardstick()
    parsing, items = _best(lambda: loads(raw)["items"])
    reading, memory = _best(lambda: remember_nodes(NodeMemory(), nodes_from_kubernetes(items), NOW))
    world = replace(world_of(teams), nodes=memory[1])
    planning, plan = _best(lambda: plan_quotas(world, mode="apply"))
    return Figures(
        teams=teams,
        nodes=nodes,
        list_bytes=len(raw),
        yardstick=name,
        parsing=parsing,
        reading=reading,
        planning=planning,
        changes=_changes(plan),
        peak_memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def node(number: int) -> dict[str, Any]:
    """Return a Node with all that the API server sends: labels, images, conditions, managed fields."""
    instance_type = TYPES[number % len(TYPES)]
    name = f"hyperpod-i-{number:017x}"
    heartbeat = "2026-11-20T11:59:30Z"
    conditions = ("NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    images = [
        {"names": [f"{_REPOSITORY}/image-{n}@sha256:{'ab' * 32}", f"{_REPOSITORY}/image-{n}:v1"], "sizeBytes": 10**9}
        for n in range(40)
    ]
    return {
        "metadata": {
            "name": name,
            "uid": f"{number:032x}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "labels": {
                "node.kubernetes.io/instance-type": instance_type,
                "sagemaker.amazonaws.com/node-health-status": "Schedulable" if number % 20 else "Unschedulable",
                "sagemaker.amazonaws.com/deep-health-check-status": "Passed",
                **{f"example.com/label-{n}": f"value-{n}" for n in range(20)},
            },
            "annotations": {f"example.com/annotation-{n}": "x" * 40 for n in range(8)},
            "managedFields": [_managed_fields(n) for n in range(3)],
        },
        "spec": {"providerID": f"aws:///use1-az1/sagemaker/cluster/{name}", "taints": []},
        "status": {
            "capacity": {**ALLOCATABLE, "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"},
            "allocatable": {**ALLOCATABLE, "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"},
            "conditions": [
                {"type": kind, "status": "True" if kind == "Ready" else "False", "lastHeartbeatTime": heartbeat}
                for kind in conditions
            ],
            "images": images,
            "nodeInfo": {f"field{n}": "v" * 30 for n in range(10)},
        },
    }


def world_of(teams: int) -> Snapshot:
    """Return a world of so many teams, whose quotas are all to change; its nodes are still missing."""
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"},
        "teams": [_team(n, teams) for n in range(teams)],
        "sharedPool": {"team": "shared-pool"},
    }
    return Snapshot(
        cluster=ClusterFacts(name="ml-cluster", arn=str(document["cluster"])),
        taken_at=NOW,
        quotas=tuple(_quota(n) for n in range(teams)),
        policy=PolicyDocument.model_validate(document),
    )


def _team(number: int, teams: int) -> dict[str, Any]:
    promised = list(_rows(number))
    shares = [{"instanceType": row["InstanceType"], "percent": 100 / teams} for row in promised[2::3]]
    rows = [row for n, row in enumerate(promised) if n % 3 != 2]
    return {"name": f"team-{number}", "tier": number % 3 + 1, "quota": {"ComputeQuotaResources": rows}, "share": shares}


def _rows(number: int) -> Iterator[dict[str, Any]]:
    for n in range(ROWS):
        amount = {"Count": 1} if n % 3 else {"Accelerators": 1}
        yield {"InstanceType": TYPES[(number + n) % len(TYPES)], **amount}


def _quota(number: int) -> ComputeQuota:
    rows = [{**row, "Count": 2} for row in _rows(number) if "Count" in row]
    return ComputeQuota(
        compute_quota_id=f"quota{number:07}",
        name=f"quota-{number}",
        compute_quota_version=1,
        status="Created",
        compute_quota_config=ComputeQuotaConfig.model_validate({"ComputeQuotaResources": rows}),
        compute_quota_target=ComputeQuotaTarget(team_name=f"team-{number}"),
    )


_REPOSITORY = "111122223333.dkr.ecr.us-east-1.amazonaws.com/machine-learning"


def _managed_fields(number: int) -> dict[str, Any]:
    fields: dict[str, Any] = {f"f:field-{n}": {".": {}, f"f:part-{n}": {}} for n in range(20)}
    return {"manager": f"manager-{number}", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}


def _yardstick() -> tuple[str, Callable[[bytes], Any]]:
    try:
        # Only a yardstick: the project itself does without it.
        return "orjson", import_module("orjson").loads
    except ImportError:
        return "json", json.loads


def _best(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the shortest time of a few runs, and what the last one gave."""
    best, result = _timed(work)
    for _ in range(REPEATS - 1):
        seconds, result = _timed(work)
        best = min(best, seconds)
    return best, result


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    began = perf_counter()
    result = work()
    return perf_counter() - began, result


def _changes(plan: Plan) -> int:
    return len(plan.changes)


def _in_a_process_of_its_own(teams: int, nodes: int) -> Figures:
    command = [sys.executable, "-m", "benchmarks.plan", str(teams), str(nodes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this very file
    return Figures(**json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
