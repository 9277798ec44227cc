"""Does each function have time and memory for a cluster of full size? The table of docs/scale.md, and its rule.

The code has one thread, which a function of 1,769 MB has a whole processor for; one with less memory has that part of
it (AWS Lambda Developer Guide, "Configure Lambda function memory").
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Row = Mapping[str, Any]

FULL: Final = 1000
"""Teams at full size."""
WHOLE_PROCESSOR_MB: Final = 1769
OF_TIMEOUT, OF_MEMORY = 0.6, 0.75
"""The parts of a function's timeout and memory that its row may take at full size."""
FUNCTION_OF: Final[Mapping[str, str]] = {
    "read_snapshot": "ReadSnapshotFunction",
    "plan_quotas": "PlanQuotasFunction",
    "apply_change": "ApplyChangeFunction",
    "verify_plan": "VerifyPlanFunction",
    "publish_usage": "PublishUsageFunction",
    "end_of_run": "PublishUsageFunction",
    "estimate_starts": "EstimateStartsFunction",
    "futures": "EstimateStartsFunction",
    "audit_cluster": "AuditClusterFunction",
}
"""Row -> the function whose work on a cluster it does. The other two take one event or order, of any cluster."""


BUDGETED: Final = frozenset({"plan_quotas", "audit_cluster", "futures"})
"""Rows that play the scheduling model within a budget of steps or time: below it they grow faster than beyond it.

So what they take at a small size says nothing about full size, and is not extrapolated.
"""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a function takes at full size, and what its settings leave for that."""

    function: str
    row: str
    seconds: float | None
    """CPU seconds; None where it is not known."""
    mebibytes: float | None
    memory: int
    timeout: int
    measured: bool
    """Whether the row was measured at full size; otherwise both figures are extrapolated."""

    @property
    def seconds_left(self) -> float:
        """CPU seconds that its row may take."""
        return OF_TIMEOUT * self.timeout * min(1, self.memory / WHOLE_PROCESSOR_MB)

    @property
    def mebibytes_left(self) -> float:
        """Memory that its row may take."""
        return OF_MEMORY * self.memory

    @property
    def fits(self) -> bool:
        """Whether time and memory are known to be enough."""
        if self.seconds is None or self.mebibytes is None:
            return False
        return self.seconds <= self.seconds_left and self.mebibytes <= self.mebibytes_left


def fits(rows: Iterable[Row], functions: Mapping[str, Mapping[str, Any]]) -> Iterator[Fit]:
    """Give the fit of each row of a function that was measured; `functions` are their properties, by logical id."""
    by_name = {row["row"]: row for row in rows}
    for name, function in FUNCTION_OF.items():
        if name not in by_name:
            continue
        properties, row = functions[function], by_name[name]
        measured = row["sizes"][-1] >= FULL
        is_known = measured or name not in BUDGETED
        yield Fit(
            function=function,
            row=name,
            seconds=_at_full_size(row, row["cpuSecondsBySize"], row["exponent"] or 1) if is_known else None,
            mebibytes=_memory_at_full_size(row) if is_known else None,
            memory=int(properties["MemorySize"]),
            timeout=int(properties["Timeout"]),
            measured=measured,
        )


def _at_full_size(row: Row, by_size: list[float], exponent: float) -> float:
    """Return a cost at full size: as the exponent goes on, and never less than in proportion."""
    times: float = max(FULL / row["sizes"][-1], 1) ** max(exponent, 1)
    return by_size[-1] * times


def _memory_at_full_size(row: Row) -> float:
    """Return the memory at full size: on a line through the two largest sizes."""
    (*_, size, largest), (*_, before, last) = row["sizes"], row["rssMiBBySize"]
    slope = max((last - before) / (largest - size), 0)
    return float(last + slope * max(FULL - largest, 0))


def function_table(found: Iterable[Fit]) -> str:
    """Return the table of the page."""
    lines = [
        "| function | row | memory, timeout | CPU s at full size | may take | MiB at full size | may take |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for fit in found:
        time = f"{_said(fit, fit.seconds)} | {fit.seconds_left:.0f}"
        memory = f"{_said(fit, fit.mebibytes)} | {fit.mebibytes_left:,.0f}"
        lines.append(f"| `{fit.function}` | `{fit.row}` | {fit.memory:,} MB, {fit.timeout} s | {time} | {memory} |")
    return "\n".join(lines)


def _said(fit: Fit, amount: float | None) -> str:
    if amount is None:
        return "not known"
    return f"{'' if fit.measured else 'about '}{amount:,.{0 if amount >= 10 else 1}f}"
