"""How does the cost grow with the cluster? `make bench` prints one table, a row for each kind of work.

Each row runs at four sizes, each twice the one before, up to `--scale` (1: 1,000 teams). Each measurement has a process
of its own, so that its peak of memory is its own. Ratios are to `orjson.loads` of the same raw API answers in the same
run (to reading the snapshot file for the commands that are given one; to `python -c pass` for the start of commands).
CPU seconds are those of the largest size. Exponents are the slope of CPU seconds over size, both as logarithms.
"""

import argparse
import gc
import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any, Final

import orjson
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.scale import models
from benchmarks.scale.rows import ON_A_CLUSTER, prepare
from benchmarks.scale.world import answers, sizes

AIMS: Final[Mapping[str, tuple[float | None, float | None, float | None]]] = {
    "read_snapshot": (4, 600, 1.1),
    "plan_quotas": (8, 1200, 1.2),
    "publish_usage": (1, None, 1.1),
    "audit_cluster": (12, None, 1.2),
    "status": (1.5, None, 1.2),
    "explain": (2, None, 1.2),
    "what-if": (10, None, 1.2),
    **dict.fromkeys(models.CASES, (None, None, 1.25)),
    "taskgov --help": (20, None, None),
    "taskgov status -s": (45, None, None),
}
"""Row -> the most that its ratio, its memory in MiB at full size, and its exponent should be."""

STARTS: Final = {"taskgov --help": ["--help"], "taskgov status -s": ["status", "-s"]}
REPEATS: Final = 3


