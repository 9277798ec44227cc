"""Add an amount in any unit to a row of a quota, or remove it. Used to apply leases, and to remove them.

The row keeps its units if they can express the result exactly. Otherwise every part is written out, in whole vCPUs and
GiB. For example, 3 instances of 8 GPUs less 2 accelerators are 22 accelerators, with their vCPUs and memory.
"""

from collections.abc import Mapping
from fractions import Fraction

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import ACCELERATOR, Vector, add, is_in_parts, row_key, row_of_parts
from taskgov.allocation.units import row_at_basis, row_of, vector_of
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.measured import Measured
from taskgov.quantities import CPU, GIBIBYTE, MEMORY

Net = Mapping[str, int]
"""Instance type (and unit, where that is not instances: `Lease.place`) -> whole units that leases bring a team; below
zero: that they take from it."""


def without_leases(config: ComputeQuotaConfig, net: Net, capacities: Mapping[str, TypeCapacity]) -> ComputeQuotaConfig:
    """Return the config without leases: received amounts are removed, given amounts added back."""
    rows = {row_key(row): row for row in config.compute_quota_resources}
    # What was lent is put back first: a row that lent all that it had borrowed has nothing left to take off.
    for place, count in sorted(net.items(), key=lambda item: item[1] > 0):
        measured = Measured.at(place)
        capacity = capacities.get(measured.instance_type)
        amount = (
            row_at_basis(measured, abs(count), capacity, capacity.basis) if capacity else row_of(measured, abs(count))
        )
        row = rows.get(row_key(amount))
        if row is not None:
            rows[row_key(amount)] = moved(row, amount, capacity, out=count > 0)
        elif count < 0:
            rows[row_key(amount)] = amount
    unchanged = not any(net.values())
    return config if unchanged else config.model_copy(update={"compute_quota_resources": tuple(rows.values())})


def moved(
    row: ComputeQuotaResource, amount: ComputeQuotaResource, capacity: TypeCapacity | None, *, out: bool = False
) -> ComputeQuotaResource:
    """Return the row with `amount` more, or, with `out`, with so much less; nothing falls below zero.

    `amount` is in one unit (see `taskgov.allocation.units.row_at_basis`). Where the numbers of the type are not known,
    only whole instances can be moved: other rows are returned as they are.
    """
    sign = -1 if out else 1
    if not is_in_parts(row) and not is_in_parts(amount):
        return row.model_copy(update={"count": max((row.count or 0) + sign * (amount.count or 0), 0)})
    if row.accelerator_partition is not None and amount.accelerator_partition is not None:
        return _partitions_moved(row, amount, amount.accelerator_partition, capacity, sign)
    had, more = vector_of(row, capacity), vector_of(amount, capacity)
    if had is None or more is None:
        return row
    want = {r: max(n, 0) for r, n in add((had, {r: sign * n for r, n in more.items()})).items()}
    kept = _in_its_units(row, amount, more, sign)
    left = vector_of(kept, capacity) if kept is not None else None
    if kept is not None and left is not None and _nonzero(left) == _nonzero(want):
        return kept
    return row_of_parts(row.instance_type, want)


def _in_its_units(
    row: ComputeQuotaResource, amount: ComputeQuotaResource, more: Vector, sign: int
) -> ComputeQuotaResource | None:
    """Return the row with each amount that it gives moved; None where whole instances would get parts."""
    if row.count is not None and amount.count is None:
        return None
    numbers: dict[str, Fraction] = {
        "count": Fraction(amount.count or 0),
        "accelerators": Fraction(more.get(ACCELERATOR, 0), MIG_SLICES_PER_GPU),
        "vcpu": Fraction(more.get(CPU, 0), 1000),
        "memory_in_gib": Fraction(more.get(MEMORY, 0), GIBIBYTE),
    }
    given = {name: getattr(row, name) for name in numbers if getattr(row, name) is not None}
    becomes = {name: max(Fraction(str(value)) + sign * numbers[name], Fraction(0)) for name, value in given.items()}
    whole = {"count", "accelerators"} & becomes.keys()
    if any(number.denominator != 1 if name in whole else not _is_kept(number) for name, number in becomes.items()):
        return None
    return row.model_copy(
        update={name: int(value) if name in whole else float(value) for name, value in becomes.items()}
    )


def _partitions_moved(
    row: ComputeQuotaResource,
    amount: ComputeQuotaResource,
    partition: AcceleratorPartition,
    capacity: TypeCapacity | None,
    sign: int,
) -> ComputeQuotaResource:
    """Move slices of the row's own profile, with their part of the vCPUs and the memory that the row states."""
    has = row.accelerator_partition
    count = 0 if has is None else has.count
    slices = max(count + sign * partition.count, 0)
    brings = vector_of(amount, capacity) or {}
    stated = {"vcpu": Fraction(brings.get(CPU, 0), 1000), "memory_in_gib": Fraction(brings.get(MEMORY, 0), GIBIBYTE)}
    parts = {
        name: _as_kept(max(Fraction(str(getattr(row, name))) + sign * number, Fraction(0)))
        for name, number in stated.items()
        if getattr(row, name) is not None
    }
    becomes = AcceleratorPartition(type=partition.type, count=slices)
    return row.model_copy(update={"accelerator_partition": becomes, **parts})


def _is_kept(number: Fraction) -> bool:
    """Return whether the API returns a number unchanged: it stores 32-bit floats, with six digits."""
    return number.denominator == 1 or Fraction(f"{float(number):.6g}") == number


def _as_kept(number: Fraction) -> float:
    """Return a number that the API returns unchanged, rounded down to a whole one if necessary."""
    return float(number) if _is_kept(number) else float(int(number))


def _nonzero(vector: Vector) -> dict[str, int]:
    return {resource: amount for resource, amount in vector.items() if amount}
