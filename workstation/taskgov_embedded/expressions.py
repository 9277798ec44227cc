"""Evaluate JSONata as Step Functions does, and write times as it does; used by the mended interpreter."""

from __future__ import annotations

import hashlib
import itertools  # noqa: F401 the example below counts with it
import json
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jsonata import jsonata as jsonata_python
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str

if TYPE_CHECKING:
    from collections.abc import Iterator


def timestamp(moment: datetime | str) -> str:
    """Write a time as Step Functions does.

    >>> timestamp(datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC))
    '2026-11-20T09:00:00.123Z'
    """
    if isinstance(moment, str):
        return moment
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_times_as_text(value: Any) -> Any:
    """Return an API answer with its timestamps as text."""
    if isinstance(value, dict):
        return {key: with_times_as_text(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_times_as_text(one) for one in value]
    return timestamp(value) if isinstance(value, datetime) else value


def evaluate_jsonata(expression: str, numbers: Iterator[int]) -> Any:
    """Evaluate a JSONata expression; `numbers` make its `$uuid()`s, so that each run has the same ones.

    >>> evaluate_jsonata('($team := {"gpus": [1, 2]}; $sum($team.gpus))', itertools.count())
    3
    """
    compiled = jsonata_python.Jsonata(expression)
    compiled.register_lambda("uuid", lambda: str(uuid.uuid5(uuid.NAMESPACE_URL, f"jsonata/{next(numbers)}")))
    compiled.register_lambda("hash", _hash)
    return _plain(compiled.evaluate(None))


def _hash(value: str, algorithm: str) -> str:
    """Do what Step Functions adds to JSONata as `$hash`; the algorithms are MD5 and SHA-1 to SHA-512."""
    return hashlib.new(algorithm.replace("-", "").lower(), value.encode(), usedforsecurity=False).hexdigest()


def _plain(value: Any) -> Any:
    """Return JSON data: the library answers with its own kinds of list and number."""
    return json.loads(json.dumps(value))


def declare(bindings: dict[str, Any]) -> str:
    """Declare variables in JSONata, strings quoted as JSON; moto leaves quotes in them as they are."""
    return "".join(f"{name}:={to_json_str(value)};" for name, value in bindings.items())
