"""Record what Kueue's scheduler decides in its own table tests, or in given worlds, for `taskgov conformance` to read.

Nothing of Kueue's is kept: its tests are read from the Go module cache, given a recorder with `go test -overlay`, and
run. What is written is data in the form of docs/scheduling.md, one case for each test.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.kueue_tables.record import TESTS, RecordingError, record
from tests.kueue_tables.slices import worlds


def main() -> int:
    """Record, and say where the cases are."""
    parser = argparse.ArgumentParser(prog="python -m tests.kueue_tables", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/kueue-tables"), help="the folder to write to")
    parser.add_argument("--run", default=TESTS, help="which of Kueue's tests, as a pattern of `go test`")
    parser.add_argument("--worlds", type=Path, help="a JSON list of worlds to play instead of Kueue's tests")
    parser.add_argument("--seed", type=int, default=1, help="of the random worlds")
    parser.add_argument("--slices", type=int, default=0, help="play so many random worlds of elastic jobs instead")
    given = parser.parse_args()
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        if given.slices:
            given.worlds = given.out / "worlds.jsonl"
            given.worlds.write_text(json.dumps(worlds(given.slices, given.seed)))
        written = record(given.out, given.run, given.worlds)
    except RecordingError as error:
        print(error, file=sys.stderr)
        return 2
    print(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
