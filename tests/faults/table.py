"""Print the matrix: calls down, faults across."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.faults.sites import Call, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.faults.fault_cases import Outcome

LEGEND = """\
A cell shows what came of a fault at each occurrence of the call that was tried:
ok     right before any resync came
r1 r2  right after one resync, after two
day    right a day later, when the refused write was asked for again; until then nothing more was written
       (`day r1`: and one resync)
twice  right, but the run's metrics are counted twice: the function ended between printing them and keeping that
FAIL   something that must hold does not
-      the fault says nothing about this call"""


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Return the lines of the table, what failed, and the count."""
    rows: dict[Call, dict[Kind, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        rows[outcome.cell.site.call][outcome.cell.kind].append(outcome)
    used = [kind for kind in Kind if any(kind in row for row in rows.values())]
    wide = max((len(str(call)) for call in rows), default=0)
    yield LEGEND
    yield ""
    yield " | ".join(["call".ljust(wide), *used])
    for call, row in rows.items():
        yield " | ".join([str(call).ljust(wide), *(_marks(row.get(kind, ())).ljust(len(kind)) for kind in used)])
    yield from failures(outcomes, "matrix", "cells")


def failures(outcomes: Sequence[Outcome], name: str, cases: str) -> Iterator[str]:
    """Return what failed with its problems, and the count."""
    failed = [outcome for outcome in outcomes if outcome.mark == "FAIL"]
    for outcome in failed:
        yield f"FAIL {outcome}"
        yield from (f"     {problem}" for problem in outcome.problems or ("no fault ever struck",))
    yield f"{name}: {len(outcomes)} {cases}, {len(failed)} failed"


def _marks(outcomes: Iterable[Outcome]) -> str:
    """Write the marks of several occurrences, equal ones once: `ok`, `r1 x3 ok x2`."""
    marks = [outcome.mark for outcome in outcomes]
    counted = {mark: marks.count(mark) for mark in dict.fromkeys(marks)}
    return " ".join(mark if number == 1 else f"{mark} x{number}" for mark, number in counted.items()) or "-"
