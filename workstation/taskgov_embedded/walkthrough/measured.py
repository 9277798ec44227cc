"""Metrics as CloudWatch has them: read back from the emulated account, as a dashboard would."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.walkthrough.expectations import MetricCheck
    from taskgov_embedded.walkthrough.world import World

NAMESPACE = "TaskGovernance"
MINUTE = 60
SEARCHED = re.compile(r'Namespace="TaskGovernance" MetricName="(\w+)"')


def dimensions_of(check: MetricCheck, cluster_name: str) -> dict[str, str]:
    """Return the dimensions that a check names."""
    given = {
        "Cluster": cluster_name,
        "Team": check.team,
        "InstanceType": check.instance_type,
        "Resource": check.resource,
        "Reason": check.reason,
        "PreemptingTeam": check.preempting_team,
        "Quantile": check.quantile,
    }
    return {name: value for name, value in given.items() if value is not None}


def read(world: World, name: str, dimensions: Mapping[str, str], statistic: Literal["last", "sum"]) -> float | None:
    """Return the newest value of a metric, or the sum of all its values; None when it was never measured."""
    metric = {
        "Namespace": NAMESPACE,
        "MetricName": name,
        "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions.items()],
    }
    stat = "Sum" if statistic == "sum" else "Average"
    (result,) = world.stack.client("cloudwatch").get_metric_data(
        MetricDataQueries=[{"Id": "one", "MetricStat": {"Metric": metric, "Period": MINUTE, "Stat": stat}}],
        StartTime=world.walkthrough.starts,
        EndTime=world.clock.now + timedelta(minutes=1),
    )["MetricDataResults"]
    if not result["Values"]:
        return None
    return float(sum(result["Values"]) if statistic == "sum" else newest_value(result))


def newest_value(result: Mapping[str, list[Any]]) -> float:
    """Return the value of the latest moment, whatever the order."""
    _, value = max(zip(result["Timestamps"], result["Values"], strict=True))
    return float(value)


def published(world: World) -> set[str]:
    """Return the names of all metrics that were measured."""
    paginator = world.stack.client("cloudwatch").get_paginator("list_metrics")
    return {metric["MetricName"] for page in paginator.paginate(Namespace=NAMESPACE) for metric in page["Metrics"]}


def dashboard(world: World) -> dict[str, tuple[str, ...]]:
    """Return the widgets of the stack's dashboard that show our metrics: title and names, from top to bottom."""
    cloudwatch = world.stack.client("cloudwatch")
    (entry,) = cloudwatch.list_dashboards()["DashboardEntries"]
    body = json.loads(cloudwatch.get_dashboard(DashboardName=entry["DashboardName"])["DashboardBody"])
    named = {
        widget["properties"]["title"]: SEARCHED.findall(json.dumps(widget).replace('\\"', '"'))
        for widget in body["widgets"]
    }
    return {title: tuple(dict.fromkeys(names)) for title, names in named.items() if names}


def newest(world: World, names: tuple[str, ...]) -> list[tuple[str, dict[str, str], float]]:
    """Return every series of these metrics with its newest value, in a stable order."""
    paginator = world.stack.client("cloudwatch").get_paginator("list_metrics")
    series = {
        (
            metric["MetricName"],
            tuple(sorted((dimension["Name"], dimension["Value"]) for dimension in metric["Dimensions"])),
        )
        for page in paginator.paginate(Namespace=NAMESPACE)
        for metric in page["Metrics"]
        if metric["MetricName"] in names
    }
    ordered = sorted(series, key=lambda named: (names.index(named[0]), named[1]))
    found = [(name, dict(dimensions), read(world, name, dict(dimensions), "last")) for name, dimensions in ordered]
    return [(name, dimensions, value) for name, dimensions, value in found if value is not None]
