"""What is measured of the scheduling model: cases in which one number grows; cycles run until nothing changes."""

from collections.abc import Callable, Mapping
from itertools import chain
from time import process_time
from typing import Any, Final

import orjson

from benchmarks.scale.rows import Figures
from taskgov.scheduling import KueueModel, ManagerConfig, settle

Item = dict[str, Any]
NOW: Final = "2026-11-20T09:00:00Z"
_PREEMPTION: Final = {
    "withinClusterQueue": "LowerPriority",
    "reclaimWithinCohort": "Any",
    "borrowWithinCohort": {"policy": "LowerPriority"},
}


def shapes(number: int) -> list[Item]:
    """Make jobs of different shapes in one queue: none fits."""
    return [
        _flavor("f0"),
        *_queue("q0", cohort=None, flavors={"f0": "1"}),
        *(_job(f"job-{n}", "q0", cpu=f"{2000 + n}m", second=n) for n in range(number)),
    ]


def queues(number: int) -> list[Item]:
    """Make queues of one cohort, ten jobs each, of which half fit: queues take turns by their shares, and preempt."""
    return [
        _flavor("f0"),
        _flavor("f1"),
        *chain.from_iterable(_queue(f"q{n}", cohort="all", flavors={"f0": "3", "f1": "2"}) for n in range(number)),
        *(
            _job(f"job-{n}-{k}", f"q{n}", cpu=str(1 + (n + k) % 2), second=n + k, priority=k % 3)
            for n in range(number)
            for k in range(10)
        ),
    ]


def half_waiting(number: int) -> list[Item]:
    """Make queues of one cohort, ten jobs each: half run, so that each second queue borrows; half wait."""
    return [
        _flavor("f0"),
        *chain.from_iterable(_queue(f"q{n}", cohort="all", flavors={"f0": "5"}) for n in range(number)),
        *(
            _job(f"running-{n}-{k}", f"q{n}", cpu="1500m" if n % 2 else "500m", second=n + k, runs="f0")
            for n in range(number)
            for k in range(5)
        ),
        *(
            _job(f"job-{n}-{k}", f"q{n}", cpu=f"{1000 + 10 * n + k}m", second=n + k)
            for n in range(number)
            for k in range(5, 10)
        ),
    ]


def depth(number: int) -> list[Item]:
    """Make a chain of cohorts with sixteen queues along it: every second one borrows from far up and down."""
    places = [n * number // 16 for n in range(16)]
    return [
        _flavor("f0"),
        *(_cohort(f"c{n}", f"c{n - 1}" if n else None) for n in range(number)),
        *chain.from_iterable(_queue(f"q{n}", cohort=f"c{at}", flavors={"f0": "2"}) for n, at in enumerate(places)),
        *(_job(f"job-{n}-{k}", f"q{n}", cpu="1", second=k) for n in range(0, 16, 2) for k in range(5)),
    ]


def flavors(number: int) -> list[Item]:
    """Make flavors of a group, filled one after the other by twenty queues."""
    names = [f"f{n}" for n in range(number)]
    return [
        *map(_flavor, names),
        *chain.from_iterable(_queue(f"q{n}", cohort="all", flavors=dict.fromkeys(names, "1")) for n in range(20)),
        *(_job(f"job-{n}-{k}", f"q{n}", cpu="1", second=k) for n in range(20) for k in range(20)),
    ]


def victims(number: int) -> list[Item]:
    """Make small jobs of two borrowers, all of which have to leave for one large job of the lender."""
    half = str(number)
    return [
        _flavor("f0"),
        *_queue("lender", cohort="all", flavors={"f0": half}),
        *chain.from_iterable(_queue(f"borrower-{n}", cohort="all", flavors={"f0": "0"}) for n in range(2)),
        *(_job(f"job-{n}", f"borrower-{n % 2}", cpu="1", second=n % 3000, runs="f0") for n in range(number)),
        _job("large", "lender", cpu=half, second=3500),
    ]


CASES: Final[Mapping[str, tuple[Callable[[int], list[Item]], int, bool]]] = {
    "model: shapes that do not fit": (shapes, 8_000, False),
    "model: queues with fair sharing": (queues, 160, True),
    "model: deep trees": (depth, 64, True),
    "model: flavors": (flavors, 100, True),
    "model: victims": (victims, 10_000, True),
}
"""Row -> what makes its objects, their number at full scale, and whether sharing is fair."""


def measure(row: str, number: int) -> Figures:
    """Return what it takes to load the objects and to come to rest; the yardstick is parsing them."""
    make, _, fair = CASES[row]
    raw = [orjson.dumps(item) for item in make(number)]
    began = process_time()
    objects = [orjson.loads(item) for item in raw]
    parsing = process_time() - began
    began = process_time()
    model = KueueModel(ManagerConfig(fair_sharing=fair))
    model.load(objects)
    rest = settle(model, NOW, max_cycles=100_000)
    spent = process_time() - began
    if not rest.settled:
        raise RuntimeError(f"{row}: {number} never come to rest")
    return {
        "cpuSeconds": spent,
        "yardstickSeconds": parsing,
        "cycles": len(rest.cycles),
        "heads": sum(len(cycle.admitted) + len(cycle.waiting) for cycle in rest.cycles),
        "admitted": len(rest.admitted),
        "preempted": len(rest.preempted),
    }


def _flavor(name: str) -> Item:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {}}


def _cohort(name: str, parent: str | None) -> Item:
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": parent}}


def _queue(name: str, *, cohort: str | None, flavors: Mapping[str, str]) -> tuple[Item, Item]:
    """Return a ClusterQueue and the LocalQueue that leads to it."""
    group = {
        "coveredResources": ["cpu"],
        "flavors": [
            {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": amount}]}
            for flavor, amount in flavors.items()
        ],
    }
    spec = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": [group], "preemption": _PREEMPTION}
    return (
        {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec},
        {"kind": "LocalQueue", "metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}},
    )


def _job(name: str, queue: str, *, cpu: str, second: int, priority: int = 0, runs: str = "") -> Item:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    created = f"2026-11-20T08:{second // 60 % 60:02}:{second % 60:02}Z"
    job: Item = {
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": created},
        "spec": {
            "queueName": queue,
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": containers}}}],
        },
    }
    if runs:
        assignment = {"name": "main", "count": 1, "flavors": {"cpu": runs}, "resourceUsage": {"cpu": cpu}}
        conditions = [
            {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": created}
            for kind in ("QuotaReserved", "Admitted")
        ]
        job["status"] = {
            "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            "conditions": conditions,
        }
    return job
