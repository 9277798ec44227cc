"""Turn what a function prints in CloudWatch's embedded metric format into metric data, as CloudWatch Logs does.

One line of JSON carries metrics, their dimension sets and the values: each dimension set makes one time series per
metric. Called by the runtime for each line of an invocation; `put` writes into the emulated CloudWatch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from moto.cloudwatch.models import Dimension, cloudwatch_backends

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov_embedded.aws_api.patches import Patches
    from taskgov_embedded.place import Place

MAX_DIMENSIONS = 30
"""CloudWatch's documented limit for a metric."""


class EmfError(ValueError):
    """A line that claims to be embedded metrics and is not: CloudWatch would drop it without a word."""


@dataclass(frozen=True, slots=True)
class Datum:
    """The values of one metric with one set of dimensions at one moment."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    values: tuple[float, ...]
    unit: str | None
    time: datetime


def parse(line: str) -> tuple[Datum, ...]:
    """Return the metric data of a log line; nothing when it is an ordinary line.

    >>> parse('{"_aws": {"Timestamp": 0, "CloudWatchMetrics": [{"Namespace": "N", "Dimensions": [["Team"]], '
    ...       '"Metrics": [{"Name": "Borrowed", "Unit": "Count"}]}]}, "Team": "team-a", "Borrowed": 2}')[0].dimensions
    (('Team', 'team-a'),)
    """
    if not line.startswith("{") or '"_aws"' not in line:
        return ()
    document = json.loads(line)
    header = document.get("_aws")
    if not isinstance(header, dict) or "CloudWatchMetrics" not in header:
        return ()
    time = datetime.fromtimestamp(header["Timestamp"] / 1000, UTC)
    return tuple(
        _datum(document, directive["Namespace"], metric, names, time)
        for directive in header["CloudWatchMetrics"]
        for metric in directive["Metrics"]
        for names in (directive["Dimensions"] or [[]])
    )


def _datum(
    document: Mapping[str, Any], namespace: str, metric: Mapping[str, Any], names: list[str], time: datetime
) -> Datum:
    missing = [name for name in (metric["Name"], *names) if name not in document]
    if missing:
        raise EmfError(f"embedded metrics without a value for {', '.join(missing)}: {json.dumps(document)}")
    if len(names) > MAX_DIMENSIONS:
        raise EmfError(f"{metric['Name']} has {len(names)} dimensions, CloudWatch takes {MAX_DIMENSIONS}")
    value = document[metric["Name"]]
    values = tuple(float(number) for number in (value if isinstance(value, list) else [value]))
    dimensions = tuple((name, str(document[name])) for name in names)
    return Datum(namespace, metric["Name"], dimensions, values, metric.get("Unit"), time)


def put(data: Iterable[Datum], place: Place) -> None:
    """Write metric data into CloudWatch."""
    backend = cloudwatch_backends[place.account][place.region]
    for datum in data:
        member = {
            "MetricName": datum.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in datum.dimensions],
            "Timestamp": datum.time.replace(tzinfo=None),  # moto keeps UTC without saying so
            "Values": list(datum.values),
        }
        backend.put_metric_data(datum.namespace, [member | ({"Unit": datum.unit} if datum.unit else {})])


def install(patches: Patches) -> None:
    """Let metric data be found by its dimensions: order them by name (a metric has each name once)."""
    patches.replace(
        Dimension,
        "__lt__",
        lambda dimension, other: dimension.name < other.name,
        "moto's order of dimensions is none, so it misses series of three dimensions",
    )
