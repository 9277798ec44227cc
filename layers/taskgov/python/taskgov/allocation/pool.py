"""The shared pool: a team without members that holds the unpromised capacity, so that every team can borrow it.

With the pool, the sum of quotas equals the usable capacity, and never exceeds it: the rest is rounded down to whole
units.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import Final

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.leases import Lending
from taskgov.allocation.parts import ACCELERATOR, Vector, is_in_parts, need, row_key, row_of_parts
from taskgov.allocation.plan import Reason
from taskgov.allocation.promises import Promise, today_rows
from taskgov.allocation.sources import Amounts, Cause, Trail, amounts_in
from taskgov.allocation.units import row_at_basis, vector_of
from taskgov.allocation.wording import capacity_words
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis
from taskgov.quantities import CPU, GIBIBYTE, MEMORY

UNKNOWN_PARTS: Final = "the resources of the type are not known"


def has_unknown(rows: Iterable[ComputeQuotaResource], capacity: TypeCapacity) -> bool:
    """Return whether any row cannot be compared. The rest for the pool is then unknown."""
    return any(need(row, capacity.resources) is None for row in rows)


def pool_claim(
    pool: Promise,
    capacity: TypeCapacity,
    left: Vector,
    lending: Lending,
    others: Iterable[ComputeQuotaResource],
    basis: CapacityBasis,
) -> Claim:
    """Return what the pool has of one type: `left` is what the promises leave, and `lending` what leases make of it.

    Whole instances where everybody has whole ones, otherwise what is left of each part. Where `others` hold what
    cannot be compared, the remainder is not known, and the pool stays as it is.
    """
    instance_type, rows = capacity.line.instance_type, list(others)
    if has_unknown(rows, capacity):
        row = today_rows(pool.holds).get((instance_type, "")) or ComputeQuotaResource(
            instance_type=instance_type, count=0
        )
        because = f"{UNKNOWN_PARTS}; left as it is"
        return Claim(pool.team, row, Reason.UNCHANGED, because, lambda: Trail().to(row, Cause.UNKNOWN_TYPE, because))
    words = f"remainder of {capacity_words(capacity.line)}"
    if basis is CapacityBasis.ALLOCATABLE or any(map(is_in_parts, rows)):
        row = row_of_parts(instance_type, lending.pool_left)
    else:
        row = ComputeQuotaResource(instance_type=instance_type, count=int(_instances(lending.pool_left, capacity)))
    leased = "".join(
        f", {'+' if given.lease.to == pool.team else '-'}{given.words(pool.team)}"
        for given in lending.given
        if given.side_of(pool.team)
    )
    tell = partial(_tell, pool.team, row, words, left, lending, capacity)
    return Claim(pool.team, row, Reason.SHARED_POOL, words + leased, tell)


def _tell(
    team: str, row: ComputeQuotaResource, words: str, left: Vector, lending: Lending, capacity: TypeCapacity
) -> Trail:
    """Describe what promises leave, what leases moved of it, and parts of units."""
    trail, stands = Trail().to(_amounts(left, row, capacity), Cause.POOL, words), dict(left)
    for given in lending.given:
        takes = vector_of(row_at_basis(given.lease, given.amount, capacity, capacity.basis), capacity) or {}
        for resource in stands:
            stands[resource] += given.side_of(team) * takes.get(resource, 0)
        trail = trail.to(_amounts(stands, row, capacity), Cause.LEASE, given.words(team))
    return trail.to(row, Cause.ROUNDING, "the remainder is less than a whole unit")


def _amounts(vector: Vector, like: ComputeQuotaResource, capacity: TypeCapacity) -> Amounts:
    """Return a vector in the units of a row."""
    if not is_in_parts(like):
        return {"Count": _instances(vector, capacity)}
    amounts = {
        "Accelerators": Fraction(vector.get(ACCELERATOR, 0), MIG_SLICES_PER_GPU),
        "VCpu": Fraction(vector.get(CPU, 0), 1000),
        "MemoryInGiB": Fraction(vector.get(MEMORY, 0), GIBIBYTE),
    }
    return {unit: amounts[unit] for unit in amounts_in(like)}


def _instances(vector: Vector, capacity: TypeCapacity) -> Fraction:
    """Return how many instances a vector has room for, with a fraction of one."""
    parts = (Fraction(vector.get(r, 0), n) for r, n in capacity.per_instance.items() if n)
    return min(parts, default=Fraction(0))


def largest_rows(rows: Iterable[ComputeQuotaResource], limit: int) -> list[ComputeQuotaResource]:
    """Return at most `limit` rows, the largest first: the API accepts no more in one quota."""
    ranked = sorted(rows, key=lambda row: (-(row.accelerators or row.count or 0), row_key(row)))
    return ranked[:limit]
