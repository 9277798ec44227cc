"""The table of metrics, and the document that is made from it."""

from collections import Counter
from pathlib import Path

import pytest
from aws_lambda_powertools.metrics import MetricUnit

from taskgov.services import metric_catalogue
from taskgov.services.metric_catalogue import BORROWED, METRICS
from taskgov.services.metric_form import Metric
from tests.support.golden import assert_section
from tests.support.metric_page import catalogue_markdown, metric_count

DOCUMENT = Path("docs/metrics.md")


def test_names_are_unique_and_units_are_those_of_cloudwatch() -> None:
    assert [name for name, count in Counter(metric.name for metric in METRICS).items() if count > 1] == []
    assert {metric.unit for metric in METRICS} <= {unit.value for unit in MetricUnit}


def test_a_value_carries_its_dimensions_by_name() -> None:
    measured = BORROWED.of(3, "team-a", "ml.g5.8xlarge", "nvidia.com/gpu", Borrowed_cpu=24)
    assert measured.dimensions == {"Team": "team-a", "InstanceType": "ml.g5.8xlarge", "Resource": "nvidia.com/gpu"}
    assert (measured.name, measured.value, measured.unit) == ("Borrowed", 3.0, "Count")
    assert measured.properties == {"Borrowed_cpu": 24}


def test_a_value_with_too_few_dimensions_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        BORROWED.of(3, "team-a")


def test_the_document_has_the_table_and_the_number_of_metrics_of_a_typical_cluster() -> None:
    assert_section(DOCUMENT, "catalogue", catalogue_markdown().rstrip())
    rows = ["| teams | instance types | metrics |", "| --- | --- | --- |"]
    rows += [
        f"| {teams} | {types} | {metric_count(teams=teams, types=types, quotas=teams * types)} |"
        for teams, types in ((2, 1), (10, 2), (50, 3))
    ]
    assert_section(DOCUMENT, "count", "\n".join(rows))


@pytest.mark.parametrize(("teams", "types", "quotas"), [(2, 1, 2), (10, 2, 20), (1000, 20, 15_000), (3, 2, 4)])
def test_the_number_of_metrics_is_bounded_as_the_document_says(teams: int, types: int, quotas: int) -> None:
    assert metric_count(teams=teams, types=types, quotas=quotas) == 9 * quotas + 5 * teams + 3 * types + 22


def test_nothing_that_comes_and_goes_is_a_dimension() -> None:
    metrics = [one for one in vars(metric_catalogue).values() if isinstance(one, Metric)]
    assert {name for one in metrics for name in one.dimensions} == {
        "Team",
        "InstanceType",
        "Resource",
        "Reason",
        "PreemptingTeam",
        "Severity",
        "Quantile",
    }
