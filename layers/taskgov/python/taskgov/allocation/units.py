"""Count an instance type in the unit of a share or a lease: instances, accelerators, vCPUs, GiB, or slices of GPUs."""

from fractions import Fraction

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import ACCELERATOR, Vector, fits, is_in_parts, need, row_of_parts
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU, mig_slices
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.policy.document import CapacityBasis
from taskgov.policy.measured import Measured, Unit
from taskgov.quantities import CPU, GIBIBYTE, MEMORY


def row_of(measured: Measured, amount: int) -> ComputeQuotaResource:
    """Return the row that gives `amount` in the unit of a share or a lease; what it does not name comes by ratio."""
    row = ComputeQuotaResource(instance_type=measured.instance_type)
    match measured.unit:
        case Unit.INSTANCES:
            return row.model_copy(update={"count": amount})
        case Unit.ACCELERATORS:
            return row.model_copy(update={"accelerators": amount})
        case Unit.VCPU:
            return row.model_copy(update={"vcpu": float(amount)})
        case Unit.MEMORY:
            return row.model_copy(update={"memory_in_gib": float(amount)})
        case Unit.PARTITION:
            partition = AcceleratorPartition(type=measured.accelerator_partition_type or "", count=amount)
            return row.model_copy(update={"accelerator_partition": partition})


def row_at_basis(measured: Measured, amount: int, capacity: TypeCapacity, basis: CapacityBasis) -> ComputeQuotaResource:
    """Return the row that gives `amount` of the type as the policy counts it.

    At basis `allocatable` every part is spelled out as the nodes really offer it: HyperPod would complete it by nominal
    numbers, which are more.
    """
    row, per_instance = row_of(measured, amount), capacity.per_instance
    resource, size = _main_resource(measured)
    if basis is CapacityBasis.INSTANCES or not per_instance:
        return row
    if measured.unit is Unit.INSTANCES:
        return row_of_parts(measured.instance_type, {r: n * amount for r, n in per_instance.items()})
    if not per_instance.get(resource):
        return row
    part = Fraction(amount * size, per_instance[resource])
    brought = {
        "vcpu": float(int(part * per_instance.get(CPU, 0) / 1000)),
        "memory_in_gib": float(int(part * per_instance.get(MEMORY, 0) / GIBIBYTE)),
    }
    return row.model_copy(update={name: n for name, n in brought.items() if getattr(row, name) is None})


def vector_of(row: ComputeQuotaResource, capacity: TypeCapacity | None) -> Vector | None:
    """Return the amounts that a row takes of the type. Whole instances count at the basis of the policy.

    None for parts of a type with unknown numbers.
    """
    if capacity is None:
        return None
    if row.count is not None and not is_in_parts(row):
        return {resource: amount * row.count for resource, amount in capacity.per_instance.items()}
    return need(row, capacity.resources)


def in_instances(row: ComputeQuotaResource, capacity: TypeCapacity) -> Fraction:
    """Return how many instances a row takes, by its largest resource."""
    per_instance = capacity.per_instance
    vector = vector_of(row, capacity) or {}
    return max((Fraction(n, per_instance[r]) for r, n in vector.items() if per_instance.get(r)), default=Fraction(0))


def most_units(measured: Measured, capacity: TypeCapacity, vector: Vector, basis: CapacityBasis) -> int:
    """Return the most whole units for which a vector has room, each with all that it brings by ratio."""
    resource, size = _main_resource(measured)
    if measured.unit is Unit.INSTANCES:
        per_instance = capacity.per_instance
        return max(min((vector.get(r, 0) // n for r, n in per_instance.items() if n), default=0), 0)
    most, low = max(vector.get(resource, 0), 0) // size if size else 0, 0
    if measured.unit is Unit.PARTITION:
        # A slice lies on one GPU: two of three sevenths fit on it, and a seventh stays free.
        most = vector.get(resource, 0) // MIG_SLICES_PER_GPU * (MIG_SLICES_PER_GPU // size) if size else 0
    while low < most:
        middle = (low + most + 1) // 2
        takes = vector_of(row_at_basis(measured, middle, capacity, basis), capacity)
        low, most = (middle, most) if takes is not None and fits(takes, vector) else (low, middle - 1)
    return max(low, 0)


def _main_resource(measured: Measured) -> tuple[str, int]:
    """Return the resource that a unit counts, and how much of it one unit is."""
    match measured.unit:
        case Unit.VCPU:
            return CPU, 1000
        case Unit.MEMORY:
            return MEMORY, GIBIBYTE
        case Unit.PARTITION:
            return ACCELERATOR, mig_slices(measured.accelerator_partition_type or "")
        case _:
            return ACCELERATOR, MIG_SLICES_PER_GPU
