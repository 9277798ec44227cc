"""Filter, sort and page the answers of List operations, as SageMaker documents their parameters."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from taskgov_embedded.aws_api.wire import AwsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PAGE_SIZE = 10
"""Without MaxResults: small on purpose, so that a caller who reads one page only is found out."""


def page(
    items: Iterable[Mapping[str, Any]],
    params: Mapping[str, Any],
    result_key: str,
    sort_key: Callable[[Mapping[str, Any]], Any],
) -> dict[str, Any]:
    """Sort by `sort_key` (Ascending unless SortOrder says otherwise) and return the page that NextToken names."""
    ordered = sorted(items, key=sort_key, reverse=params.get("SortOrder") == "Descending")
    start = _offset(params.get("NextToken"))
    end = start + params.get("MaxResults", PAGE_SIZE)
    answer: dict[str, Any] = {result_key: ordered[start:end]}
    if end < len(ordered):
        answer["NextToken"] = base64.b64encode(f"offset:{end}".encode()).decode()
    return answer


def created_between(item: Mapping[str, Any], key: str, after: Any, before: Any) -> bool:
    """Say whether the item's time lies in the asked span (UTC without a zone, as moto reads it); None is no bound."""
    time = item[key].replace(tzinfo=None)
    return (after is None or time > after) and (before is None or time < before)


def _offset(token: str | None) -> int:
    if token is None:
        return 0
    try:
        kind, _, number = base64.b64decode(token, validate=True).decode().partition(":")
        return int(number) if kind == "offset" else -1
    except ValueError as error:
        raise AwsError("ValidationException", "Invalid NextToken") from error
