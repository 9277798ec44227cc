"""Rows, vectors and whole units of shares and leases, at both bases."""

from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.capacity import TypeCapacity, count_capacity
from taskgov.allocation.units import in_instances, most_units, row_at_basis, row_of, vector_of
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis, CapacityRules
from taskgov.policy.measured import Measured
from taskgov.quantities import CPU, GIBIBYTE, MEMORY
from tests.allocation.limits_world import UNKNOWN
from tests.allocation.world import C5, NOW, P5, nodes

MIG = "mig-1g.10gb"
THREE = "mig-3g.40gb"
GPU = "accelerator"
OFFER = {"nvidia.com/gpu": 8, "cpu": 180_000, "memory": 2_000 * GIBIBYTE}
UNITS = {
    "instances": {},
    "accelerators": {"unit": "accelerators"},
    "vCPUs": {"unit": "vcpu"},
    "GiB": {"unit": "memoryInGiB"},
    "slices": {"unit": "acceleratorPartition", "acceleratorPartitionType": MIG},
    "slices of three": {"unit": "acceleratorPartition", "acceleratorPartitionType": THREE},
}


def measured(unit: str, instance_type: str = P5) -> Measured:
    return Measured.model_validate({"instanceType": instance_type, **UNITS[unit]})


def capacity(
    instance_type: str = P5, basis: CapacityBasis = CapacityBasis.INSTANCES, machines: int = 2
) -> TypeCapacity:
    offer = OFFER if instance_type == P5 else {}
    [found] = count_capacity(
        nodes(machines, instance_type, allocatable=offer), CapacityRules(basis=basis), NOW, InstanceTypeTable()
    ).values()
    return found


@pytest.mark.parametrize(
    ("unit", "amount", "want"),
    [
        ("instances", 2, {"Count": 2}),
        ("accelerators", 4, {"Accelerators": 4}),
        ("vCPUs", 45, {"VCpu": 45.0}),
        ("GiB", 500, {"MemoryInGiB": 500.0}),
        ("slices", 5, {"AcceleratorPartition": {"Type": MIG, "Count": 5}}),
    ],
)
def test_at_basis_instances_a_row_says_what_was_counted(unit: str, amount: int, want: dict[str, Any]) -> None:
    one = measured(unit)
    row = row_of(one, amount)
    assert row.to_api() == {"InstanceType": P5, **want}
    assert row_at_basis(one, amount, capacity(), CapacityBasis.INSTANCES) == row


@pytest.mark.parametrize(
    ("unit", "amount", "want"),
    [
        ("instances", 2, {"Accelerators": 16, "VCpu": 360.0, "MemoryInGiB": 4000.0}),
        ("accelerators", 2, {"Accelerators": 2, "VCpu": 45.0, "MemoryInGiB": 500.0}),
        ("accelerators", 1, {"Accelerators": 1, "VCpu": 22.0, "MemoryInGiB": 250.0}),
        ("vCPUs", 45, {"VCpu": 45.0, "MemoryInGiB": 500.0}),
        ("GiB", 500, {"VCpu": 45.0, "MemoryInGiB": 500.0}),
        ("slices", 14, {"AcceleratorPartition": {"Type": MIG, "Count": 14}, "VCpu": 45.0, "MemoryInGiB": 500.0}),
    ],
)
def test_at_basis_allocatable_a_row_spells_out_its_part_of_what_nodes_offer(
    unit: str, amount: int, want: dict[str, Any]
) -> None:
    there = capacity(basis=CapacityBasis.ALLOCATABLE)
    row = row_at_basis(measured(unit), amount, there, CapacityBasis.ALLOCATABLE)
    assert row.to_api() == {"InstanceType": P5, **want}


def test_where_there_is_nothing_to_have_a_part_of_a_row_says_what_was_counted() -> None:
    none = capacity(basis=CapacityBasis.ALLOCATABLE, machines=2, instance_type=C5)
    gpus = measured("accelerators", C5)
    assert row_at_basis(gpus, 3, none, CapacityBasis.ALLOCATABLE) == row_of(gpus, 3)


def test_what_a_row_takes_and_how_many_instances_that_is() -> None:
    there = capacity()
    two = ComputeQuotaResource(instance_type=P5, count=2)
    assert vector_of(two, there) == {GPU: 112, CPU: 384_000, MEMORY: 4096 * GIBIBYTE}
    assert in_instances(two, there) == 2
    half = ComputeQuotaResource(instance_type=P5, accelerators=2, vcpu=96.0)
    assert in_instances(half, there) == Fraction(1, 2)
    assert vector_of(two, None) is None
    unknown = ComputeQuotaResource(instance_type=UNKNOWN, accelerators=2)
    assert vector_of(unknown, capacity(UNKNOWN)) is None
    assert in_instances(unknown, capacity(UNKNOWN)) == 0


MACHINE = {GPU: 56, CPU: 192_000, MEMORY: 2048 * GIBIBYTE}
MOST = {
    "no machine of nothing": ("instances", {}, 0),
    "one machine of less than two": ("instances", {**MACHINE, GPU: 112, CPU: 383_999}, 1),
    "two machines": ("instances", {resource: 2 * amount for resource, amount in MACHINE.items()}, 2),
    "none where less than nothing is left": ("instances", {**MACHINE, GPU: -56}, 0),
    "all GPUs of a machine": ("accelerators", MACHINE, 8),
    "one GPU exactly": ("accelerators", {GPU: 7, CPU: 24_000, MEMORY: 256 * GIBIBYTE}, 1),
    "no GPU of six sevenths": ("accelerators", {**MACHINE, GPU: 6}, 0),
    "no GPU where less than none is left": ("accelerators", {**MACHINE, GPU: -7}, 0),
    "GPUs for which the vCPUs do": ("accelerators", {**MACHINE, CPU: 71_999}, 2),
    "vCPUs with the memory that they bring": ("vCPUs", {**MACHINE, MEMORY: 1024 * GIBIBYTE}, 96),
    "all vCPUs": ("vCPUs", MACHINE, 192),
    "GiB with the vCPUs that they bring": ("GiB", {**MACHINE, CPU: 96_000}, 1024),
    "all GiB": ("GiB", MACHINE, 2048),
    "slices of whole GPUs": ("slices", MACHINE, 56),
    "slices of three, two on each GPU": ("slices of three", MACHINE, 16),
    "no slices on what is no whole GPU": ("slices", {**MACHINE, GPU: 13}, 7),
}


@pytest.mark.parametrize(("unit", "vector", "want"), MOST.values(), ids=MOST.keys())
def test_the_most_units_for_which_there_is_room(unit: str, vector: dict[str, int], want: int) -> None:
    assert most_units(measured(unit), capacity(), vector, CapacityBasis.INSTANCES) == want


def test_of_the_unknown_there_is_no_room() -> None:
    there = capacity(UNKNOWN)
    assert most_units(measured("accelerators", UNKNOWN), there, there.usable, CapacityBasis.INSTANCES) == 0
