"""The rows that a quota may have of one instance type, between those that stand and those that are wanted.

`taskgov.allocation.partial` moves along the axes that are made here. One axis is one number that can be written; its
value lies between `start` (what stands) and `goal`, and is whole where it is at neither. What leases bring is on no
axis: it is added to what is written (`shift`), so that a lease moves in full.

| rows | axes |
| --- | --- |
| one row, which says all by one field (`Count`, `Accelerators`, a partition, ...) before and after | that field |
| anything else | accelerators, partition, vCPU and memory, all written out |
| parts of a type whose numbers nobody knows | none: all or nothing |
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final

from taskgov.allocation.movements import COUNT, THOUSANDTHS
from taskgov.allocation.parts import ACCELERATOR, INSTANCE, is_in_parts, row_key
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU, mig_slices
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, EFA, GIBIBYTE, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.allocation.parts import RowKey
    from taskgov.hyperpod.instance_types import InstanceResources

Rows = tuple[ComputeQuotaResource, ...]

FIELDS: Final = ("count", "accelerator_partition", "accelerators", "vcpu", "memory_in_gib")
"""What a row can give, in the order in which a single one of them is looked for."""

FLOATS: Final = frozenset({"vcpu", "memory_in_gib"})


@dataclass(slots=True)
class Axis:
    """One number of one row that can be written: `value` moves, all else stays."""

    key: RowKey
    name: str
    """The field of the row, as `FIELDS` has them."""
    start: Fraction
    goal: Fraction
    shift: Fraction
    """What leases bring in the goal; it is written on top of `value`."""
    amounts: Mapping[str, Fraction]
    """What one of it comes to in each resource that limits judge."""
    taken: Mapping[str, Fraction]
    """What one of it takes of each resource in which sums are compared."""
    value: Fraction = field(init=False)

    def __post_init__(self) -> None:
        """Begin with what is wanted."""
        self.value = self.goal

    def hold_back(self, distance: Fraction) -> None:
        """Move the value back by at least `distance`, in whole numbers, and no farther than to the start."""
        if self.goal < self.start:
            self.value = min(Fraction(ceil(self.value + distance)), self.start)
        else:
            self.value = max(Fraction(floor(self.value - distance)), self.start)


@dataclass(frozen=True, slots=True)
class TypeRows:
    """The rows of one quota on one type: what stands, what is wanted, and both without leases."""

    stands: Rows
    wanted: Rows
    own_stands: Rows
    own_wanted: Rows

    @property
    def keys(self) -> list[RowKey]:
        """The rows of both, in order."""
        return sorted({row_key(row) for row in (*self.stands, *self.wanted, *self.own_stands, *self.own_wanted)})


def axes_between(rows: TypeRows, resources: InstanceResources | None) -> list[Axis] | None:
    """Return the axes of a type, None where it can only be left or written as a whole."""
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
    return [axis for axis in axes if axis.key in new and axis.name in FLOATS and not _survives(axis.value + axis.shift)]


def _row_at(key: RowKey, rows: TypeRows, axes: list[Axis]) -> ComputeQuotaResource | None:
    stands, wanted = (_row(key, each) for each in (rows.stands, rows.wanted))
    if all(axis.value == axis.goal for axis in axes):
        return wanted
    if rows.stands == rows.own_stands and all(axis.value == axis.start and not axis.shift for axis in axes):
        return stands
    values = {axis.name: max(axis.value + axis.shift, Fraction(0)) for axis in axes}
    name, profile = key
    fields: dict[str, Any] = {each: float(value) if each in FLOATS else int(value) for each, value in values.items()}
    if profile:
        count = fields.pop("accelerator_partition", 0)
        fields["accelerator_partition"] = AcceleratorPartition(type=profile, count=count)
    return ComputeQuotaResource(instance_type=name, **fields)


def _of_row(key: RowKey, rows: TypeRows, resources: InstanceResources | None, *, is_alone: bool) -> list[Axis] | None:
    own = [_row(key, each) for each in (rows.own_stands, rows.own_wanted)]
    written = _row(key, rows.wanted)
    if resources is None:
        if any(row is not None and is_in_parts(row) for row in (*own, written)):
            return None
        start, goal, end = (Fraction(row.count or 0 if row else 0) for row in (*own, written))
        return [Axis(key, "count", start, goal, end - goal, {COUNT: Fraction(THOUSANDTHS)}, {INSTANCE: Fraction(1)})]
    # What one of several rows brings by ratio would get into the way of the others: they are one sum.
    single = _single_field([*own, written], resources) if is_alone else None
    if single is not None:
        start, goal, end = (_value_in(row, single, resources) or Fraction(0) for row in (*own, written))
        return [_axis(key, single, (start, goal, end), resources, by_ratio=True)]
    fields = ["accelerators"] if _gives_accelerators(key, [*own, written], resources) else []
    fields += ["accelerator_partition"] if key[1] else []
    numbers = [_written_out(row, key[1], resources) for row in (*own, written)]
    return [
        _axis(key, name, (numbers[0][name], numbers[1][name], numbers[2][name]), resources, by_ratio=False)
        for name in (*fields, "vcpu", "memory_in_gib")
    ]


def _row(key: RowKey, rows: Rows) -> ComputeQuotaResource | None:
    return next((row for row in rows if row_key(row) == key), None)


def _axis(
    key: RowKey,
    name: str,
    numbers: tuple[Fraction, Fraction, Fraction],
    resources: InstanceResources,
    *,
    by_ratio: bool,
) -> Axis:
    start, goal, end = numbers
    amounts = _amounts_of_one(name, key[1], resources, by_ratio=by_ratio)
    taken = {resource: amount for resource, amount in amounts.items() if resource in {CPU, MEMORY}}
    if CPU in taken and name != "vcpu":
        taken[CPU] = taken[CPU] * resources.real_vcpu / resources.vcpu
    slices = mig_slices(key[1]) if key[1] else 0
    devices = amounts.get(resources.accelerator_resource, Fraction(0)) * MIG_SLICES_PER_GPU
    partitions = amounts.get(f"nvidia.com/{key[1]}", Fraction(0)) * slices
    if devices or partitions:
        taken[ACCELERATOR] = devices + partitions
    return Axis(key, name, start, goal, end - goal, amounts, taken)


@lru_cache(maxsize=1024)
def _amounts_of_one(name: str, profile: str, resources: InstanceResources, *, by_ratio: bool) -> Mapping[str, Fraction]:
    """Return what one of a field comes to, with what it brings by ratio unless the rest is written out."""
    whole = {resource: Fraction(amount) for resource, amount in resources.amounts().items() if resource != EFA}
    device = resources.accelerator_resource
    totals = {
        "count": Fraction(1),
        "accelerators": Fraction(resources.accelerators),
        "accelerator_partition": Fraction(resources.gpu * MIG_SLICES_PER_GPU),
        "vcpu": Fraction(resources.vcpu),
        "memory_in_gib": Fraction(str(resources.memory_gib)),
    }
    slices = mig_slices(profile) if name == "accelerator_partition" else 1
    share = slices / totals[name] if totals[name] else Fraction(0)
    amounts = {resource: share * whole[resource] for resource in (CPU, MEMORY)} if by_ratio else {}
    own = {
        "count": {device: whole[device]},
        "accelerators": {device: Fraction(1)},
        "accelerator_partition": {f"nvidia.com/{profile}": Fraction(1)},
        "vcpu": {CPU: Fraction(THOUSANDTHS)},
        "memory_in_gib": {MEMORY: Fraction(GIBIBYTE)},
    }
    return amounts | own[name]


def _single_field(rows: list[ComputeQuotaResource | None], resources: InstanceResources) -> str | None:
    """Return the field by which all rows can be said alone, the one that the document uses first."""
    given = [{name for name in FIELDS if getattr(row, name) is not None} for row in rows if row is not None]
    alone = [next(iter(names)) for names in reversed(given) if len(names) == 1]
    for name in (*alone, *FIELDS):
        if all(_value_in(row, name, resources) is not None for row in rows):
            return name
    return None


def _value_in(row: ComputeQuotaResource | None, name: str, resources: InstanceResources) -> Fraction | None:
    """Return the number of one field that alone says what the row says; None where none does."""
    if row is None:
        return Fraction(0)
    partition = row.accelerator_partition
    if name == "count" and not is_in_parts(row):
        return Fraction(row.count or 0)
    if (partition is None) == (name == "accelerator_partition"):
        return None
    amounts = complete(row, resources)
    one = _amounts_of_one(name, partition.type if partition else "", resources, by_ratio=True)
    own = f"nvidia.com/{partition.type}" if partition else _RESOURCE_OF.get(name, resources.accelerator_resource)
    if name == "count" and not one.get(own):
        own = CPU  # a type without accelerators
    if not one.get(own):
        return None
    value = Fraction(amounts.get(own, 0)) / one[own]
    if name not in FLOATS and value.denominator != 1:
        return None
    names = ({*amounts} | {*one}) - {EFA}
    same = all(floor(value * one.get(resource, 0)) == amounts.get(resource, 0) for resource in names)
    return value if same else None


_RESOURCE_OF: Final = {"vcpu": CPU, "memory_in_gib": MEMORY}


def _written_out(row: ComputeQuotaResource | None, profile: str, resources: InstanceResources) -> dict[str, Fraction]:
    amounts = complete(row, resources) if row else {}
    return {
        "accelerators": Fraction(amounts.get(resources.accelerator_resource, 0)),
        "accelerator_partition": Fraction(amounts.get(f"nvidia.com/{profile}", 0)),
        "vcpu": Fraction(amounts.get(CPU, 0), THOUSANDTHS),
        "memory_in_gib": Fraction(amounts.get(MEMORY, 0), GIBIBYTE),
    }


def _gives_accelerators(key: RowKey, rows: Iterable[ComputeQuotaResource | None], resources: InstanceResources) -> bool:
    if not key[1]:
        return resources.accelerators > 0 or any(row is not None and row.accelerators is not None for row in rows)
    return any(row is not None and (row.accelerators or row.count) for row in rows)


def _survives(number: Fraction) -> bool:
    """Say whether the API returns a number unchanged: it has 32 bits there."""
    return Fraction(struct.unpack("f", struct.pack("f", float(number)))[0]) == number
