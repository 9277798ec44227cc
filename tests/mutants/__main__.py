"""Try mutants of the allocation: `python -m tests.mutants --tool PYTHON`, or `make mutants`.

One line for each survivor that docs/testing.md does not list, then the count. Exit code 1 when there is such a
survivor, or when more than 15 % of a sample of 100 or more survive.
"""

import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.progress import track

from tests.mutants.copies import ROOT, BrokenRunError, Copy, Outcome, Reach, mutated_files, this_python
from tests.mutants.listed import listed_survivors
from tests.mutants.mutation import Mutant, Mutation

COUNT = 300
SEED = 1
MOST_SURVIVORS = 0.15
ENOUGH = 100
"""Fewer mutants than this say nothing about a percentage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a sample; return 1 when a mutant survives that may not."""
    parser = ArgumentParser(prog="python -m tests.mutants", description="Try mutants of the allocation.")
    parser.add_argument("--tool", type=Path, required=True, help="the Python that has Cosmic Ray")
    parser.add_argument("--count", type=int, default=COUNT, help="mutants to try")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed is another sample")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", nargs="*", default=[], metavar="FILE", help="such as limits.py")
    given = parser.parse_args(arguments)
    if unknown := set(given.only) - {path.name for path in mutated_files()}:
        parser.error(f"not among the files that are mutated: {', '.join(sorted(unknown))}")
    listed = listed_survivors()
    mutants = make_mutants(given.tool, given.count, given.seed, given.only)
    survivors = []
    try:
        for mutant, outcome in _outcomes(mutants, given.jobs):
            if outcome is Outcome.SURVIVED:
                survivors.append(mutant.mutation)
                if mutant.mutation not in listed:
                    _say(mutant.mutation)
    except BrokenRunError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return _report(survivors, len(mutants), listed)


def make_mutants(tool: Path, count: int, seed: int, only: Sequence[str]) -> list[Mutant]:
    """Return a sample of what the tool can make of the allocation and the division, or of some of their files."""
    files = [str(path) for path in mutated_files() if not only or path.name in only]
    command = [str(tool), "-m", "tests.mutants.tool", f"--count={count}", f"--seed={seed}", *files]
    made = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)  # noqa: S603
    found = json.loads(made.stdout)
    mutants = [Mutant(**{**each, "mutation": Mutation(**each["mutation"])}) for each in found["mutants"]]
    sys.stderr.write(
        f"mutants: {len(mutants)} of {found['mutations']} that the tool can make in {found['functions']} functions\n"
    )
    return mutants


def _outcomes(mutants: Sequence[Mutant], jobs: int) -> Iterator[tuple[Mutant, Outcome]]:
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="taskgov-mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies = [Copy(Path(folder, str(number)), this_python()) for number in range(jobs)]
        reach = _together(list(pool.map(lambda number: copies[number].measure(number, jobs), range(jobs))))
        console.print(f"mutants: {len(reach.seconds)} tests pass without one, in {sum(reach.seconds.values()):.0f} s")
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)

        def judge(mutant: Mutant) -> tuple[Mutant, Outcome]:
            copy = free.get()
            try:
                tests = reach.tests_of(mutant)
                # Generous: tests end by their processor time, and this is for those that take none.
                return mutant, copy.try_mutant(mutant, tests, 300 + 20 * sum(tests.values()))
            finally:
                free.put(copy)

        waiting = [pool.submit(judge, mutant) for mutant in mutants]
        try:
            quiet = not console.is_terminal
            done = track(
                as_completed(waiting), "Trying mutants", len(waiting), console=console, transient=True, disable=quiet
            )
            for count, future in enumerate(done, start=1):
                yield future.result()
                if quiet and (count % 20 == 0 or count == len(waiting)):
                    console.print(f"{count} of {len(waiting)}")
        finally:
            for future in waiting:
                future.cancel()


def _together(parts: Sequence[Reach]) -> Reach:
    return Reach(
        touched={test: names for part in parts for test, names in part.touched.items()},
        always=frozenset(name for part in parts for name in part.always),
        seconds={test: seconds for part in parts for test, seconds in part.seconds.items()},
    )


def _say(mutation: Mutation) -> None:
    sys.stdout.write(f"survived, not listed: `{mutation.file}`: `{mutation.function}`: {mutation}\n")
    sys.stdout.flush()


def _report(survivors: Sequence[Mutation], count: int, listed: dict[Mutation, str]) -> int:
    unlisted = set(survivors) - set(listed)
    sys.stdout.write(
        f"mutants: {count} sampled, {count - len(survivors)} killed, {len(survivors)} survived "
        f"(listed: {len(survivors) - len(unlisted)}, not listed: {len(unlisted)})\n"
    )
    too_many = count >= ENOUGH and len(survivors) > MOST_SURVIVORS * count
    if too_many:
        sys.stdout.write(f"more than {MOST_SURVIVORS:.0%} survived\n")
    return 1 if unlisted or too_many else 0


if __name__ == "__main__":
    sys.exit(main())
