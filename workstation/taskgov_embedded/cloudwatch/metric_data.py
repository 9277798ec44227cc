"""Find the values of a metric in a span of time: what moto keeps as one list, by metric and moment.

Alarms ask for the same few metrics each minute of a long day; moto would go through all that was ever measured.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from datetime import UTC
from typing import TYPE_CHECKING, Final

from moto.cloudwatch.models import MetricDatum, cloudwatch_backends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskgov_embedded.cloudwatch.insights import Query
    from taskgov_embedded.cloudwatch.metric_math import Series
    from taskgov_embedded.place import Place

Dimensions = tuple[tuple[str, str], ...]
"""Names with values, in the order of the names."""
MetricKey = tuple[str, str, Dimensions]
"""Namespace, name, dimensions."""

STATISTICS: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "SampleCount": len,
    "Average": lambda values: sum(values) / len(values),
}


def key_of(namespace: str, name: str, dimensions: Iterable[tuple[str, str]]) -> MetricKey:
    """Return the key of a metric, whatever the order of its dimensions."""
    return namespace, name, tuple(sorted(dimensions))


class MetricData:
    """All that was measured in one account, read on from moto's list."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._read = 0
        self._values: dict[MetricKey, list[tuple[float, float]]] = defaultdict(list)
        self._keys: dict[tuple[str, str], set[MetricKey]] = defaultdict(set)

    def read_on(self) -> None:
        """Take in what was put since the last time."""
        data = cloudwatch_backends[self._place.account][self._place.region].metric_data
        for datum in data[self._read :]:
            if not isinstance(datum, MetricDatum):
                raise NotImplementedError(f"the embedded stack evaluates no statistic sets ({datum.name})")
            key = key_of(
                datum.namespace, datum.name, ((dimension.name, dimension.value) for dimension in datum.dimensions)
            )
            insort(self._values[key], (datum.timestamp.replace(tzinfo=UTC).timestamp(), datum.value))
            self._keys[datum.namespace, datum.name].add(key)
        self._read = len(data)

    def series(self, key: MetricKey, statistic: str, period: int, end: float, points: int) -> Series:
        """Return the statistic of the last periods before `end` (epoch seconds), oldest first; None where none is."""
        return self._merged([key], statistic, period, end, points)

    def by_group(self, query: Query, period: int, end: float, points: int) -> dict[str, Series]:
        """Return the series of a query, by the value of its dimension; without a value in the span there is none."""
        groups: dict[str, list[MetricKey]] = defaultdict(list)
        for key in sorted(self._keys[query.namespace, query.metric]):
            dimensions = dict(key[2])
            if dimensions.keys() == query.dimensions:
                groups[dimensions[query.by]].append(key)
        found = {group: self._merged(keys, query.statistic, period, end, points) for group, keys in groups.items()}
        return {group: series for group, series in found.items() if any(value is not None for value in series)}

    def _merged(self, keys: Sequence[MetricKey], statistic: str, period: int, end: float, points: int) -> Series:
        if statistic not in STATISTICS:
            raise ValueError(f"the embedded stack does not know the statistic {statistic}")
        spans = [(end - period * (number + 1), end - period * number) for number in reversed(range(points))]
        values = [[value for key in keys for value in self._between(key, *span)] for span in spans]
        return tuple(float(STATISTICS[statistic](found)) if found else None for found in values)

    def _between(self, key: MetricKey, start: float, end: float) -> list[float]:
        kept = self._values.get(key, [])
        return [value for _, value in kept[bisect_left(kept, (start,)) : bisect_left(kept, (end,))]]
