"""What does taskgov cost a month? Counted requests times list prices: `make cost` writes the tables of docs/cost.md.

The counts are those of `benchmarks/cost_counts.json`; `--measure` counts anew on the embedded stack (some minutes).
Prices and assumptions are in `benchmarks/cost_prices.yaml`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from benchmarks.cost_counts import TEAMS, from_json, measure, to_json
from benchmarks.pages import write_sections
from taskgov.services.metric_catalogue import METRICS
from taskgov.services.metric_form import PER_CAPACITY, PER_QUANTILE, PER_QUOTA, PER_TEAM
from taskgov.services.series_cap import DEFAULT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benchmarks.cost_counts import Counts, Measured

HERE = Path(__file__).parent
COUNTS, PRICES = HERE / "cost_counts.json", HERE / "cost_prices.yaml"
PAGE = HERE.parent / "docs" / "cost.md"
GROUPS = {
    "CloudWatch metrics": ("custom_metrics",),
    "CloudWatch dashboard and alarms": ("dashboards", "alarm_metrics"),
    "CloudWatch Logs": ("log_gb",),
    "Lambda": ("lambda_requests", "lambda_gb_seconds"),
    "Step Functions": ("state_transitions", "express_requests", "express_gb_seconds"),
    "DynamoDB": ("dynamodb_reads", "dynamodb_writes"),
    "S3": ("s3_puts", "s3_gets", "s3_gb_months"),
    "SQS": ("sqs_requests",),
    "EventBridge and Scheduler": ("custom_events", "scheduled_invocations"),
    "KMS": ("kms_keys", "kms_requests"),
    "SNS (mail)": ("notices",),
    "X-Ray": ("traces",),
}
KEPT_MONTHS = {"snapshots": 1, "plans": 3, "reports": 13}
"""How long the bucket keeps each kind (lifecycle rules of the template)."""
BESIDE = 1, 2, 4, 8
CLUSTERS = 1, 10, 200
EXPRESS_GB = 64 / 1024
"""What an execution of a small Express machine is charged for, whatever it uses."""
TURN_SECONDS, LAST_TURN_SECONDS = 1, 40
"""How far apart measurements begin, and when the last one does (`statemachines/fan_out.asl.yaml`)."""
STARTS_AN_HOUR = 12
"""Runs of `estimate_starts`, by the default of `EstimateSchedule`."""
ESTIMATES = "EstimateStartsFunction"
SHARED = "alarm_metrics", "dashboards", "kms_keys"
"""What a stack has once, however many clusters it governs."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Prices and assumptions, as their file has them."""

    prices: Mapping[str, Mapping[str, Any]]
    assumed: Mapping[str, float]
    gpu_hour: Mapping[str, Any]
    region: str
    date: str

    def usd(self, name: str, amount: float) -> float:
        """Return what an amount of something costs."""
        price = self.prices[name]
        return amount / float(price["per"]) * float(price["usd"])


def inputs() -> Inputs:
    """Read the file of prices."""
    read = yaml.safe_load(PRICES.read_text())
    return Inputs(read["prices"], read["assumptions"], read["gpu_hour"], read["region"], str(read["date"]))


def times_a_month(measured: Measured, assumed: Mapping[str, float]) -> dict[str, float]:
    """Return how often each activity happens."""
    hours = assumed["hours_per_month"]
    faults = measured.nodes * hours / 24 / assumed["days_per_fault_and_node"]
    return {
        "minute": hours * 60,
        "starts": hours * STARTS_AN_HOUR,
        "look": hours,
        "audit": hours / 24,
        "fault": faults,
    }


def amounts(measured: Measured, assumed: Mapping[str, float], clusters: int = 1) -> dict[str, float]:
    """Return what a month takes of everything that is priced, with so many clusters of this size in a stack."""
    found: dict[str, float] = {name: 0 for names in GROUPS.values() for name in names}
    often = times_a_month(measured, assumed)
    for name, times in often.items():
        counts = measured.activities[name]
        for price, number in counts.totals.items():
            found[price] += times * number * clusters
        found["log_gb"] += times * counts.log_bytes * clusters / 1e9
        for function, number in counts.invocations.items():
            spent = _seconds(counts, function, number, assumed)
            found["lambda_gb_seconds"] += times * spent * measured.memory_mb[function] * clusters / 1024
            found["log_gb"] += times * number * assumed["platform_log_bytes"] * clusters / 1e9
    runs = (often["look"] + 2 * often["fault"]) * clusters
    per_month = {"snapshots": runs, "plans": runs, "reports": 2 * often["audit"] * clusters}
    for kind, months in KEPT_MONTHS.items():
        found["s3_gb_months"] += measured.stored_bytes.get(kind, 0) * per_month[kind] * months / 1e9
    futures = often["starts"] * assumed["milliseconds_of_futures"] / 1000
    found["lambda_gb_seconds"] += futures * measured.memory_mb.get(ESTIMATES, 0) * clusters / 1024
    fan_outs = often["minute"] + often["starts"] + often["look"] + often["audit"]
    found["scheduled_invocations"] = fan_outs
    found["sqs_requests"] += often["minute"] * assumed["idle_polls_per_minute"]
    found["traces"] = (
        fan_outs + runs + often["audit"] * clusters
    )  # the default samples the first request of each second
    found["express_requests"] /= clusters
    found["express_gb_seconds"] = EXPRESS_GB * (
        often["minute"] * _fan_out_seconds(measured, assumed, clusters, "minute")
        + often["starts"] * _fan_out_seconds(measured, assumed, clusters, "starts")
        + futures
    )
    found["s3_puts"] -= (clusters - 1) * fan_outs  # one list of documents serves all clusters
    return found | {name: each * (1 if name in SHARED else clusters) for name, each in measured.fixed.items()}


