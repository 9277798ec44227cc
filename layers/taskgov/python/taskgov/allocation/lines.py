"""The numbers of one instance type in several configs of one quota, and the rows between those configs.

`taskgov.allocation.around_refusals` moves along them: from the present to the planned or to an earlier value.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from taskgov.allocation.parts import row_key
from taskgov.allocation.row_numbers import FLOATS, made, numbers_of, row_of, survives, taken_by_one

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskgov.allocation.parts import RowKey
    from taskgov.allocation.row_numbers import Rows
    from taskgov.hyperpod.instance_types import InstanceResources
    from taskgov.hyperpod.model import ComputeQuotaResource


@dataclass(frozen=True, slots=True)
class Line:
    """One number of one row, as several configs have it."""

    key: RowKey
    name: str
    """The field of the row, as `FIELDS` has them."""
    numbers: tuple[Fraction, ...]
    """What the configs have, in their order."""
    taken: Mapping[str, Fraction]
    """What one of it takes of each resource in which sums are compared."""


def lines_through(configs: Sequence[Rows], resources: InstanceResources | None) -> list[Line] | None:
    """Return the numbers by which all these rows of one type can be said; None where there are none."""
    lines: list[Line] = []
    keys = sorted({row_key(row) for rows in configs for row in rows})
    for key in keys:
        found = numbers_of(key, configs, resources, is_alone=len(keys) == 1)
        if found is None:
            return None
        for name, numbers in found.by_field:
            lines.append(Line(key, name, numbers, taken_by_one(key, name, resources, found)))
    return lines


def rows_on(lines: Sequence[Line], values: Sequence[Fraction], configs: Sequence[Rows]) -> Rows:
    """Return the rows in which each line has its value; those of the first config that has the same, as they are there.

    Numbers that the API would not keep are rounded down.
    """
    by_key: dict[RowKey, list[tuple[Line, Fraction]]] = {}
    for line, value in zip(lines, values, strict=True):
        by_key.setdefault(line.key, []).append((line, value))
    found = (_row_on(key, mine, configs) for key, mine in by_key.items())
    return tuple(row for row in found if row is not None)


def _row_on(
    key: RowKey, lines: Sequence[tuple[Line, Fraction]], configs: Sequence[Rows]
) -> ComputeQuotaResource | None:
    for number, rows in enumerate(configs):
        if all(value == line.numbers[number] for line, value in lines):
            return row_of(key, rows)
    return made(key, {line.name: _kept(line, value) for line, value in lines})


def _kept(line: Line, value: Fraction) -> Fraction:
    return value if line.name not in FLOATS or survives(value) else Fraction(floor(value))
