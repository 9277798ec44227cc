"""What does the deployed dashboard show after a walkthrough? Its widgets, with the data that they name.

The widgets are those of the stack's own dashboard, as the emulated CloudWatch keeps it. A SEARCH is answered from the
metric data that the functions published; AWS/States from the state machine's executions. AWS/SQS is measured by AWS
alone: its widgets stay empty, and say so.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from taskgov_embedded.walkthrough.world import World

SEARCH: Final = re.compile(
    r"""SEARCH\('Namespace="([\w/]+)" MetricName="(\w+)"(?: Cluster="_")?"""
    r"""(?: NOT Resource="(\w+)")?', '(\w+)', (\d+)\)"""
)
TOGETHER: Final = re.compile(r"(SUM|MAX)\((.*)\)")
PROPERTY: Final = re.compile(r"\$\{PROP\('Dim\.(\w+)'\)\}")
ENDED: Final = {
    "ExecutionsSucceeded": "SUCCEEDED",
    "ExecutionsFailed": "FAILED",
    "ExecutionsTimedOut": "TIMED_OUT",
}


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a widget."""

    metric: str
    label: str
    of: str
    """Whom it is about: a team, an instance type; empty for the automation itself."""
    times: tuple[datetime, ...]
    values: tuple[float, ...]
    right: bool
    counts: bool
    """Values are counts of what happened, and not levels."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A widget with its data; places and sizes are in the dashboard's grid, 24 wide."""

    place: tuple[int, int, int, int]
    title: str
    left_label: str
    right_label: str
    series: tuple[Series, ...]
    are_figures: bool = False
    """Each series is shown as its last value."""
    alarms: tuple[str, ...] = ()
    is_stacked: bool = False
    """Lines are areas on top of one another."""


def panels(world: World) -> list[Panel]:
    """Return the stack's dashboard, from top to bottom."""
    cloudwatch = world.stack.client("cloudwatch")
    (entry,) = cloudwatch.list_dashboards()["DashboardEntries"]
    body = json.loads(cloudwatch.get_dashboard(DashboardName=entry["DashboardName"])["DashboardBody"])
    return [_panel(world, widget) for widget in body["widgets"]]


def _panel(world: World, widget: Mapping[str, Any]) -> Panel:
    about = widget["properties"]
    axes = about.get("yAxis", {})
    return Panel(
        place=(widget["x"], widget["y"], widget["width"], widget["height"]),
        title=about["title"],
        left_label=axes.get("left", {}).get("label", ""),
        right_label=axes.get("right", {}).get("label", ""),
        series=tuple(each for row in about.get("metrics", ()) for each in _row(world, row, about)),
        are_figures=about.get("view") == "singleValue",
        is_stacked=about.get("stacked", False),
        alarms=tuple(arn.rsplit(":", 1)[-1] for arn in about.get("alarms", ())),
    )


def _row(world: World, row: list[Any], about: Mapping[str, Any]) -> Iterator[Series]:
    """Give the series of one entry of a widget's metrics."""
    if not isinstance(row[0], dict):
        yield from _executions(world, row[1], about["period"])
        return
    together = TOGETHER.fullmatch(row[0]["expression"])
    if together is not None:
        every = list(_row(world, [row[0] | {"expression": together[2]}], about))
        yield _together(sum if together[1] == "SUM" else max, every, row[0]["label"])
        return
    found = SEARCH.fullmatch(row[0]["expression"])
    if found is None:
        raise ValueError(f"{row[0]['expression']} is not a SEARCH that can be answered here")
    namespace, metric, without, statistic, period = found.groups()
    chosen = 'Cluster="_"' in row[0]["expression"]  # what stands for all clusters is of no cluster's page
    matching = _matching(world, namespace, metric)
    for dimensions in (one for one in matching if not chosen or one.get("Cluster") != "all clusters"):
        if without is not None and dimensions.get("Resource") == without:
            continue
        times, values = _data(world, (namespace, metric, dimensions), statistic, int(period))
        label = PROPERTY.sub(lambda part, at=dimensions: at[part[1]], row[0]["label"])  # type: ignore[misc]
        of = dimensions.get("Team") or dimensions.get("InstanceType") or dimensions.get("Severity") or ""
        yield Series(metric, label, of, times, values, row[0].get("yAxis") == "right", statistic == "Sum")


def _together(how: Callable[[Iterable[float]], float], every: list[Series], label: str) -> Series:
    """Return several series as one, moment by moment."""
    by_time: dict[datetime, list[float]] = {}
    for each in every:
        for at, value in zip(each.times, each.values, strict=True):
            by_time.setdefault(at, []).append(value)
    times, values = _in_order((at, how(some)) for at, some in by_time.items())
    metric = every[0].metric if every else ""
    return Series(metric, label, "", times, values, right=False, counts=False)


def _matching(world: World, namespace: str, metric: str) -> list[dict[str, str]]:
    pages = world.stack.client("cloudwatch").get_paginator("list_metrics")
    found = {
        tuple(sorted((each["Name"], each["Value"]) for each in one["Dimensions"]))
        for page in pages.paginate(Namespace=namespace, MetricName=metric)
        for one in page["Metrics"]
    }
    return [dict(each) for each in sorted(found)]


def _data(
    world: World, metric: tuple[str, str, Mapping[str, str]], statistic: str, period: int
) -> tuple[tuple[datetime, ...], tuple[float, ...]]:
    namespace, name, dimensions = metric
    wanted = {
        "Namespace": namespace,
        "MetricName": name,
        "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions.items()],
    }
    (result,) = world.stack.client("cloudwatch").get_metric_data(
        MetricDataQueries=[{"Id": "one", "MetricStat": {"Metric": wanted, "Period": period, "Stat": statistic}}],
        StartTime=world.walkthrough.starts,
        EndTime=world.clock.now + timedelta(minutes=1),
    )["MetricDataResults"]
    return _in_order(zip(result["Timestamps"], result["Values"], strict=True))


def _executions(world: World, metric: str, period: int) -> Iterator[Series]:
    """Count executions of `reconcile` by the moment in which they started or ended; anything else is AWS's to tell."""
    if not metric.startswith("Executions"):
        return
    steps = world.stack.client("stepfunctions")
    pages = steps.get_paginator("list_executions").paginate(
        stateMachineArn=world.stack.physical("ReconcileStateMachine")
    )
    runs = [each for page in pages for each in page["executions"]]
    if metric == "ExecutionsStarted":
        moments = [each["startDate"] for each in runs]
    else:
        moments = [each["stopDate"] for each in runs if each["status"] == ENDED[metric]]
    counts = Counter(_floor(each, period) for each in moments)
    times, values = _in_order(counts.items())
    yield Series(metric, metric.removeprefix("Executions").lower(), "", times, values, right=False, counts=True)


def _in_order(points: Iterable[tuple[datetime, float]]) -> tuple[tuple[datetime, ...], tuple[float, ...]]:
    ordered = sorted((at.astimezone(UTC), float(value)) for at, value in points)
    return tuple(at for at, _ in ordered), tuple(value for _, value in ordered)


def _floor(at: datetime, period: int) -> datetime:
    return datetime.fromtimestamp(at.timestamp() // period * period, UTC)