def _seconds(counts: Counts, function: str, invocations: float, assumed: Mapping[str, float]) -> float:
    """Return how long the calls of a function take."""
    waited = counts.calls.get(function, 0) * assumed["milliseconds_per_request"]
    return (invocations * assumed["milliseconds_per_invocation"] + waited) / 1000


def _fan_out_seconds(measured: Measured, assumed: Mapping[str, float], clusters: int, work: str) -> float:
    """Return how long an execution of the fan-out takes: until the last cluster's turn, and that cluster's call."""
    counts = measured.activities[work]
    look = sum(_seconds(counts, function, number, assumed) for function, number in counts.invocations.items())
    last_turn = (clusters - 1) * min(TURN_SECONDS, LAST_TURN_SECONDS / clusters)
    return assumed["milliseconds_per_fan_out"] / 1000 + last_turn + look


def bill(measured: Measured, given: Inputs, clusters: int = 1) -> dict[str, float]:
    """Return the month's price by service, the dearest first."""
    taken = amounts(measured, given.assumed, clusters)
    priced = {group: sum(given.usd(name, taken[name]) for name in names) for group, names in GROUPS.items()}
    return dict(sorted(priced.items(), key=lambda each: -each[1]))


def sections(all_measured: list[Measured], given: Inputs) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "bill": _table(_bill_rows(all_measured, given)),
        "clusters": _table(_cluster_rows(all_measured[0], given)),
        "requests": _table(_request_rows(all_measured, given)),
        "activities": _table(_activity_rows(all_measured)),
        "series": _table(_series_rows(all_measured[-1])),
        "cardinality": _table(_cardinality_rows(all_measured[-1], given)),
        "prices": _table(_price_rows(given)),
        "assumptions": _table([("assumption", "value"), *((n, f"{v:g}") for n, v in given.assumed.items())]),
    }


def _bill_rows(all_measured: list[Measured], given: Inputs) -> Iterator[tuple[str, ...]]:
    bills = [bill(each, given) for each in all_measured]
    totals = [sum(each.values()) for each in bills]
    yield ("US dollars a month", *(f"{each.nodes:,} nodes, {each.teams} teams" for each in all_measured))
    for group in bills[-1]:
        yield (group, *(f"{each[group]:.2f}" for each in bills))
    yield ("**together**", *(f"**{total:.2f}**" for total in totals))
    hour = float(given.gpu_hour["usd"])
    yield (f"in GPU-hours, at {hour} dollars", *(f"{total / hour:.1f}" for total in totals))
    whole = [each.nodes * 8 * given.assumed["hours_per_month"] * hour for each in all_measured]
    yield (
        "share of what the GPUs cost",
        *(f"{100 * total / price:.4f} %" for total, price in zip(totals, whole, strict=True)),
    )


def _cluster_rows(measured: Measured, given: Inputs) -> Iterator[tuple[str, ...]]:
    yield ("US dollars a month", *(f"{n} cluster{'s' if n > 1 else ''}" for n in CLUSTERS))
    taken = [amounts(measured, given.assumed, n) for n in CLUSTERS]
    parts = {
        "the fan-out (Express)": ("express_requests", "express_gb_seconds"),
        "functions": GROUPS["Lambda"],
        "queue": GROUPS["SQS"],
    }
    for what, names in parts.items():
        yield (what, *(f"{sum(given.usd(name, each[name]) for name in names):,.2f}" for each in taken))
    totals = [sum(bill(measured, given, n).values()) for n in CLUSTERS]
    yield ("**everything**", *(f"**{total:,.2f}**" for total in totals))
    yield ("for each cluster", *(f"{total / n:,.2f}" for total, n in zip(totals, CLUSTERS, strict=True)))


def _request_rows(all_measured: list[Measured], given: Inputs) -> Iterator[tuple[str, ...]]:
    yield ("a month takes", *(f"{each.nodes:,} nodes" for each in all_measured))
    taken = [amounts(each, given.assumed) for each in all_measured]
    for group, names in GROUPS.items():
        for name in names:
            yield (f"{group}: {given.prices[name]['unit']}", *(_number(each[name]) for each in taken))


