"""Read the rows of a CSV trace: what is wrong is named by line, column, value and rule, all at once."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Row = Mapping[str, str | None]

_T = TypeVar("_T")
NAMED: Final = 5
"""Lines that a refusal names; the others are counted."""


def converted(rows: csv.DictReader[str], convert: Callable[[Row], _T]) -> list[_T]:
    """Return what `convert` makes of each row. Raises ValueError that names the lines it refuses."""
    found: list[_T] = []
    wrong: list[str] = []
    try:
        for row in rows:
            try:
                found.append(convert(row))
            except ValueError as error:
                wrong.append(f"line {rows.line_num}: {error}")
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num + 1} is not CSV: {error}") from error
    if wrong:
        more = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
        raise ValueError(f"{'; '.join(wrong[:NAMED])}{more}")
    return found


def text(row: Row, name: str) -> str:
    """Return a text. Raises ValueError where the row is too short for it."""
    value = row[name]
    if value is None:
        raise ValueError(f"{name} is missing: each row has a value for each column")
    return value


def whole(row: Row, name: str) -> int:
    """Return a whole number. Raises ValueError for anything else."""
    value = text(row, name)
    try:
        return int(value)
    except ValueError as error:
        raise ValueError(f"{name} is {value[:40]!r}: it is a whole number") from error


def number(row: Row, name: str) -> float:
    """Return a number; NaN stands for one that is not known. Raises ValueError for anything else, and for infinity."""
    value = text(row, name)
    try:
        found = float(value)
    except ValueError as error:
        raise ValueError(f"{name} is {value[:40]!r}: it is a number") from error
    if math.isinf(found):
        raise ValueError(f"{name} is {value[:40]!r}: it is finite")
    return found
