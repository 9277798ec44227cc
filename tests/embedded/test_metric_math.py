"""Metric math and queries of alarms: what is used is computed, anything else is refused by name."""

from __future__ import annotations

import pytest

from taskgov_embedded.cloudwatch import insights
from taskgov_embedded.cloudwatch.metric_math import MetricMathError, Series, compute

METRICS: dict[str, Series] = {"a": (1.0, None, 3.0), "b": (None, None, 4.0)}


@pytest.mark.parametrize(
    ("expression", "series"),
    [
        ("a", (1, None, 3)),
        ("a + b", (None, None, 7)),
        ("a - 1", (0, None, 2)),
        ("2 * a", (2, None, 6)),
        ("FILL(b, 0)", (0, 0, 4)),
        ("FILL(a, 0) - FILL(b, 0)", (1, 0, -1)),
        ("SUM([a, b])", (1, None, 7)),
        ("SUM(METRICS())", (1, None, 7)),
        ("SUM(FILL(METRICS(), 0))", (1, 0, 7)),
    ],
)
def test_an_expression_gives_one_series(expression: str, series: Series) -> None:
    assert compute(expression, METRICS) == series


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("RATE(a)", "RATE"),
        ("IF(a > 1, a)", "IF"),
        ("a / b", "a / b"),
        ("c", "c"),
        ("SUM(a)", "array"),
        ("FILL(a, REPEAT)", "FILL"),
        ("METRICS()", "one series"),
        ("1 + 1", "one series"),
        ("METRICS() + 1", "arrays"),
        ("a +", "a +"),
    ],
)
def test_what_is_not_known_is_refused_by_name(expression: str, name: str) -> None:
    with pytest.raises(MetricMathError, match=name.replace("+", r"\+")):
        compute(expression, METRICS)


def test_a_query_is_read() -> None:
    query = insights.parse(
        'SELECT SUM(Preemptions) FROM SCHEMA("N", Cluster, Team) GROUP BY Cluster ORDER BY SUM() DESC'
    )
    assert (query.statistic, query.metric, query.namespace) == ("Sum", "Preemptions", "N")
    assert query.dimensions == {"Cluster", "Team"}
    assert query.by == "Cluster"


@pytest.mark.parametrize(
    "query",
    [
        'SELECT SUM(Preemptions) FROM SCHEMA("N", Cluster)',
        'SELECT AVG(Preemptions) FROM SCHEMA("N", Cluster) GROUP BY Cluster',
        'SELECT SUM(Preemptions) FROM SCHEMA("N", Team) GROUP BY Cluster',
    ],
)
def test_a_query_of_another_form_is_refused(query: str) -> None:
    assert insights.is_query(query)
    with pytest.raises(ValueError, match="SELECT"):
        insights.parse(query)
