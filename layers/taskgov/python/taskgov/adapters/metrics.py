"""Measurements as CloudWatch metrics, by the embedded metric format: one line of log, no API call.

One document carries the values that share dimensions, since CloudWatch bills by metric and not by line.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.constants import MAX_METRICS

from taskgov.ports import Measurement

DOCUMENT_METRICS = MAX_METRICS - 1
"""Powertools prints by itself when the hundredth value is added, and would then have nothing left to flush."""

Dimensions = tuple[tuple[str, str], ...]


class EmbeddedMetrics:
    """The `Meter` port over Powertools' metrics; `namespace` and `service` come from the environment."""

    def record(self, cluster_name: str, measurements: Iterable[Measurement]) -> None:
        """Print one document for each set of dimensions, at most as many values as CloudWatch takes in one."""
        for dimensions, batch in _batches(measurements):
            metrics = EphemeralMetrics(service="")  # no `service` dimension: the dimensions are the field's own
            metrics.add_dimension("Cluster", cluster_name)
            for dimension, at in dimensions:
                metrics.add_dimension(dimension, at)
            for measurement in batch:
                metrics.add_metric(measurement.name, MetricUnit(measurement.unit), measurement.value)
                for name, value in measurement.properties.items():
                    metrics.add_metadata(name, value)
            metrics.flush_metrics()


def _batches(measurements: Iterable[Measurement]) -> Iterator[tuple[Dimensions, list[Measurement]]]:
    ordered = sorted(measurements, key=lambda measurement: (_dimensions(measurement), measurement.name))
    for dimensions, group in groupby(ordered, _dimensions):
        same = list(group)
        for start in range(0, len(same), DOCUMENT_METRICS):
            yield dimensions, same[start : start + DOCUMENT_METRICS]


def _dimensions(measurement: Measurement) -> Dimensions:
    return tuple(sorted(measurement.dimensions.items()))
