"""Load objects from a file into the scheduling model, let it come to rest under fair sharing, and print what it took.

Runs with this code and with that of commit 5ec7326, where the model had another name.
"""

import hashlib
import json
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, Final

from taskgov import scheduling

_NOW: Final = "2026-11-20T09:00:00Z"
_MOST_CYCLES: Final = 100_000


def _loaded(objects: list[dict[str, Any]]) -> Callable[[], Any]:
    """Return what lets the model with these objects come to rest."""
    config = scheduling.ManagerConfig(fair_sharing=True)
    if hasattr(scheduling, "KueueModel"):
        model = scheduling.KueueModel(config)
        model.load(objects)
        return partial(scheduling.settle, model, _NOW, max_cycles=_MOST_CYCLES)
    world = scheduling.World(config)
    for obj in objects:
        world.apply(obj)
    return partial(world.settle, _NOW, max_cycles=_MOST_CYCLES)


def main(file: Path) -> None:
    """Print the CPU seconds of all cycles, the peak of memory, and the decisions: their numbers and a digest."""
    settle = _loaded(json.loads(file.read_bytes()))
    began = process_time()
    rest = settle()
    spent = process_time() - began
    decisions = [
        [sorted(entry.workload for entry in cycle.admitted), sorted(entry.workload for entry in cycle.preempted)]
        for cycle in rest.cycles
    ]
    figures = {
        "cpuSeconds": spent,
        "peakMegabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "cycles": len(rest.cycles),
        "admissions": len(rest.admitted),
        "preemptions": len(rest.preempted),
        "decisionsSha256": hashlib.sha256(json.dumps(decisions).encode()).hexdigest(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
