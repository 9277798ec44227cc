"""How does the cost grow with the cluster? `make bench` prints one table, a row for each kind of work.

Each row runs at four sizes, each twice the one before, up to `--scale` (1: 1,000 teams). Each measurement has a process
of its own, so that its peak of memory is its own. Ratios are to `orjson.loads` of the same raw API answers in the same
run (to reading the snapshot file for the commands that are given one; to an older commit of this repository for Kueue's
scenario; to `python -c pass` for the start of commands). CPU seconds are those of the largest size. Exponents are the
slope of CPU seconds over size, both as logarithms.
"""

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any, Final

import orjson
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.scale import futures, lockstep, models, writing
from benchmarks.scale.measured import ALL, ON_A_CLUSTER, STARTS, Measured, figures
from benchmarks.scale.rows import prepare, prepare_one_shape
from benchmarks.scale.world import answers, sizes
from taskgov.bootstrap import ALLOCATIONS

REPEATS: Final = 3
_PREPARE: Final = {"prepare": prepare, "prepare one shape": prepare_one_shape}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 for a row that is not known."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--scale", type=_scale, default=0.1, help="0.05 to 1 times 1,000 teams (default: 0.1)")
    parser.add_argument("--row", action="append", metavar="NAME", help="measure these rows alone (repeat)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument(
        "--keep", action="store_true", help="write what was measured into benchmarks/results.json and docs/scale.md"
    )
    parser.add_argument("--one", nargs=3, metavar=("ROW", "FOLDER", "NUMBER"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        row, folder, number = options.one
        print(json.dumps(_here(row, Path(folder), int(number))))
        return 0
    wanted = options.row or ALL
    if unknown := [name for name in wanted if name not in ALL]:
        print(f"no row is called {', '.join(unknown)}; the rows are {', '.join(ALL)}", file=sys.stderr)
        return 2
    from benchmarks.scale.results import facts, keep  # noqa: PLC0415 - not in processes that are measured

    about = facts(options.scale)
    measured = [row.to_json() for row in _measure([name for name in ALL if name in wanted], options.scale)]
    if options.keep:
        keep(measured, about)
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
    of_scenario = [name for name in wanted if name in lockstep.VARIANTS]
    starts = [name for name in wanted if name in STARTS]
    one_shape = "plan_quotas: one shape" in wanted
    writes = any(name in writing.ROWS for name in wanted)
    others = {futures.ROW: futures.MOST, lockstep.HALF_WAITING: lockstep.QUEUES}
    full = {row: models.CASES[row][1] for row in of_model} | {row: others[row] for row in wanted if row in others}
    numbers = {row: list(_numbers(number, scale)) for row, number in full.items()}
    numbers |= {row: list(_cohorts(lockstep.VARIANTS[row], scale)) for row in of_scenario}
    of_a_size = len(of_cluster) + 2 * bool(of_cluster) + one_shape + (writes and "plan_quotas" not in of_cluster)
    steps = len(sizes(scale)) * of_a_size + len(starts) + sum(map(len, numbers.values()))
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("measuring", total=steps)

        def apart(row: str, folder: str, number: int) -> dict[str, float]:
            progress.update(task, description=f"{row} ({number:,})")
            figures = _apart(row, folder, number)
            progress.advance(task)
            return figures

        for size in sizes(scale) if of_cluster else ():
            with tempfile.TemporaryDirectory(prefix="taskgov-bench-") as folder:
                apart("prepare", folder, size.teams)
                if one_shape:
                    apart("prepare one shape", folder, size.teams)
                if writes and "plan_quotas" not in of_cluster:
                    apart("plan_quotas", folder, size.teams)
                yardstick = apart("yardstick", folder, size.teams)["cpuSeconds"]
                for row in of_cluster:
                    found[row].points.append(
                        (size.teams, {"yardstickSeconds": yardstick, **apart(row, folder, size.teams)})
                    )
        for row, to_measure in numbers.items():
            for number in to_measure:
                found[row].points.append((number, apart(row, "-", number)))
        for row in starts:
            found[row].points.append((1, apart(row, "-", 1)))
    return list(found.values())


def _numbers(full: int, scale: float) -> Iterator[int]:
    largest = max(round(full * scale), 16)
    return (largest // part for part in (8, 4, 2, 1))


def _cohorts(full: int, scale: float) -> Iterator[int]:
    """Give how many cohorts of the scenario are played: two sizes, so that there is an exponent."""
    largest = max(round(full * scale), 2)
    yield from (largest // 2, largest)


def _apart(row: str, folder: str, number: int) -> dict[str, float]:
    """Do one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--one", row, folder, str(number)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _here(row: str, folder: Path, number: int) -> dict[str, float]:
    gc.set_threshold(ALLOCATIONS)  # as functions have it
    if row in _PREPARE:
        _PREPARE[row](folder, number)
        return {}
    if row == "yardstick":
        return {"cpuSeconds": min(_parsing(folder) for _ in range(REPEATS))}
    if row in STARTS:
        return _start(STARTS[row])
    if row in lockstep.ROWS:
        return lockstep.measure(row, number)
    if row in models.CASES:
        figures = models.measure(row, number)
    else:
        figures = futures.measure(number) if row == futures.ROW else ON_A_CLUSTER[row](folder)
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
    columns = ("row", "ratio", "aim", "CPU s", "MiB", "aim", "exponent", "aim", "sizes", "CPU s by size")
    table = Table(*columns, title=f"scale {scale:g}: {sizes(scale)[-1].teams:,} teams")
    for row in measured:
        table.add_row(
            row["row"],
            *figures(row),
            ", ".join(f"{size:,}" for size in row["sizes"]),
            ", ".join(f"{seconds:.2f}" for seconds in row["cpuSecondsBySize"]),
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
