"""Filter, sort and page the answers of List operations, as SageMaker documents their parameters."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from taskgov_embedded.aws_api.wire import AwsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

PAGE_SIZE = 10
"""Without MaxResults: small on purpose, so that a caller who reads one page only is found out."""


def page(
    summaries: Iterable[Mapping[str, Any]],
    asked: Mapping[str, Any],
    result_key: str,
    created_key: str,
    sort_keys: tuple[str, ...],
) -> dict[str, Any]:
    """Return the page that NextToken names, of what was created in the asked span.

    Sorted by `sort_keys`, Ascending unless SortOrder says otherwise.
    """
    after, before = (asked.get(f"CreationTime{end}", asked.get(f"Created{end}")) for end in ("After", "Before"))
    within = [summary for summary in summaries if _is_between(summary[created_key], after, before)]
    ordered = sorted(
        within, key=lambda summary: [summary[key] for key in sort_keys], reverse=asked.get("SortOrder") == "Descending"
    )
    start = _offset(asked.get("NextToken"))
    end = start + asked.get("MaxResults", PAGE_SIZE)
    answer: dict[str, Any] = {result_key: ordered[start:end]}
    if end < len(ordered):
        answer["NextToken"] = base64.b64encode(f"offset:{end}".encode()).decode()
    return answer


def _is_between(time: datetime, after: Any, before: Any) -> bool:
    """Return whether a time lies in a span (UTC without a zone, as moto reads it); None is unbounded."""
    moment = time.replace(tzinfo=None)
    return (after is None or moment > after) and (before is None or moment < before)


def _offset(token: str | None) -> int:
    if token is None:
        return 0
    try:
        kind, _, number = base64.b64decode(token, validate=True).decode().partition(":")
        return int(number) if kind == "offset" else -1
    except ValueError as error:
        raise AwsError("ValidationException", "Invalid NextToken") from error
