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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all cases of the given directory; 0 when all pass, 1 when some fail, 2 when there are none."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console(soft_wrap=True, highlight=False, markup=False)
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        console.print("usage: python -m taskgov_cli.conformance DIR")
        return 2
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for file, case in cases_in(Path(arguments[0])):
        difference = check(case)
        (passed if difference is None else failed)[case["kind"]] += 1
        if difference is not None:
            console.print(f"FAIL {file}: {case['name']}\n     {difference}")
    console.print(_table(passed, failed))
    console.print(f"{passed.total()} passed, {failed.total()} failed")
    if not passed.total() + failed.total():
        return 2
    return 1 if failed.total() else 0


def _table(passed: Counter[str], failed: Counter[str]) -> Table:
    table = Table("kind", "passed", "failed")
    for kind in sorted({*passed, *failed}):
        table.add_row(kind, str(passed[kind]), str(failed[kind]))
    return table


if __name__ == "__main__":
    sys.exit(main())
