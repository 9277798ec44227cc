"""The numbers that describe a row of a quota, and the amounts that one unit of each brings.

A row uses one field (`Count`, `Accelerators`, a partition, ...) if that describes it completely. Otherwise
accelerators, partition, vCPU and memory are written out. `taskgov.allocation.between` and `taskgov.allocation.lines`
change rows by these numbers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, Any, Final

from taskgov.allocation.parts import ACCELERATOR, INSTANCE, is_in_parts, row_key
from taskgov.allocation.quota_deltas import THOUSANDTHS
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU, mig_slices
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, EFA, GIBIBYTE, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov.allocation.parts import RowKey
    from taskgov.hyperpod.instance_types import InstanceResources

Rows = tuple[ComputeQuotaResource, ...]

FIELDS: Final = ("count", "accelerator_partition", "accelerators", "vcpu", "memory_in_gib")
"""What a row can give, in the order in which a single one of them is looked for."""

FLOATS: Final = frozenset({"vcpu", "memory_in_gib"})


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one row of several configs is, in the fields by which all of them can be said."""

    by_field: tuple[tuple[str, tuple[Fraction, ...]], ...]
    by_ratio: bool
    """The one field brings the rest; otherwise all is written out."""


def numbers_of(
    key: RowKey, configs: Sequence[Rows], resources: InstanceResources | None, *, is_alone: bool
) -> Numbers | None:
    """Return what one row is in each of several configs; None for parts of a type with unknown numbers."""
    own = [row_of(key, rows) for rows in configs]
    if resources is None:
        if any(row is not None and is_in_parts(row) for row in own):
            return None
        return Numbers((("count", tuple(Fraction(row.count or 0 if row else 0) for row in own)),), by_ratio=True)
    # What one of several rows brings by ratio would get into the way of the others: they are one sum.
    single = _single_field(own, resources) if is_alone else None
    if single is not None:
        found = tuple(_value_in(row, single, resources) or Fraction(0) for row in own)
        return Numbers(((single, found),), by_ratio=True)
    fields = ["accelerators"] if _gives_accelerators(key, own, resources) else []
    fields += ["accelerator_partition"] if key[1] else []
    written = [_written_out(row, key[1], resources) for row in own]
    return Numbers(
        tuple((name, tuple(row[name] for row in written)) for name in (*fields, "vcpu", "memory_in_gib")),
        by_ratio=False,
    )


def _taken(
    name: str, profile: str, resources: InstanceResources, amounts: Mapping[str, Fraction]
) -> Mapping[str, Fraction]:
    taken = {resource: amount for resource, amount in amounts.items() if resource in {CPU, MEMORY}}
    if CPU in taken and name != "vcpu":
        taken[CPU] = taken[CPU] * resources.real_vcpu / resources.vcpu
    slices = mig_slices(profile) if profile else 0
    devices = amounts.get(resources.accelerator_resource, Fraction(0)) * MIG_SLICES_PER_GPU
    partitions = amounts.get(f"nvidia.com/{profile}", Fraction(0)) * slices
    if devices or partitions:
        taken[ACCELERATOR] = devices + partitions
    return taken


@lru_cache(maxsize=1024)
def amounts_of_one(name: str, profile: str, resources: InstanceResources, *, by_ratio: bool) -> Mapping[str, Fraction]:
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
    """Return the number of the one field that describes the row completely; None if there is none."""
    if row is None:
        return Fraction(0)
    partition = row.accelerator_partition
    if name == "count" and not is_in_parts(row):
        return Fraction(row.count or 0)
    if (partition is None) == (name == "accelerator_partition"):
        return None
    amounts = complete(row, resources)
    single = amounts_of_one(name, partition.type if partition else "", resources, by_ratio=True)
    own = f"nvidia.com/{partition.type}" if partition else _RESOURCE_OF.get(name, resources.accelerator_resource)
    if name == "count" and not single.get(own):
        own = CPU  # a type without accelerators
    if not single.get(own):
        return None
    value = Fraction(amounts.get(own, 0)) / single[own]
    if name not in FLOATS and value.denominator != 1:
        return None
    names = ({*amounts} | {*single}) - {EFA}
    same = all(floor(value * single.get(resource, 0)) == amounts.get(resource, 0) for resource in names)
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


def survives(number: Fraction) -> bool:
    """Return whether the API returns a number unchanged: it has 32 bits there."""
    return Fraction(struct.unpack("f", struct.pack("f", float(number)))[0]) == number


def made(key: RowKey, values: Mapping[str, Fraction]) -> ComputeQuotaResource:
    """Return the row that gives these numbers."""
    name, profile = key
    fields: dict[str, Any] = {name: float(value) if name in FLOATS else int(value) for name, value in values.items()}
    if profile:
        count = fields.pop("accelerator_partition", 0)
        fields["accelerator_partition"] = AcceleratorPartition(type=profile, count=count)
    return ComputeQuotaResource(instance_type=name, **fields)


def row_of(key: RowKey, rows: Rows) -> ComputeQuotaResource | None:
    """Return the row of a type and profile, None where there is none."""
    return next((row for row in rows if row_key(row) == key), None)


def taken_by_one(
    key: RowKey, name: str, resources: InstanceResources | None, numbers: Numbers
) -> Mapping[str, Fraction]:
    """Return what one of a field takes of each resource in which sums are compared."""
    if resources is None:
        return {INSTANCE: Fraction(1)}
    amounts = amounts_of_one(name, key[1], resources, by_ratio=numbers.by_ratio)
    return _taken(name, key[1], resources, amounts)
