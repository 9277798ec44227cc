"""Metrics that functions print are found again by all of their dimensions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.cloudwatch import emf

if TYPE_CHECKING:
    from taskgov_embedded.stack import Stack

DIMENSIONS = (("Cluster", "ml-cluster"), ("InstanceType", "ml.g5"), ("Resource", "gpu"), ("Team", "team-a"))


@pytest.mark.parametrize("order", [DIMENSIONS, tuple(reversed(DIMENSIONS))], ids=["as written", "the other way round"])
def test_a_series_of_four_dimensions_is_found_in_any_order(stack: Stack, order: tuple[tuple[str, str], ...]) -> None:
    now = stack.clock.now
    others = (*DIMENSIONS[:3], ("Team", "team-b"))
    emf.put(
        [emf.Datum("N", "Borrowed", named, (value,), "Count", now) for named, value in ((DIMENSIONS, 3), (others, 5))],
        stack.place,
    )
    metric: dict[str, Any] = {
        "Namespace": "N",
        "MetricName": "Borrowed",
        "Dimensions": [{"Name": name, "Value": value} for name, value in order],
    }
    (found,) = stack.client("cloudwatch").get_metric_data(
        MetricDataQueries=[{"Id": "one", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}],
        StartTime=now - timedelta(minutes=1),
        EndTime=now + timedelta(minutes=1),
    )["MetricDataResults"]
    assert found["Values"] == [3.0]
