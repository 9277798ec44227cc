"""How is a predicted loop of preemptions shown on the page? One row for each setting that ends it in the model."""

from collections.abc import Iterable, Iterator
from typing import Final

from taskgov.allocation.loops import Loop, LoopRemedy
from taskgov.audit.report_table import Sheet, Table, name, text
from taskgov.number_text import NOTHING

_Row = tuple[Loop, LoopRemedy | None]

LOOPS: Final[Sheet[_Row]] = Sheet(
    "loops",
    "Jobs that would preempt each other forever",
    "Found by simulating Kueue's decisions on the workloads of this moment. Each setting was tried in the same "
    "simulation and ends the loop there; the simplest comes first.",
    (
        name("Teams", lambda row: ", ".join(row[0].teams)),
        text("Preempted again and again", lambda row: ", ".join(row[0].workloads)),
        text("For", lambda row: ", ".join(row[0].preemptors)),
        text("Would end it", lambda row: row[1].words if row[1] else row[0].advice, "long"),
        text("Would then wait", lambda row: (", ".join(row[1].waiting) if row[1] else "") or NOTHING),
    ),
)


def loops_table(loops: Iterable[Loop]) -> Table:
    """Return the table; a loop without a remedy has one row, which says so."""
    return LOOPS.of(_rows(loops))


def _rows(loops: Iterable[Loop]) -> Iterator[_Row]:
    for loop in loops:
        yield from ((loop, remedy) for remedy in loop.remedies or (None,))
