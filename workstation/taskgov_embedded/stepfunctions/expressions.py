"""Evaluate JSONata as Step Functions does, and write times as it does; used by the mended interpreter."""

from __future__ import annotations

import hashlib
import itertools  # noqa: F401 the example below counts with it
import json
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from jsonata import jsonata as jsonata_python
from jsonata import utils as jsonata_utils
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


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
    >>> evaluate_jsonata(compose("$sum($team.gpus)", [declare({"$team": {"gpus": [1, 2]}})]), itertools.count())
    3
    """
    bindings = expression.bindings if isinstance(expression, Bound) else {}
    compiled = _compiled(expression.text if isinstance(expression, Bound) else str(expression))
    compiled.register_lambda("uuid", lambda: str(uuid.uuid5(uuid.NAMESPACE_URL, f"jsonata/{next(numbers)}")))
    compiled.register_lambda("hash", _hash)
    jsonata_python.Jsonata.CURRENT.jsonata = compiled  # of this thread, for functions that ask for the time
    named = {name.removeprefix("$"): _with_nulls(value) for name, value in bindings.items()}
    return _plain(compiled.evaluate(None, named))


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Any:
    """Parse an expression once: reading it takes many times as long as evaluating it."""
    return jsonata_python.Jsonata(text)


def _with_nulls(value: Any) -> Any:
    """Return JSON data as the library has it: its null is not Python's None, which it takes for nothing at all."""
    if value is None:
        return jsonata_utils.Utils.NULL_VALUE
    if isinstance(value, dict):
        return {key: _with_nulls(one) for key, one in value.items()}
    return [_with_nulls(one) for one in value] if isinstance(value, list) else value


def _hash(value: str, algorithm: str) -> str:
    """Do what Step Functions adds to JSONata as `$hash`; the algorithms are MD5 and SHA-1 to SHA-512."""
    return hashlib.new(algorithm.replace("-", "").lower(), value.encode(), usedforsecurity=False).hexdigest()


def _plain(value: Any) -> Any:
    """Return JSON data: the library answers with its own kinds of list and number."""
    return json.loads(json.dumps(value))


class Bound(str):
    """An expression, or declarations, in whole; `text` is what it says, without the values that `bindings` has."""

    __slots__ = ("bindings", "text")
    bindings: Mapping[str, Any]
    text: str

    @classmethod
    def of(cls, whole: str, text: str, bindings: Mapping[str, Any]) -> Self:
        """Keep the values apart: an expression is evaluated often, each time with others."""
        made = cls(whole)
        made.text, made.bindings = text, bindings
        return made

    def inside(self, function: str) -> Self:
        """Return the expression as the argument of a function."""
        return self.of(f"{function}({self})", f"{function}({self.text})", self.bindings)


def declare(bindings: dict[str, Any]) -> str:
    """Declare variables in JSONata, strings quoted as JSON; moto leaves quotes in them as they are."""
    whole = "".join(f"{name}:={to_json_str(value)};" for name, value in bindings.items())
    return Bound.of(whole, "", dict(bindings))


def compose(expression: str, declarations: Sequence[str]) -> str:
    """Put declarations before an expression, later ones over earlier ones.

    >>> compose("$a + $b", ["$a:=1;", declare({"$b": 2})])
    '($a:=1;$b:=2;$a + $b)'
    """
    whole = f"({''.join(declarations)}{expression})"
    bound = [one for one in declarations if isinstance(one, Bound)]
    said = "".join(one for one in declarations if not isinstance(one, Bound))
    return Bound.of(
        whole, f"({said}{expression})", {name: value for one in bound for name, value in one.bindings.items()}
    )
