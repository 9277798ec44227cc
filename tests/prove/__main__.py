"""Prove the plans of a folder of snapshots: `python -m tests.prove DIR`, or `make prove WORLDS=DIR`.

One line for each failure, with the name of the file, and last `N passed, M failed`.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from rich.console import Console
from rich.progress import track

from tests.prove.proof import ORDERS, prove_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove every `*.json` of the folder; return 1 when a plan is wrong or there is nothing to prove."""
    parser = ArgumentParser(prog="python -m tests.prove", description="Prove the plans of a folder of snapshots.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--orders", type=int, default=ORDERS, help="shuffled orders in which each path is played")
    given = parser.parse_args(arguments)
    files = sorted(given.folder.glob("*.json"))
    if not files:
        sys.stderr.write(f"{given.folder} has no snapshots (*.json)\n")
        return 1
    console = Console(stderr=True)
    failed = 0
    results = track(
        _results(files, given.jobs, given.orders),
        "Proving",
        len(files),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    for path, failures in results:
        failed += bool(failures)
        for failure in failures:
            sys.stdout.write(f"{path.name}: {failure}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(files) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _results(files: Sequence[Path], jobs: int, orders: int) -> Iterator[tuple[Path, tuple[str, ...]]]:
    proving = partial(prove_file, orders=orders)
    if jobs <= 1:
        yield from ((path, proving(path)) for path in files)
        return
    with Pool(jobs) as pool:
        yield from zip(files, pool.imap(proving, files, chunksize=4), strict=True)


if __name__ == "__main__":
    sys.exit(main())
