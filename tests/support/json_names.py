"""The names in a JSON document."""

from collections.abc import Iterator
from typing import Any


def member_names(data: Any, passed_over: frozenset[str] = frozenset()) -> Iterator[str]:
    """Return every member's name, at every depth; what the members `passed_over` hold is not looked at."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield name
            if name not in passed_over:
                yield from member_names(value, passed_over)
    elif isinstance(data, list):
        for value in data:
            yield from member_names(value, passed_over)
