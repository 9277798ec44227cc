"""The amounts that a promise takes from the capacity of its instance type, resource by resource.

Promises of whole instances and of parts (2 accelerators, 48 vCPU) use the same machines. They are compared as vectors
of amounts. Amounts that a promise leaves out are completed by ratio, as HyperPod does (`taskgov.hyperpod.ratio`). GPUs
are counted in **sevenths**, so that a partition (MIG) of a GPU is a whole number.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU, InstanceResources, mig_slices
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.hyperpod.ratio import Amounts, complete
from taskgov.quantities import CPU, GIBIBYTE, MEMORY, is_accelerator, is_mig

Vector = Mapping[str, int]
"""Resource -> amount. Accelerators of all kinds are one resource, counted in sevenths."""

RowKey = tuple[str, str]
"""Instance type and MIG profile, empty for a row without partitions."""

ACCELERATOR: Final = "accelerator"
INSTANCE: Final = "instance"
"""Stands for all resources of a type with unknown numbers, on which only whole instances can be compared."""


def row_key(row: ComputeQuotaResource) -> RowKey:
    """Return the key of a row in a quota: a type may appear once, and once for each MIG profile."""
    return row.instance_type, row.accelerator_partition.type if row.accelerator_partition else ""


def whole_instance(resources: InstanceResources | None) -> Vector:
    """Return the vector of one instance; only `INSTANCE` for a type with unknown numbers."""
    return {INSTANCE: 1} if resources is None else _vector(resources.real_amounts())


def need(row: ComputeQuotaResource, resources: InstanceResources | None) -> Vector | None:
    """Return what a row of a quota takes, or None when parts were promised of a type whose numbers are not known.

    vCPUs that the row does not give are those that the machines have: half as many with one thread per core, although
    HyperPod completes by the type's nominal number then too (seen in a field report, not documented).

    Example:
        >>> from taskgov.hyperpod.instance_types import KNOWN_TYPES
        >>> row = ComputeQuotaResource(instance_type="ml.g6.12xlarge", accelerators=2, vcpu=48)
        >>> taken = need(row, KNOWN_TYPES["ml.g6.12xlarge"])
        >>> taken["accelerator"] / 7, taken["cpu"], taken["memory"] // 2**30
        (2.0, 48000, 192)

    """
    if resources is None:
        return {INSTANCE: row.count} if row.count is not None and not is_in_parts(row) else None
    if row.accelerator_partition is None:
        return _need(row.count, row.accelerators, row.vcpu, row.memory_in_gib, resources)
    return _vector(_completed(row, resources))


def offered(allocatable: Mapping[str, int]) -> dict[str, int]:
    """Return the vector of what a node offers."""
    return _vector(allocatable)


def is_in_parts(row: ComputeQuotaResource) -> bool:
    """Return whether a row promises parts of instances."""
    return any(part is not None for part in (row.accelerators, row.vcpu, row.memory_in_gib, row.accelerator_partition))


def add(vectors: Iterable[Vector]) -> dict[str, int]:
    """Return the sum of vectors, resource by resource."""
    total: dict[str, int] = {}
    for vector in vectors:
        for resource, amount in vector.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def subtract(left: Vector, right: Vector) -> dict[str, int]:
    """Return `left` less `right`, by the resources of `left`; negative where more is taken than there is."""
    return {resource: amount - right.get(resource, 0) for resource, amount in left.items()}


def difference(had: Vector, has: Vector) -> dict[str, int]:
    """Return `has` minus `had`; negative where it has less."""
    return {key: has.get(key, 0) - had.get(key, 0) for key in {*had, *has}}


def above(has: Vector, wanted: Vector) -> dict[str, int]:
    """Return what `has` exceeds `wanted` by, for the resources of `has`; at least 0."""
    return {key: max(amount - wanted.get(key, 0), 0) for key, amount in has.items()}


def has_room(room: Vector, more: Vector) -> bool:
    """Return whether there is room for all increases. Decreases need no room."""
    return all(amount <= room.get(key, 0) for key, amount in more.items() if amount > 0)


def fits(vector: Vector, into: Vector) -> bool:
    """Return whether every resource of `vector` is fully available."""
    return all(amount <= into.get(resource, 0) for resource, amount in vector.items() if amount)


def accelerators_of(vector: Vector) -> float:
    """Return the accelerators of a vector as a person counts them: partitions in sevenths."""
    sevenths = vector.get(ACCELERATOR, 0)
    return sevenths // 7 if sevenths % 7 == 0 else sevenths / 7


def together(left: ComputeQuotaResource, right: ComputeQuotaResource) -> ComputeQuotaResource:
    """Return two rows of one type and profile as one: each amount that either gives, added up.

    Example:
        >>> rows = [ComputeQuotaResource(instance_type="ml.p5.48xlarge", count=count) for count in (2, 3)]
        >>> together(*rows).count
        5

    """
    fields = ("count", "accelerators", "vcpu", "memory_in_gib")
    given = {name: [amount for row in (left, right) if (amount := getattr(row, name)) is not None] for name in fields}
    update: dict[str, object] = {name: sum(amounts) for name, amounts in given.items() if amounts}
    partitions = [row.accelerator_partition for row in (left, right) if row.accelerator_partition is not None]
    if partitions:
        count = sum(partition.count for partition in partitions)
        update["accelerator_partition"] = AcceleratorPartition(type=partitions[0].type, count=count)
    return left.model_copy(update=update)


def scaled(row: ComputeQuotaResource, part: int, whole: int) -> ComputeQuotaResource:
    """Return the row with every given amount times part/whole, rounded down to whole units."""
    partition = row.accelerator_partition
    return row.model_copy(
        update={
            "count": _down(row.count, part, whole),
            "accelerators": _down(row.accelerators, part, whole),
            "vcpu": _down(row.vcpu, part, whole),
            "memory_in_gib": _down(row.memory_in_gib, part, whole),
            "accelerator_partition": partition
            and AcceleratorPartition(type=partition.type, count=partition.count * part // whole),
        }
    )


def row_of_parts(instance_type: str, vector: Vector) -> ComputeQuotaResource:
    """Return the row that promises just `vector`, in whole units, every part spelled out."""
    accelerators = vector.get(ACCELERATOR)
    return ComputeQuotaResource(
        instance_type=instance_type,
        accelerators=None if accelerators is None else max(accelerators // 7, 0),
        vcpu=float(max(vector.get(CPU, 0) // 1000, 0)),
        memory_in_gib=float(max(vector.get(MEMORY, 0) // GIBIBYTE, 0)),
    )


def _down(amount: float | None, part: int, whole: int) -> int | None:
    return None if amount is None else int(amount * part // whole)


@lru_cache(maxsize=8192)
def _need(
    count: int | None, accelerators: int | None, vcpu: float | None, memory: float | None, resources: InstanceResources
) -> Vector:
    row = ComputeQuotaResource(
        instance_type="", count=count, accelerators=accelerators, vcpu=vcpu, memory_in_gib=memory
    )
    return _vector(_completed(row, resources))


def _completed(row: ComputeQuotaResource, resources: InstanceResources) -> Amounts:
    amounts = complete(row, resources)
    if row.vcpu is None:
        amounts[CPU] = amounts[CPU] * resources.real_vcpu // resources.vcpu
    return amounts


def _vector(amounts: Amounts | Mapping[str, int]) -> dict[str, int]:
    """Keep what capacity is compared by; a resource that one instance does not have stays away."""
    vector = {resource: amount for resource, amount in amounts.items() if resource in {CPU, MEMORY} and amount}
    sevenths = sum(amount * _sevenths(resource) for resource, amount in amounts.items() if is_accelerator(resource))
    return {ACCELERATOR: sevenths, **vector} if sevenths else vector


def _sevenths(resource: str) -> int:
    return mig_slices(resource.removeprefix("nvidia.com/")) if is_mig(resource) else MIG_SLICES_PER_GPU
