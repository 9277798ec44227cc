"""Evaluate JSONata as Step Functions does, and write times as it does."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

from jsonata import jsonata as jsonata_python
from jsonata.jexception import JException
from jsonata.utils import Utils

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)(?:\s*\.\s*(\w+))?")


class ExpressionError(Exception):
    """An expression that cannot be evaluated, or that gives nothing: States.QueryEvaluationError."""


def evaluate(expression: str, variables: Mapping[str, Any], numbers: Iterator[int] | None = None) -> Any:
    """Evaluate JSONata with named variables (`states` is one of them). Raises ExpressionError.

    `numbers` make its `$uuid()`s, so that each run has the same ones.

    >>> evaluate("$sum($team.gpus)", {"team": {"gpus": [1, 2]}})
    3
    >>> evaluate("$team.name", {"team": {"gpus": []}})
    Traceback (most recent call last):
        ...
    taskgov_embedded.stepfunctions.expressions.ExpressionError: '$team.name' gives nothing
    """
    compiled = _compiled(expression)
    jsonata_python.Jsonata.CURRENT.jsonata = compiled.program  # of this thread, for functions that ask for the time
    bound = _bound(compiled, variables)
    if "uuid" in compiled.names:
        bound["uuid"] = _function(lambda: _uuid(numbers or count(1)))
    try:
        value = json.loads(json.dumps(compiled.program.evaluate(None, bound)))  # the library has its own lists
    except Exception as error:  # the library lets Python's errors out: of a bad number, a bad time, a division by zero
        raise ExpressionError(f"{expression!r}: {error}") from error
    if "value" not in value:
        raise ExpressionError(f"{expression!r} gives nothing")
    return value["value"]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A parsed expression, the variables that it names, and which fields of `$states`; None is all of them."""

    program: Any
    names: frozenset[str]
    fields: frozenset[str] | None


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> _Compiled:
    """Parse an expression once: that takes many times as long as evaluating it."""
    found = _VARIABLE.findall(expression)
    fields = frozenset(field for name, field in found if name == "states")
    try:
        # In an object, a missing value differs from null.
        program = jsonata_python.Jsonata(f'{{"value": ({expression})}}')
    except JException as error:
        raise ExpressionError(f"{expression!r}: {error}") from error
    return _Compiled(program, frozenset(name for name, _ in found), None if "" in fields else fields)


def inside(template: str) -> str:
    """Return the JSONata of a field.

    >>> inside("{% $count($teams) %}")
    '$count($teams)'
    """
    return template.strip().removeprefix("{%").removesuffix("%}").strip()


def check(expression: str) -> None:
    """Raise ExpressionError for text that is not JSONata, and for a function that is not there."""
    names = _compiled(expression).names
    for name in names & NOT_THERE.keys():
        raise ExpressionError(f"${name} {NOT_THERE[name]}")


def _bound(compiled: _Compiled, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that an expression names in the library's form, and Step Functions' own functions."""
    bound = {name: function for name, function in _FUNCTIONS.items() if name in compiled.names}
    for name in compiled.names & variables.keys():
        value = variables[name]
        if name == "states" and compiled.fields is not None:
            value = {field: value[field] for field in compiled.fields if field in value}
        bound[name] = _with_nulls(value)
    return bound


def _with_nulls(value: Any) -> Any:
    """Return JSON data as the library has it: its null is not Python's None, which it takes for nothing at all."""
    if value is None:
        return Utils.NULL_VALUE
    if isinstance(value, dict):
        return {key: _with_nulls(item) for key, item in value.items()}
    return [_with_nulls(item) for item in value] if isinstance(value, list) else value


def _function(implementation: Callable[..., Any]) -> Any:
    return jsonata_python.Jsonata.JLambda(implementation)


def _uuid(numbers: Iterator[int]) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"jsonata/{next(numbers)}"))


def _hash(value: str, algorithm: str) -> str:
    """Hash text; the algorithms are MD5 and SHA-1 to SHA-512."""
    return hashlib.new(algorithm.replace("-", "").lower(), value.encode(), usedforsecurity=False).hexdigest()


def _partition(values: list[Any], size: int) -> list[list[Any]]:
    return [values[start : start + size] for start in range(0, len(values), _at_least_one(size))]


def _at_least_one(size: int) -> int:
    if size < 1:
        raise ValueError(f"a part cannot have {size} items")
    return size


def _range(first: int, last: int, step: int) -> list[int]:
    return list(range(first, last + (1 if step > 0 else -1), step))


_FUNCTIONS = {
    "hash": _function(_hash),
    "partition": _function(_partition),
    "range": _function(_range),
    "parse": _function(lambda text: _with_nulls(json.loads(text))),
}
"""What Step Functions adds to JSONata, beside `$uuid`."""

NOT_THERE: Mapping[str, str] = {
    "eval": "is not part of JSONata in Step Functions, use $parse",
    "random": "is not in the embedded stack: its runs are alike",
    "shuffle": "is not in the embedded stack: its runs are alike",
}
"""Functions of JSONata that are refused, and why (Developer Guide, "Transforming data with JSONata")."""


def timestamp(moment: datetime) -> str:
    """Write a time as Step Functions does.

    >>> timestamp(datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC))
    '2026-11-20T09:00:00.123Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_times_as_text(value: Any) -> Any:
    """Return an API answer with its timestamps as text."""
    if isinstance(value, dict):
        return {key: with_times_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_times_as_text(item) for item in value]
    return timestamp(value) if isinstance(value, datetime) else value
