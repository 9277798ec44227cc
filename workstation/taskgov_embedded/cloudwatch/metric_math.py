"""Compute the metric math that alarms use: names of series, numbers, + - *, FILL, SUM and METRICS.

Any other function is refused by name (`MetricMathError`), because a wrong value would be worse than none. A series is a
tuple of values, oldest first; None is a missing one. The guide does not say what the sum of a value and a missing one
is. Here it is missing, so that an expression has to say what it means (FILL, SUM).
"""

from __future__ import annotations

import ast
import operator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Series = tuple[float | None, ...]
Value = float | Series | list[Series]

_OPERATORS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


class MetricMathError(ValueError):
    """An expression that the embedded stack cannot compute."""


def compute(expression: str, metrics: Mapping[str, Series]) -> Series:
    """Return the series that an expression makes of the metrics of an alarm, by their ids.

    >>> compute("SUM(FILL(METRICS(), 0))", {"a": (1.0, None), "b": (2.0, None)})
    (3.0, 0.0)
    """
    value = _Computation(expression, metrics).of(_parsed(expression))
    if not isinstance(value, tuple):
        raise MetricMathError(f"an alarm watches one series, and this is none: {expression}")
    return value


@lru_cache
def _parsed(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise MetricMathError(f"this expression is none: {expression}") from error


class _Computation:
    """One expression with its metrics."""

    def __init__(self, expression: str, metrics: Mapping[str, Series]) -> None:
        self._expression = expression
        self._metrics = metrics

    def of(self, node: ast.expr) -> Value:
        """Return what a part of the expression stands for."""
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name) if name in self._metrics:
                return self._metrics[name]
            case ast.List(elts=parts):
                return [self._series(part) for part in parts]
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
                return self._binary(_OPERATORS[type(sign)], self.of(left), self.of(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._function(name, arguments)
            case _:
                raise MetricMathError(f"the embedded stack does not know {ast.unparse(node)} in {self._expression}")

    def _series(self, node: ast.expr) -> Series:
        value = self.of(node)
        if not isinstance(value, tuple):
            raise MetricMathError(f"{ast.unparse(node)} is not a series in {self._expression}")
        return value

    def _binary(self, sign: Callable[[float, float], float], left: Value, right: Value) -> Value:
        match left, right:
            case float(), float():
                return sign(left, right)
            case tuple(), float():
                return tuple(None if value is None else sign(value, right) for value in left)
            case float(), tuple():
                return tuple(None if value is None else sign(left, value) for value in right)
            case tuple(), tuple():
                pairs = zip(left, right, strict=True)
                return tuple(None if a is None or b is None else sign(a, b) for a, b in pairs)
            case _:
                raise MetricMathError(f"the embedded stack adds no arrays: {self._expression}")

    def _function(self, name: str, arguments: Sequence[ast.expr]) -> Value:
        match name, arguments:
            case "METRICS", []:
                return list(self._metrics.values())
            case "FILL", [filled, ast.Constant(value=int() | float() as filler)]:
                return self._filled(self.of(filled), float(filler))
            case "SUM", [array]:
                return self._summed(self.of(array))
            case _:
                raise MetricMathError(f"the embedded stack does not know {name} of {len(arguments)} arguments")

    def _filled(self, value: Value, filler: float) -> Value:
        if isinstance(value, list):
            return [_fill(series, filler) for series in value]
        if isinstance(value, tuple):
            return _fill(value, filler)
        raise MetricMathError(f"FILL takes a series or an array of them: {self._expression}")

    def _summed(self, value: Value) -> Series:
        """Add series at each moment; a missing value counts where no series has one."""
        if not isinstance(value, list) or not value:
            raise MetricMathError(f"SUM is known for an array of series only: {self._expression}")
        return tuple(_sum(values) for values in zip(*value, strict=True))


def _fill(series: Series, filler: float) -> Series:
    return tuple(filler if value is None else value for value in series)


def _sum(values: Sequence[float | None]) -> float | None:
    real = [value for value in values if value is not None]
    return sum(real) if real else None
