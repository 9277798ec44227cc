"""What was measured of a row, and what it should be at most."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from benchmarks.scale import futures, lockstep, models, rows, writing

STARTS: Final[Mapping[str, list[str]]] = {"taskgov --help": ["--help"], "taskgov status -s": ["status", "-s"]}
"""Row -> the arguments of the command that is started."""
ON_A_CLUSTER: Final[Mapping[str, rows.Row]] = {**rows.ON_A_CLUSTER, **writing.ROWS}
"""Rows that are measured on the answers in a folder."""
ALL: Final = (*ON_A_CLUSTER, futures.ROW, *models.CASES, *lockstep.ROWS, *STARTS)
"""Every row, in the order of the table."""
KNOWN: Final = frozenset({"cpuSeconds", "rssMiB", "yardstickSeconds"})
"""Figures of a measurement; all others are counts."""


class Aim(NamedTuple):
    """The most that ratio, memory in MiB and exponent of a row should be at full size; None where nothing is set."""

    ratio: float | None = None
    memory: float | None = None
    exponent: float | None = None


AIMS: Final[Mapping[str, Aim]] = {
    "read_snapshot": Aim(4, 600, 1.1),
    "plan_quotas": Aim(8, 1200, 1.2),
    "plan_quotas: one shape": Aim(8, 1200, 1.2),
    "publish_usage": Aim(1, None, 1.1),
    "estimate_starts": Aim(exponent=1.1),
    "apply_change": Aim(exponent=1.1),
    "verify_plan": Aim(exponent=1.2),  # it reads the plan, and is to grow no faster than what makes it
    "end_of_run": Aim(exponent=1.1),
    "audit_cluster": Aim(12, None, 1.2),
    "status": Aim(1.5, None, 1.2),
    "explain": Aim(2, None, 1.2),
    "what-if": Aim(10, None, 1.2),
    **dict.fromkeys(models.CASES, Aim(exponent=1.25)),
    lockstep.HALF_WAITING: Aim(0.1, None, 1.25),
    "baseline_lockstep": Aim(0.8),
    "big_lockstep": Aim(0.65),
    "taskgov --help": Aim(20),
    "taskgov status -s": Aim(45),
}


@dataclass(slots=True)
class Measured:
    """One row at all of its sizes."""

    row: str
    points: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    """A size and its figures, the smallest first."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures of the largest size, and how they grew."""
        _, last = self.points[-1]
        yardstick = last.get("yardstickSeconds")
        return {
            "row": self.row,
            "ratio": round(last["cpuSeconds"] / yardstick, 2) if yardstick else None,
            "cpuSeconds": round(last["cpuSeconds"], 3),
            "rssMiB": round(last["rssMiB"], 1),
            "exponent": exponent((size, figures["cpuSeconds"]) for size, figures in self.points),
            "sizes": [size for size, _ in self.points],
            "cpuSecondsBySize": [round(figures["cpuSeconds"], 3) for _, figures in self.points],
            "rssMiBBySize": [round(figures["rssMiB"], 1) for _, figures in self.points],
            "counts": {name: count for name, count in last.items() if name not in KNOWN},
        }


def exponent(points: Iterable[tuple[int, float]]) -> float | None:
    """Return the slope of a cost over sizes, both as logarithms; None for a single size.

    Example:
        >>> exponent([(10, 1.0), (20, 4.0), (40, 16.0)]), exponent([(10, 1.0)])
        (2.0, None)

    """
    logs = [(math.log(size), math.log(max(cost, 1e-6))) for size, cost in points]
    if len({x for x, _ in logs}) < 2:
        return None
    x0, y0 = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    slope: float = sum((x - x0) * (y - y0) for x, y in logs) / sum((x - x0) ** 2 for x, _ in logs)
    return round(slope, 2)


def shown(number: float | None) -> str:
    """Return a number of the table, a dash where there is none."""
    return "-" if number is None else f"{number:,g}"


def figures(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of what was measured, with the aims beside: ratio, CPU seconds, MiB, exponent.

    Rows that are a ratio to the code of before should not take more memory than that code in the same run.
    """
    aim = AIMS.get(row["row"], Aim())
    memory = row.get("counts", {}).get("rssMiBBefore", aim.memory)
    return (
        shown(row["ratio"]),
        shown(aim.ratio),
        f"{row['cpuSeconds']:.2f}",
        f"{row['rssMiB']:.0f}",
        shown(memory if memory is None else round(memory)),
        shown(row["exponent"]),
        shown(aim.exponent),
    )