def _activity_rows(all_measured: list[Measured]) -> Iterator[tuple[str, ...]]:
    yield ("counted once", *(f"{each.nodes:,} nodes" for each in all_measured))
    words = {
        "minute": "each minute's measurement",
        "starts": "an estimate of starts",
        "look": "a run on a cluster at rest",
        "fault": "a node fails and comes back",
        "audit": "the nightly audit",
    }
    for name, what in words.items():
        for part in ("lambda_requests", "state_transitions"):
            unit = "invocations" if part == "lambda_requests" else "state transitions"
            yield (
                f"{what}: {unit}",
                *(_number(each.activities[name].totals.get(part, 0)) for each in all_measured),
            )
        yield (
            f"{what}: requests of the functions",
            *(_number(sum(each.activities[name].calls.values())) for each in all_measured),
        )


def _series_rows(measured: Measured) -> Iterator[tuple[str, ...]]:
    yield ("dimensions beside `Cluster`", "metrics", f"series with {measured.teams} teams and 1 instance type")
    by_kind: dict[str, list[str]] = {}
    for name, kind in _kinds(measured).items():
        by_kind.setdefault(kind, []).append(name)
    for kind in (BY_TEAM_AND_TYPE, BY_TEAM, BY_QUANTILE, BY_TYPE, ALONE):
        names = by_kind.get(kind, [])
        yield (kind, str(len(names)), str(sum(measured.series[name] for name in names)))


BY_TEAM_AND_TYPE = "`Team`, `InstanceType`, `Resource`"
BY_TEAM = "`Team`"
BY_QUANTILE = "`Team`, `Quantile`"
BY_TYPE = "`InstanceType`, `Resource`"
ALONE = "none, or a few fixed values"
KIND = {PER_QUOTA: BY_TEAM_AND_TYPE, PER_TEAM: BY_TEAM, PER_QUANTILE: BY_QUANTILE, PER_CAPACITY: BY_TYPE}


def _kinds(measured: Measured) -> dict[str, str]:
    """Return by what each metric's series grow, as the catalogue has its dimensions."""
    dimensions = {metric.name: metric.dimensions for metric in METRICS}
    return {name: KIND.get(dimensions.get(name, ()), ALONE) for name in measured.series}


def series_of(measured: Measured, teams: int, types: int) -> int:
    """Return the series of a cluster with so many teams, each with a quota on each of so many instance types."""
    factor = {
        BY_TEAM_AND_TYPE: teams * types,
        BY_TEAM: teams,
        BY_QUANTILE: 2 * (teams + 1),  # two quantiles, and all teams together
        BY_TYPE: types,
    }
    return sum(factor.get(kind, measured.series[name]) for name, kind in _kinds(measured).items())


def _cardinality_rows(measured: Measured, given: Inputs) -> Iterator[tuple[str, ...]]:
    yield ("teams", *(f"{types} instance types" if types > 1 else "1 instance type" for types in BESIDE))
    for teams in (4, 10, 25, 50, 100, 300, 1000):
        found = [series_of(measured, teams, types) for types in BESIDE]
        yield (f"{teams:,}", *(_series_month(n, given) for n in found))


def _series_month(series: int, given: Inputs) -> str:
    """Return what a month of so many series costs, with those that the parameter MaxSeries leaves by default."""
    usd = given.usd("custom_metrics", min(series, DEFAULT_LIMIT))
    return f"{series:,} series{f', {DEFAULT_LIMIT:,} published' if series > DEFAULT_LIMIT else ''}, {usd:,.0f} dollars"


def _price_rows(given: Inputs) -> Iterator[tuple[str, ...]]:
    yield ("unit", "US dollars", "per", "source", "looked up")
    for each in given.prices.values():
        per = f"{each['per']:,}"
        yield (each["unit"], f"{each['usd']:g}", per, each["source"], "yes" if each["seen"] else "no")
    hour = given.gpu_hour
    yield (f"GPU-hour: {hour['what']}", f"{hour['usd']:g}", "1", hour["source"], "yes" if hour["seen"] else "no")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    head, *rest = rows
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(' --- ' for _ in head)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rest)])


def full_size_section(all_measured: list[Measured], given: Inputs) -> str:
    """Return the part of the page that is computed from the figures of `make bench`."""
    from benchmarks.cost_full_size import full_size_rows  # noqa: PLC0415 - it uses this module
    from benchmarks.scale.results import functions, stored  # noqa: PLC0415

    return _table(full_size_rows(all_measured[-1], given, stored(), functions()))


def write_page(all_measured: list[Measured], given: Inputs) -> None:
    """Put the tables into the page."""
    write_sections(PAGE, sections(all_measured, given) | {"full-size": full_size_section(all_measured, given)})


def main(arguments: list[str]) -> int:
    """Count where that is asked for, and write the page."""
    if "--measure" in arguments:
        found = []
        for nodes, teams in TEAMS.items():
            print(f"counting with {nodes:,} nodes and {teams} teams ...", file=sys.stderr, flush=True)
            found.append(measure(nodes, teams))
        COUNTS.write_text(to_json(found))
    given, measured = inputs(), from_json(COUNTS.read_text())
    write_page(measured, given)
    for each in measured:
        print(f"{each.nodes:>6,} nodes: {sum(bill(each, given).values()):8.2f} dollars a month")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
