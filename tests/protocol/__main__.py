"""`make test-protocol`: explore every scenario, or (`--conditions`) take each condition away and see it missed."""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.protocol.hunt import hunted_by_name
from tests.protocol.listed import LISTED
from tests.protocol.mutants import every_mutant
from tests.protocol.scenarios import FULL, LONG, SMALL, explored


def main() -> int:
    """Return 0 when nothing is wrong, or when every condition is missed or listed with its reason."""
    parser = argparse.ArgumentParser(prog="tests.protocol", description=__doc__)
    parser.add_argument("--only", default="", help="the scenarios and mutants whose name has this in it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--short", action="store_true", help="leave out the scenarios that take longest")
    parser.add_argument("--conditions", action="store_true", help="take conditions away instead")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        if arguments.conditions:
            wrong = _hunt(pool, arguments.only)
        else:
            wrong = _explore(pool, arguments.only, short=arguments.short)
    return int(wrong > 0)


def _explore(pool: ProcessPoolExecutor, only: str, *, short: bool) -> int:
    started = time.perf_counter()
    chosen = [one for one in (*(() if short else LONG), *SMALL, *FULL) if only in one.name]
    results = []
    for found in pool.map(explored, chosen):
        print(found, flush=True)
        results.append(found)
    wrong = sum(one.wrong is not None for one in results)
    counts = f"{sum(one.states for one in results)} states, {sum(one.steps for one in results)} steps"
    print(f"protocol: {len(chosen)} scenarios, {counts}, {wrong} wrong, {time.perf_counter() - started:.0f} s")
    if short:
        print(f"LEFT OUT: {', '.join(one.name for one in LONG)} (make test-protocol explores them)")
    return wrong


def _hunt(pool: ProcessPoolExecutor, only: str) -> int:
    started = time.perf_counter()
    names = [one.name for one in every_mutant() if only in one.name]
    failed = listed = 0
    for name, found in zip(names, pool.map(hunted_by_name, names), strict=True):
        if (found is None) == (name in LISTED):
            listed += found is None
            continue
        failed += 1
        what = "is listed, and is missed" if found else "is not missed, and not listed"
        print(f"{name}: {what}{f': {found}' if found else ''}", flush=True)
    counts = f"{len(names) - listed - failed} missed, {listed} listed, {failed} neither"
    print(f"conditions: {len(names)} changed, {counts}, {time.perf_counter() - started:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
