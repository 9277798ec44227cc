"""Read the Metrics Insights queries that alarms use: one function of one metric, grouped by one dimension.

Anything else is refused with the query. A query gives one series for each value of the dimension that it is grouped by,
and an alarm on it has a contributor for each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_QUERY: Final = re.compile(
    r"SELECT (?P<function>SUM|MAX|MIN)\((?P<metric>\w+)\) "
    r'FROM SCHEMA\("(?P<namespace>[\w/]+)", (?P<dimensions>\w+(?:, \w+)*)\) GROUP BY (?P<by>\w+)'
    r"(?: ORDER BY (?P=function)\(\) (?:ASC|DESC))?"
)
_STATISTICS: Final = {"SUM": "Sum", "MAX": "Maximum", "MIN": "Minimum"}


@dataclass(frozen=True, slots=True)
class Query:
    """What a query requests."""

    statistic: str
    metric: str
    namespace: str
    dimensions: frozenset[str]
    by: str


def is_query(expression: str) -> bool:
    """Return whether an expression is a query, and no metric math."""
    return expression.lstrip().upper().startswith("SELECT ")


def parse(expression: str) -> Query:
    """Read a query. Raises ValueError for one that has another form.

    >>> parse('SELECT MAX(Overcommit) FROM SCHEMA("TaskGovernance", Cluster, Team) GROUP BY Cluster').statistic
    'Maximum'
    """
    found = _QUERY.fullmatch(expression.strip())
    if found is None:
        raise ValueError(f"the embedded stack does not know this query: {expression}")
    dimensions = frozenset(found["dimensions"].split(", "))
    if found["by"] not in dimensions:
        raise ValueError(f"{found['by']} is not a dimension of the query: {expression}")
    return Query(_STATISTICS[found["function"]], found["metric"], found["namespace"], dimensions, found["by"])
