from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from taskgov_embedded.cloudwatch.emf import EmfError, parse


def line(dimensions: list[list[str]], **values: Any) -> str:
    directive = {"Namespace": "N", "Dimensions": dimensions, "Metrics": [{"Name": "Borrowed", "Unit": "Count"}]}
    return json.dumps({"_aws": {"Timestamp": 1000, "CloudWatchMetrics": [directive]}, **values})


def test_each_set_of_dimensions_makes_a_series() -> None:
    found = parse(line([["Cluster"], ["Cluster", "Team"]], Cluster="c", Team="t", Borrowed=2))
    assert [one.dimensions for one in found] == [(("Cluster", "c"),), (("Cluster", "c"), ("Team", "t"))]
    assert {(one.values, one.unit, one.time) for one in found} == {((2.0,), "Count", datetime.fromtimestamp(1, UTC))}


def test_a_metric_without_dimensions_and_with_many_values() -> None:
    (found,) = parse(line([], Borrowed=[1, 2.5]))
    assert (found.dimensions, found.values) == ((), (1.0, 2.5))


@pytest.mark.parametrize("text", ["plain", "{not json", '{"level": "INFO"}', '{"_aws": {"Timestamp": 1}}', "[]"])
def test_an_ordinary_line_holds_no_metrics(text: str) -> None:
    assert parse(text) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line([["Team"]], Borrowed=1), "without a value for Team"),
        (line([[]]), "without a value for Borrowed"),
        (line([[f"d{n}" for n in range(31)]], Borrowed=1, **{f"d{n}": "x" for n in range(31)}), "31 dimensions"),
    ],
)
def test_metrics_that_cloudwatch_would_drop_without_a_word_are_errors(text: str, message: str) -> None:
    with pytest.raises(EmfError, match=message):
        parse(text)
