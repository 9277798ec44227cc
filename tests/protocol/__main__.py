"""`make test-protocol`: explore every scenario, or (`--conditions`) take each condition away and see it missed."""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.protocol import hunt
from tests.protocol.listed import LISTED
from tests.protocol.mutants import every_mutant
from tests.protocol.scenarios import FULL, LONG, SMALL, explored


def main() -> int:
    """Return 0 when nothing is wrong, or when every condition is missed or listed with what shows its reason."""
    parser = argparse.ArgumentParser(prog="tests.protocol", description=__doc__)
    parser.add_argument("--only", default="", help="the scenarios and conditions whose name has this in it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--short", action="store_true", help="leave out the scenarios that take longest")
    parser.add_argument("--conditions", action="store_true", help="take conditions away instead")
    parser.add_argument("--anew", action="store_true", help="find the scenarios that show conditions anew")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        if arguments.anew:
            wrong = _look_anew(pool, arguments.only)
        elif arguments.conditions:
            wrong = _take_away(pool, arguments.only)
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


def _take_away(pool: ProcessPoolExecutor, only: str) -> int:
    started = time.perf_counter()
    unaccounted = hunt.unaccounted()
    for name in unaccounted:
        print(f"{name}: is in neither of missed.json and listed.py, is in both, or is no condition any more")
    names = [one.name for one in every_mutant() if only in one.name and one.name not in unaccounted]
    wrong = [trouble for trouble in pool.map(hunt.trouble_with, names) if trouble is not None]
    for trouble in wrong:
        print(trouble, flush=True)
    listed = sum(name in LISTED for name in names)
    counts = f"{len(names) - listed} to be missed, {listed} listed, {len(wrong) + len(unaccounted)} wrong"
    print(f"conditions: {len(names)} changed, {counts}, {time.perf_counter() - started:.0f} s")
    return len(wrong) + len(unaccounted)


def _look_anew(pool: ProcessPoolExecutor, only: str) -> int:
    names = [one.name for one in every_mutant() if only in one.name and one.name not in LISTED]
    known, nowhere = hunt.missed(), 0
    for name, scenario in zip(names, pool.map(hunt.soonest, names), strict=True):
        if scenario is None:
            nowhere += 1
            print(f"{name}: nothing is found wrong without it", flush=True)
            known.pop(name, None)
        else:
            known[name] = scenario
    every = [one.name for one in every_mutant()]
    hunt.FILE.write_text(json.dumps({name: known[name] for name in every if name in known}, indent=1) + "\n")
    return nowhere


if __name__ == "__main__":
    sys.exit(main())
