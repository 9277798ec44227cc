"""Does the engine decide as Kueue decided? Runs recorded decision tables: `python -m taskgov_cli.conformance DIR`.

Prints the failing cases with their first difference, a table by kind, and last `N passed, M failed`; exits with 1
when M > 0. What an expectation does not give is not compared.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from taskgov_cli.conformance_compare import first_difference
from taskgov_cli.conformance_kinds import answer
from taskgov_cli.output import NO, NOT_UNDERSTOOD, OK, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def cases_in(directory: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give every case of every JSON file, with the file's name."""
    for path in sorted(directory.glob("*.json")):
        content = json.loads(path.read_text())
        for case in content["cases"] if isinstance(content, dict) else content:
            yield path.name, case


def check(case: Mapping[str, Any]) -> str | None:
    """Return how the engine differs from the record, `None` when it does not; an error counts as a difference."""
    try:
        found = answer(case)
    except Exception as error:  # noqa: BLE001 -- one broken case must not hide the others
        return f"{type(error).__name__}: {error}"
    return first_difference(case["kind"], case["expected"], found)


def run(directory: Path, *, as_json: bool = False) -> int:
    """Run all cases of a directory and say what came of them.

    Returns the exit code: 0 when all pass, 1 when some fail, 2 when there are none.
    """
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    differences = []
    for file, case in cases_in(directory):
        difference = check(case)
        (passed if difference is None else failed)[case["kind"]] += 1
        if difference is not None:
            differences.append({"file": file, "case": case["name"], "difference": difference})
    if as_json:
        print_json({"passed": passed.total(), "failed": failed.total(), "differences": differences})
    else:
        console = Console(soft_wrap=True, highlight=False, markup=False)
        for each in differences:
            console.print(f"FAIL {each['file']}: {each['case']}\n     {each['difference']}")
        console.print(_table(passed, failed))
        console.print(f"{passed.total()} passed, {failed.total()} failed")
    if not passed.total() + failed.total():
        return NOT_UNDERSTOOD
    return NO if failed.total() else OK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases of the one directory that is given; see `run`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        Console(markup=False).print("usage: python -m taskgov_cli.conformance DIR")
        return NOT_UNDERSTOOD
    return run(Path(arguments[0]))


def _table(passed: Counter[str], failed: Counter[str]) -> Table:
    table = Table("kind", "passed", "failed")
    for kind in sorted({*passed, *failed}):
        table.add_row(kind, str(passed[kind]), str(failed[kind]))
    return table


if __name__ == "__main__":
    sys.exit(main())
