"""Count the GPUs that change hands, for `approveAbove.changedGpus` and `minimumQuota`.

Accelerators of every kind count, by instance type; partitions (MIG) count in sevenths of a GPU. A decrease on one type
never cancels an increase on another: 8 GPUs of p5 for 8 of g5 count as 8, like a move of 8 from team a to b.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.goals import NOTHING, Goal
from taskgov.allocation.parts import ACCELERATOR, need
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU, mig_slices
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource

Capacities = Mapping[str, TypeCapacity]
Gpus = dict[str, Fraction]
"""Accelerators by instance type."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """GPUs that change hands, and the types for which that is unknown."""

    gpus: Fraction
    unknown: tuple[str, ...] = ()


def exchange(goals: Iterable[Goal], capacities: Capacities) -> Exchange:
    """Return the greater of all decreases and all increases, each summed over the instance types.

    A deleted quota decreases to zero, and increases to what is created again in its place.
    """
    given = taken = Fraction(0)
    unknown: set[str] = set()
    for goal in goals:
        for before, after in (
            ((goal.stands, NOTHING), (NOTHING, goal.after)) if goal.is_deleted else ((goal.stands, goal.after),)
        ):
            had, has = gpus_by_type(before, capacities), gpus_by_type(after, capacities)
            moves = [has.get(name, Fraction(0)) - had.get(name, Fraction(0)) for name in {*had, *has}]
            given -= sum(move for move in moves if move < 0)
            taken += sum(move for move in moves if move > 0)
            unknown |= uncounted(before, after, capacities)
    return Exchange(max(given, taken), tuple(sorted(unknown)))


def gpus_by_type(config: ComputeQuotaConfig, capacities: Capacities) -> Gpus:
    """Return the accelerators of a quota; for a type with unknown numbers, those that its rows name."""
    gpus: Gpus = {}
    for row in config.compute_quota_resources:
        capacity = capacities.get(row.instance_type)
        resources = capacity.resources if capacity else None
        sevenths = _named(row) if resources is None else (need(row, resources) or {}).get(ACCELERATOR, 0)
        gpus[row.instance_type] = gpus.get(row.instance_type, Fraction(0)) + Fraction(sevenths, MIG_SLICES_PER_GPU)
    return gpus


def _named(row: ComputeQuotaResource) -> int:
    partition = row.accelerator_partition
    slices = partition.count * mig_slices(partition.type) if partition else 0
    return (row.accelerators or 0) * MIG_SLICES_PER_GPU + slices


def uncounted(before: ComputeQuotaConfig, after: ComputeQuotaConfig, capacities: Capacities) -> set[str]:
    """Return the unknown types on which a change has an unknown number of GPUs.

    Named accelerators and partitions have a known number. Whole instances, vCPUs and memory may have any.
    """
    had, has = (_parts_of_unknown(config, capacities) for config in (before, after))
    return {name for name in {*had, *has} if had.get(name) != has.get(name)}


def _parts_of_unknown(config: ComputeQuotaConfig, capacities: Capacities) -> dict[str, list[tuple[float, ...]]]:
    """Return the rows of unknown types without named accelerators, in a fixed order."""
    parts: dict[str, list[tuple[float, ...]]] = {}
    for row in config.compute_quota_resources:
        known = row.instance_type in capacities and capacities[row.instance_type].resources is not None
        given = row.count or 0, row.vcpu or 0.0, row.memory_in_gib or 0.0
        is_named = row.accelerators is not None or (row.accelerator_partition is not None and not row.count)
        if not known and not is_named and any(given):
            parts.setdefault(row.instance_type, []).append(given)
    return {name: sorted(amounts) for name, amounts in parts.items()}
