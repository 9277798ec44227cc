"""The performance scenario of Kueue's own tests, as parameters: what `benchmarks.engine` runs when no file is given.

The numbers restate `test/performance/scheduler/configs/baseline` of kubernetes-sigs/kueue. The expected digests are
those of the decisions its scheduler (v0.20.0-devel-377) made for them.
"""

from __future__ import annotations

from typing import Any, Final

_FULL: Final = {"small": 350, "medium": 100, "large": 50}
_THIN: Final = {"small": 35, "medium": 11, "large": 4}


def _class(name: str, cpu: int, priority: int, run_time: int, interval: int) -> dict[str, Any]:
    return {"name": name, "cpu": cpu, "priority": priority, "runtimeMs": run_time, "creationIntervalMs": interval}


def variant(
    cohorts: int,
    queues: int,
    counts: dict[str, int],
    *,
    stagger: int = 0,
    batch: int = 0,
    digest: str | None = None,
) -> dict[str, Any]:
    """Describe one variant in the form of scenario files."""
    found: dict[str, Any] = {
        "cohorts": cohorts,
        "queuesPerCohort": queues,
        "countPerQueue": counts,
        "staggerMs": stagger,
        "requeueBatchMs": batch,
    }
    return found if digest is None else found | {"expected": {"decisionsSha256": digest}}


SCENARIO: Final[dict[str, Any]] = {
    "resource": "cpu",
    "flavor": "rf",
    "queueTemplate": {
        "nominalQuota": 20,
        "borrowingLimit": 100,
        "lendingLimit": None,
        "queueingStrategy": "BestEffortFIFO",
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority",
            "borrowWithinCohort": None,
        },
    },
    "classes": [
        _class("small", 1, 50, 200, 100),
        _class("medium", 5, 100, 500, 500),
        _class("large", 20, 200, 1000, 1200),
    ],
    "variants": {
        "small_lockstep": variant(
            1, 6, _FULL, digest="8225ed40d026ceefda8993b54234e9f7bb1f94aaa17f3e77ad7461ab4642e751"
        ),
        "small_staggered": variant(1, 6, _FULL, stagger=1),
        "small_staggered_batch1s": variant(1, 6, _FULL, stagger=1, batch=1000),
        "baseline_lockstep": variant(
            5, 6, _FULL, digest="e1b86aa978d3d3203db7a1d7cb8de345e27f1a89c7e916063958db53eb0c184a"
        ),
        "baseline_lockstep_batch1s": variant(
            5, 6, _FULL, batch=1000, digest="43c584b78ab268010c4a08d71fc5b94f23392a54a87d9d39530f1f38751d8f87"
        ),
        "baseline_staggered": variant(5, 6, _FULL, stagger=1),
        "baseline_staggered_batch1s": variant(5, 6, _FULL, stagger=1, batch=1000),
        "big_lockstep": variant(10, 100, _THIN),
    },
}

KUEUE_NEEDS: Final = {
    "small_lockstep": "2.2 s, 111 MB",
    "baseline_lockstep": "16.4 s, 269 MB",
    "baseline_lockstep_batch1s": "8.5 s, 272 MB",
    "big_lockstep": "44.3 s, 1062 MB",
}
"""CPU time and peak memory of Kueue's scheduler in process (baseline on one processor, the others on two)."""

AIMS: Final = {"baseline_lockstep": "5 s, 150 MB", "big_lockstep": "20 s, 500 MB"}
"""What this engine shall stay within on one processor."""

GROWTH: Final[dict[str, Any]] = SCENARIO | {
    "variants": {
        **{f"queues_{6 * n}": variant(n, 6, {"small": 100, "medium": 30, "large": 15}) for n in (2, 4, 8, 16)},
        **{f"pending_x{n}": variant(1, 6, {"small": 100 * n, "medium": 30 * n, "large": 15 * n}) for n in (1, 2, 4, 8)},
    },
}
"""Twice the queues, twice the backlog: what a cycle and a decision cost as either grows."""
