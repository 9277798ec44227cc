"""What documentation and tests say of the catalogue of metrics as a whole: its table, and how many a cluster has."""

from taskgov.services.metric_catalogue import METRICS
from taskgov.services.metric_form import (
    PER_CAPACITY,
    PER_QUANTILE,
    PER_QUOTA,
    PER_SEVERITY,
    PER_TEAM,
    WHOLE_CLUSTER,
    Metric,
)


def catalogue_markdown() -> str:
    """Return the table of `docs/metrics.md`."""
    rows = [
        "| metric | unit | dimensions beside `Cluster` | meaning | source |",
        "| --- | --- | --- | --- | --- |",
        *(_row(metric) for metric in METRICS),
    ]
    return "\n".join(rows) + "\n"


def metric_count(*, teams: int, types: int, quotas: int) -> int:
    """Return how many custom metrics a cluster has, which is what CloudWatch bills.

    `quotas` counts the pairs of team and instance type. Preemptions come on top: two metrics for each combination of
    team, reason and preempting team in the hours in which it occurs.

    >>> metric_count(teams=10, types=2, quotas=20)
    258
    """
    severities, quantiles = 4, 2
    numbers = {PER_QUOTA: quotas, PER_CAPACITY: types, PER_TEAM: teams, PER_SEVERITY: severities, WHOLE_CLUSTER: 1}
    numbers[PER_QUANTILE] = quantiles * (teams + 1)  # and of all teams together
    return sum(numbers.get(metric.dimensions, 0) for metric in METRICS)


def _row(metric: Metric) -> str:
    dimensions = ", ".join(f"`{name}`" for name in metric.dimensions) or "none"
    return f"| `{metric.name}` | {metric.unit} | {dimensions} | {metric.meaning} | {metric.source} |"
