"""The shared pool: a team of nobody that holds what no promise takes, for all to borrow.

It makes the sum of quotas equal to the usable capacity, and never more: what is left is rounded down to whole units.
"""

from collections.abc import Iterable

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import Vector, is_in_parts, need, row_key, row_of_parts
from taskgov.allocation.plan import Reason
from taskgov.allocation.standing import TeamPromise, today_rows
from taskgov.allocation.wording import capacity_words
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis


def pool_row(
    pool: TeamPromise,
    capacity: TypeCapacity,
    left: Vector,
    others: Iterable[ComputeQuotaResource],
    basis: CapacityBasis,
) -> tuple[ComputeQuotaResource, Reason, str]:
    """Return the pool's row on one type, its reason, and the sentence about it.

    Whole instances where everybody has whole ones, otherwise what is left of each part. Where `others` hold what
    cannot be compared, the remainder is not known, and the pool stays as it is.
    """
    instance_type, rows = capacity.line.instance_type, list(others)
    if any(need(row, capacity.resources) is None for row in rows):
        today = today_rows(pool.holds).get((instance_type, ""))
        row = today or ComputeQuotaResource(instance_type=instance_type, count=0)
        return row, Reason.UNCHANGED, "the resources of the type are not known; left as it is"
    words = f"remainder of {capacity_words(capacity.line)}"
    if basis is CapacityBasis.ALLOCATABLE or any(map(is_in_parts, rows)):
        return row_of_parts(instance_type, left), Reason.SHARED_POOL, words
    count = min((left[r] // n for r, n in capacity.per_instance.items() if n), default=0)
    return ComputeQuotaResource(instance_type=instance_type, count=count), Reason.SHARED_POOL, words


def largest_rows(rows: Iterable[ComputeQuotaResource], limit: int) -> list[ComputeQuotaResource]:
    """Return at most `limit` rows, those that hold most first in line: the API takes no more in one quota."""
    ranked = sorted(rows, key=lambda row: (-(row.accelerators or row.count or 0), row_key(row)))
    return ranked[:limit]
