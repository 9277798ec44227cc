"""Read what an alarm watches, and how, from what moto keeps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskgov_embedded.cloudwatch import insights
from taskgov_embedded.cloudwatch.alarm_rule import Rule
from taskgov_embedded.cloudwatch.metric_data import MetricData, MetricKey, key_of
from taskgov_embedded.cloudwatch.metric_math import Series, compute

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moto.cloudwatch.models import Alarm

ONE = ""
"""The contributor of an alarm that watches one series."""


class Watch:
    """An alarm's rule, and where its values come from. Raises ValueError for what is not evaluated here, by name."""

    def __init__(self, alarm: Alarm) -> None:
        if alarm.rule:
            raise ValueError(f"the embedded stack evaluates no composite alarm ({alarm.name})")
        if alarm.extended_statistic or alarm.threshold_metric_id:
            raise ValueError(f"the embedded stack evaluates no percentile and no anomaly detection ({alarm.name})")
        periods = int(alarm.evaluation_periods)
        self.rule = Rule(
            alarm.comparison_operator,
            float(alarm.threshold),
            periods,
            int(alarm.datapoints_to_alarm or periods),
            alarm.treat_missing_data or "missing",
        )
        self._stats: dict[str, tuple[MetricKey, str]] = {}
        self._query: insights.Query | None = None
        if not alarm.metric_data_queries:
            self._expression = "watched"
            self._stats["watched"] = (_key(alarm.namespace, alarm.metric_name, alarm.dimensions), alarm.statistic)
            self.period = int(alarm.period)
            return
        (self._expression,) = [query.expression or query.id for query in alarm.metric_data_queries if _returns(query)]
        periods_of_parts: set[int] = set()
        for query in alarm.metric_data_queries:
            if query.metric_stat is not None:
                metric = query.metric_stat.metric
                key = _key(metric.namespace, metric.metric_name, metric.dimensions)
                self._stats[query.id] = (key, query.metric_stat.stat)
                periods_of_parts.add(int(query.metric_stat.period))
            elif query.expression != self._expression:
                raise ValueError(f"the embedded stack computes one expression for each alarm ({alarm.name})")
            elif insights.is_query(query.expression):
                self._query = insights.parse(query.expression)
                periods_of_parts.add(int(query.period))
        if len(periods_of_parts) != 1:
            raise ValueError(f"all metrics of an alarm have one period ({alarm.name})")
        (self.period,) = periods_of_parts

    def values(self, data: MetricData, end: float) -> Mapping[str, Series]:
        """Return the values of the evaluation range that ends at `end` (epoch seconds), by contributor."""
        if self._query is not None:
            return data.by_group(self._query, self.period, end, self.rule.points)
        metrics = {
            name: data.series(key, statistic, self.period, end, self.rule.points)
            for name, (key, statistic) in self._stats.items()
        }
        return {ONE: compute(self._expression, metrics)}


def _returns(query: Any) -> bool:
    """Return whether this is what the alarm watches; `ReturnData` is true where it is not given."""
    return str(query.return_data).lower() != "false"


def _key(namespace: str, name: str, dimensions: Iterable[Any]) -> MetricKey:
    return key_of(namespace, name, ((dimension.name, dimension.value) for dimension in dimensions or ()))
