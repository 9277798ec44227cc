"""What does a month cost at full size? The counts of the largest counted cluster, with what grows put in its place.

What grows is taken from `benchmarks/results.json` (processor time, requests, bytes of documents) and from the bounds of
docs/scale.md. So it is computed, not counted: an estimate of what is above the counted sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from benchmarks.cost import GROUPS, KEPT_MONTHS, amounts, times_a_month
from benchmarks.scale.functions import FULL, WHOLE_PROCESSOR_MB, fits
from taskgov.services.series_cap import DEFAULT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benchmarks.cost import Inputs
    from benchmarks.cost_counts import Measured

NODES: Final = 10_000
LOG_BYTES: Final = 800_000
"""Log bytes of a measurement, at most (tests/services/test_series_rule.py)."""
SNAPSHOT_BYTES: Final = 92_000_000
REPORT_BYTES: Final = 30_000_000
"""Bytes of a page and its JSON file, which has a line for each team, instance type and resource."""
RECORD_BYTES: Final = 7_500
"""Bytes of the record of a quota with 15 rows and four earlier configs."""
UNIT: Final = 4096
"""Bytes of a consistent read request unit."""
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "minute": ("publish_usage",),
    "starts": ("estimate_starts",),
    "look": ("read_snapshot", "plan_quotas", "end_of_run"),
    "audit": ("audit_cluster",),
}
"""Activity -> the rows of the functions whose work grows with the cluster. That of `starts` is the most it takes."""


def full_size_amounts(
    measured: Measured, given: Inputs, rows: Iterable[Mapping[str, Any]], functions: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Return what a month takes of everything that is priced, with one cluster of full size."""
    kept = {row["row"]: row for row in rows}
    large = replace(measured, nodes=NODES)
    often = times_a_month(large, given.assumed)
    looks = often["look"] + 2 * often["fault"]
    found = amounts(large, given.assumed)
    found["custom_metrics"] = DEFAULT_LIMIT
    found["log_gb"] += often["minute"] * (LOG_BYTES - measured.activities["minute"].log_bytes) / 1e9
    of_row = {fit.row: fit for fit in fits(kept.values(), functions)}
    for activity, names in PARTS.items():
        for name in names:
            fit = of_row[name]
            requests = _at_full_size(kept[name], "requests")
            waited = requests * given.assumed["milliseconds_per_request"] / 1000
            most = fit.seconds_left if fit.seconds is None else fit.seconds
            worked = most / min(1, fit.memory / WHOLE_PROCESSOR_MB)
            times = looks if activity == "look" else often[activity]
            found["lambda_gb_seconds"] += times * (waited + worked) * fit.memory / 1024
    records = FULL * RECORD_BYTES / UNIT
    found["dynamodb_reads"] += (often["minute"] + looks) * records + looks * FULL
    found["s3_puts"] += (looks + often["audit"]) * FULL  # the page of each team
    stored = {
        "snapshots": looks * SNAPSHOT_BYTES,
        "plans": looks * _at_full_size(kept["plan_quotas"], "planBytes"),
        "reports": often["audit"] * REPORT_BYTES,
    }
    found["s3_gb_months"] = sum(size * KEPT_MONTHS[kind] for kind, size in stored.items()) / 1e9
    return found


def full_size_rows(
    measured: Measured, given: Inputs, rows: Iterable[Mapping[str, Any]], functions: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, ...]]:
    """Give the rows of the table, the dearest service first."""
    rows = list(rows)
    counted, full = amounts(measured, given.assumed), full_size_amounts(measured, given, rows, functions)
    priced = {
        group: [sum(given.usd(name, taken[name]) for name in names) for taken in (counted, full)]
        for group, names in GROUPS.items()
    }
    yield (
        "US dollars a month",
        f"{measured.nodes:,} nodes, {measured.teams} teams, counted",
        f"{NODES:,} nodes, {FULL:,} teams with 15 rows, computed",
    )
    for group, prices in sorted(priced.items(), key=lambda of_group: -of_group[1][1]):
        yield (group, *(f"{price:,.2f}" for price in prices))
    yield ("**together**", *(f"**{sum(each):,.2f}**" for each in zip(*priced.values(), strict=True)))


def _at_full_size(row: Mapping[str, Any], count: str) -> float:
    """Return a count of a row in proportion to the teams."""
    largest: int = row["sizes"][-1]
    return float(row["counts"][count]) * max(FULL / largest, 1)
