"""How many GPUs change hands? What `approveAbove.changedGpus` and `minimumQuota` count.

Accelerators of every kind count, by instance type; partitions (MIG) in sevenths of a GPU. What a quota gives of one
type is never netted with what it takes of another: 8 GPUs of p5 for 8 of g5 are 8, as is a move of 8 from a to b.
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
    """GPUs that change hands, and the types of which nobody knows how many those are."""

    gpus: Fraction
    unknown: tuple[str, ...] = ()


def exchange(goals: Iterable[Goal], capacities: Capacities) -> Exchange:
    """Return the greater of all that quotas give and all that they take, each summed over the instance types.

    A quota that is deleted gives all that it holds, and takes what is created again in its stead.
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
            unknown |= _uncounted(before, after, capacities)
    return Exchange(max(given, taken), tuple(sorted(unknown)))


def gpus_by_type(config: ComputeQuotaConfig, capacities: Capacities) -> Gpus:
    """Return the accelerators of a quota; of a type whose numbers nobody knows those that its rows name."""
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


def _uncounted(before: ComputeQuotaConfig, after: ComputeQuotaConfig, capacities: Capacities) -> set[str]:
    """Return the unknown types of which whole instances change hands: nobody can say how many GPUs those are."""
    had, has = _instances(before), _instances(after)
    moved = {name for name in {*had, *has} if had.get(name, 0) != has.get(name, 0)}
    return {name for name in moved if name not in capacities or capacities[name].resources is None}


def _instances(config: ComputeQuotaConfig) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in config.compute_quota_resources:
        counts[row.instance_type] = counts.get(row.instance_type, 0) + (row.count or 0)
    return counts