@dataclass(slots=True)
class Measured:
    """One row at all of its sizes."""

    row: str
    points: list[tuple[int, dict[str, float]]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the figures of the largest size, and how they grew."""
        _, last = self.points[-1]
        yardstick = last.get("yardstickSeconds")
        return {
            "row": self.row,
            "ratio": round(last["cpuSeconds"] / yardstick, 2) if yardstick else None,
            "cpuSeconds": round(last["cpuSeconds"], 3),
            "rssMiB": round(last["rssMiB"], 1),
            "exponent": self._exponent(),
            "sizes": [size for size, _ in self.points],
            "cpuSecondsBySize": [round(figures["cpuSeconds"], 3) for _, figures in self.points],
            "counts": {k: v for k, v in last.items() if k not in {"cpuSeconds", "rssMiB", "yardstickSeconds"}},
        }

    def _exponent(self) -> float | None:
        logs = [(math.log(size), math.log(max(figures["cpuSeconds"], 1e-6))) for size, figures in self.points]
        if len({x for x, _ in logs}) < 2:
            return None
        x0, y0 = (sum(values) / len(logs) for values in zip(*logs, strict=True))
        slope: float = sum((x - x0) * (y - y0) for x, y in logs) / sum((x - x0) ** 2 for x, _ in logs)
        return round(slope, 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 for a row that is not known."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--scale", type=_scale, default=0.1, help="0.05 to 1 times 1,000 teams (default: 0.1)")
    parser.add_argument("--row", action="append", metavar="NAME", help="measure these rows alone (repeat)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--one", nargs=3, metavar=("ROW", "FOLDER", "NUMBER"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        row, folder, number = options.one
        print(json.dumps(_here(row, Path(folder), int(number))))
        return 0
    every = [*ON_A_CLUSTER, *models.CASES, *STARTS]
    wanted = options.row or every
    if unknown := [name for name in wanted if name not in every]:
        print(f"no row is called {', '.join(unknown)}; the rows are {', '.join(every)}", file=sys.stderr)
        return 2
    measured = [row.to_json() for row in _measure([name for name in every if name in wanted], options.scale)]
    if options.json:
        print(json.dumps(measured, indent=2))
    else:
        Console(width=160).print(_table(measured, options.scale))
    return 0


def _scale(text: str) -> float:
    scale = float(text)
    if not 0.05 <= scale <= 1:
        raise argparse.ArgumentTypeError("a scale is 0.05 to 1")
    return scale


def _measure(wanted: Sequence[str], scale: float) -> list[Measured]:
    """Measure the rows, each world once for all of them."""
    found = {name: Measured(name) for name in wanted}
    of_cluster = [name for name in wanted if name in ON_A_CLUSTER]
    of_model = [name for name in wanted if name in models.CASES]
    starts = [name for name in wanted if name in STARTS]
    of_world = [*of_cluster, *(name for name in starts if name != "taskgov --help")]
    steps = len(sizes(scale)) * (len(of_cluster) + 2 * bool(of_world) + len(of_model)) + len(starts)
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("measuring", total=steps)

        def apart(row: str, folder: str, number: int) -> dict[str, float]:
            progress.update(task, description=f"{row} ({number:,})")
            figures = _apart(row, folder, number)
            progress.advance(task)
            return figures

        for size in sizes(scale) if of_world else ():
            with tempfile.TemporaryDirectory(prefix="taskgov-bench-") as folder:
                apart("prepare", folder, size.teams)
                yardstick = apart("yardstick", folder, size.teams)["cpuSeconds"]
                for row in of_cluster:
                    found[row].points.append(
                        (size.teams, {"yardstickSeconds": yardstick, **apart(row, folder, size.teams)})
                    )
        for row in of_model:
            for number in _numbers(models.CASES[row][1], scale):
                found[row].points.append((number, apart(row, "-", number)))
        for row in starts:
            found[row].points.append((1, apart(row, "-", 1)))
    return list(found.values())


def _numbers(full: int, scale: float) -> Iterator[int]:
    largest = max(round(full * scale), 16)
    return (largest // part for part in (8, 4, 2, 1))


def _apart(row: str, folder: str, number: int) -> dict[str, float]:
    """Do one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--one", row, folder, str(number)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _here(row: str, folder: Path, number: int) -> dict[str, float]:
    if row == "prepare":
        prepare(folder, number)
        return {}
    if row == "yardstick":
        return {"cpuSeconds": min(_parsing(folder) for _ in range(REPEATS))}
    if row in STARTS:
        return _start(STARTS[row])
    figures = models.measure(row, number) if row in models.CASES else ON_A_CLUSTER[row](folder)
    return {**figures, "rssMiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _parsing(folder: Path) -> float:
    """Return what parsing all answers takes, without the garbage collector, whose cost depends on other objects."""
    spent = 0.0
    gc.disable()
    for file in answers(folder):
        raw = file.read_bytes()
        began = process_time()
        orjson.loads(raw)
        spent += process_time() - began
    gc.enable()
    return spent


def _start(arguments: Sequence[str]) -> dict[str, float]:
    """Return what starting a command takes, the best of a few times; the yardstick is Python alone."""
    with tempfile.TemporaryDirectory(prefix="taskgov-bench-") as folder:
        if "-s" in arguments:
            prepare(Path(folder), 2)
            arguments = [*arguments, f"{folder}/snapshot.out"]
        program = [sys.executable, "-c", "from taskgov_cli.main import app; app()", *arguments]
        spent = min(_of_child(program) for _ in range(REPEATS))
        empty = min(_of_child([sys.executable, "-c", "pass"]) for _ in range(2 * REPEATS))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"cpuSeconds": spent, "yardstickSeconds": empty, "rssMiB": peak}


def _of_child(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - Python itself
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _table(measured: Sequence[Mapping[str, Any]], scale: float) -> Table:
    table = Table("row", "ratio", "aim", "CPU s", "MiB", "exponent", "aim", "sizes", "CPU s by size")
    table.title = f"scale {scale:g}: {sizes(scale)[-1].teams:,} teams"
    for row in measured:
        ratio, _, exponent = AIMS.get(row["row"], (None, None, None))
        table.add_row(
            row["row"],
            _shown(row["ratio"]),
            _shown(ratio),
            f"{row['cpuSeconds']:.2f}",
            f"{row['rssMiB']:.0f}",
            _shown(row["exponent"]),
            _shown(exponent),
            ", ".join(f"{size:,}" for size in row["sizes"]),
            ", ".join(f"{seconds:.2f}" for seconds in row["cpuSecondsBySize"]),
        )
    return table


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:g}"


if __name__ == "__main__":
    sys.exit(main())
