"""The rows that a quota can have of one instance type, between its present and its planned rows.

`taskgov.allocation.partial` moves along the axes that are built here. An axis is one number that can be written. Its
value is between `start` (present) and `goal` (planned), and is whole except at these two. Leased amounts are on no
axis: they are added to the written value (`shift`), so that a lease moves in full.

| rows | axes |
| --- | --- |
| one row that uses one field (`Count`, `Accelerators`, a partition, ...) before and after | that field |
| anything else | accelerators, partition, vCPU and memory, all written out |
| parts of a type with unknown numbers | none: all or nothing |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from taskgov.allocation.parts import row_key
from taskgov.allocation.quota_deltas import COUNT, THOUSANDTHS
from taskgov.allocation.row_numbers import FLOATS, amounts_of_one, made, numbers_of, row_of, survives, taken_by_one

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.allocation.parts import RowKey
    from taskgov.allocation.row_numbers import Numbers, Rows
    from taskgov.hyperpod.instance_types import InstanceResources
    from taskgov.hyperpod.model import ComputeQuotaResource


@dataclass(slots=True)
class Axis:
    """One number of one row that can be written: `value` moves, all else stays."""

    key: RowKey
    name: str
    """The field of the row, as `FIELDS` has them."""
    start: Fraction
    goal: Fraction
    shift: Fraction
    """Leased amount in the goal, added to `value` when written."""
    amounts: Mapping[str, Fraction]
    """Amount of one unit, in each resource that limits measure."""
    taken: Mapping[str, Fraction]
    """Amount of one unit, in each resource in which sums are compared."""
    value: Fraction = field(init=False)

    def __post_init__(self) -> None:
        """Start at the goal."""
        self.value = self.goal

    def hold_back(self, distance: Fraction) -> None:
        """Move the value back by at least `distance`, in whole numbers, and no farther than to the start."""
        if self.goal < self.start:
            self.value = min(Fraction(ceil(self.value + distance)), self.start)
        else:
            self.value = max(Fraction(floor(self.value - distance)), self.start)


@dataclass(frozen=True, slots=True)
class TypeRows:
    """The rows of one quota on one type: present, planned, and both without leases."""

    stands: Rows
    wanted: Rows
    own_stands: Rows
    own_wanted: Rows

    @property
    def keys(self) -> list[RowKey]:
        """The rows of both, in order."""
        return sorted({row_key(row) for row in (*self.stands, *self.wanted, *self.own_stands, *self.own_wanted)})


def axes_between(rows: TypeRows, resources: InstanceResources | None) -> list[Axis] | None:
    """Return the axes of a type; None if its rows can only stay or change as a whole."""
    axes: list[Axis] = []
    keys = rows.keys
    for key in keys:
        found = _of_row(key, rows, resources, is_alone=len(keys) == 1)
        if found is None:
            return None
        axes += found
    return axes


def rows_at(rows: TypeRows, axes: Iterable[Axis]) -> Rows:
    """Return the rows where the axes stand now."""
    by_key: dict[RowKey, list[Axis]] = {}
    for axis in axes:
        by_key.setdefault(axis.key, []).append(axis)
    found = (_row_at(key, rows, by_key.get(key, [])) for key in rows.keys)
    return tuple(row for row in found if row is not None)


def lost(rows: TypeRows, axes: Iterable[Axis]) -> list[Axis]:
    """Return the axes whose numbers would have to be written, and would come back from the API as others."""
    written = rows_at(rows, axes)
    new = {row_key(row) for row in written if row not in rows.stands and row not in rows.wanted}
    return [axis for axis in axes if axis.key in new and axis.name in FLOATS and not survives(axis.value + axis.shift)]


def _row_at(key: RowKey, rows: TypeRows, axes: list[Axis]) -> ComputeQuotaResource | None:
    stands, wanted = (row_of(key, found) for found in (rows.stands, rows.wanted))
    if all(axis.value == axis.goal for axis in axes):
        return wanted
    if rows.stands == rows.own_stands and all(axis.value == axis.start and not axis.shift for axis in axes):
        return stands
    values = {axis.name: max(axis.value + axis.shift, Fraction(0)) for axis in axes}
    return made(key, values)


def _of_row(key: RowKey, rows: TypeRows, resources: InstanceResources | None, *, is_alone: bool) -> list[Axis] | None:
    numbers = numbers_of(key, (rows.own_stands, rows.own_wanted, rows.wanted), resources, is_alone=is_alone)
    if numbers is None:
        return None
    return [_axis(key, name, (start, goal, end), resources, numbers) for name, (start, goal, end) in numbers.by_field]


def _axis(
    key: RowKey,
    name: str,
    numbers: tuple[Fraction, Fraction, Fraction],
    resources: InstanceResources | None,
    whole: Numbers,
) -> Axis:
    start, goal, end = numbers
    taken = taken_by_one(key, name, resources, whole)
    if resources is None:
        return Axis(key, name, start, goal, end - goal, {COUNT: Fraction(THOUSANDTHS)}, taken)
    amounts = amounts_of_one(name, key[1], resources, by_ratio=whole.by_ratio)
    return Axis(key, name, start, goal, end - goal, amounts, taken)
