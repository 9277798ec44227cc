"""The claim of one team on one instance type: the second of four forms that a quota has during planning.

| form | adds |
| --- | --- |
| `Promise` (`promises`) | to the document's words: the quota that holds them today, and its records |
| `Claim` | to a promise: one row in numbers, its floor, the reason and the sources of each number |
| `Allocation` (`allocations`) | to the claims of a team: the whole quota as the API takes it, with how it shares |
| `Change` (`plan`) | to an allocation that differs from the present quota: the write, its version and its wave |
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import row_key, row_of_parts
from taskgov.allocation.plan import Reason
from taskgov.allocation.sources import Amounts, Cause, Tell, Trail, amounts_in
from taskgov.allocation.units import vector_of
from taskgov.hyperpod.model import ComputeQuotaResource

FIELDS: Final = {"Count": "count", "Accelerators": "accelerators", "VCpu": "vcpu", "MemoryInGiB": "memory_in_gib"}
"""Unit of a row -> its field."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one team claims of one instance type: one row of its quota, and why it has these numbers.

    It begins as what the promise comes to. Capacity, leases, and the rows that a quota may have make it the same claim
    with another row.
    """

    team: str
    row: ComputeQuotaResource
    reason: Reason
    because: str
    """Where the numbers come from, in words."""
    tell: Tell = Trail
    """Where the row comes from, as sources that add up to it."""
    tier: int = 1
    """Tier: in a shortage, the highest number is cut first."""
    floor: Fraction = Fraction(0)
    """Floor, in instances: kept while any other team can be cut."""
    today: ComputeQuotaResource | None = None
    """The present row, without leased amounts."""
    nothing: str = ""
    """Why a share above zero comes to nothing; empty otherwise."""

    @property
    def key(self) -> str:
        """The team, and the MIG profile where the row is one of partitions."""
        return " ".join(filter(None, (self.team, row_key(self.row)[1])))

    def moved_to(self, row: ComputeQuotaResource, cause: Cause, because: str, capacity: TypeCapacity) -> "Claim":
        """Return the claim with another row, and with the cause that makes it another among its sources."""
        return replace(self, row=row, tell=lambda: self._told(row, cause, because, capacity))

    def _told(self, row: ComputeQuotaResource, cause: Cause, because: str, capacity: TypeCapacity) -> Trail:
        trail, before, after = self.tell(), amounts_in(self.row), amounts_in(row)
        if before and after and not after.keys() <= before.keys():
            # Units are added: what was said before is said again in parts. A row of nothing has no units.
            trail = _in_parts(trail, self.row, capacity)
        return trail.to(row, cause, because)


def _in_parts(trail: Trail, row: ComputeQuotaResource, capacity: TypeCapacity) -> Trail:
    """Return the trail of a row in parts; where it comes to nothing, by what one of its units is."""
    unit = next((unit for unit, amount in trail.amounts.items() if amount), None)
    if unit is not None:
        return trail.restated(unit, trail.amounts[unit], _parts_of(row, capacity))
    unit = next((unit for source in trail.sources for unit in source.amounts if unit in FIELDS), None)
    if unit is None:
        return Trail()
    single = ComputeQuotaResource(instance_type=row.instance_type).model_copy(update={FIELDS[unit]: 1})
    return trail.restated(unit, Fraction(1), _parts_of(single, capacity))


def _parts_of(row: ComputeQuotaResource, capacity: TypeCapacity) -> Amounts:
    """Return what a row gives, with every part written out. Slices of GPUs stay slices."""
    spelled = row_of_parts(row.instance_type, vector_of(row, capacity) or {})
    if row.accelerator_partition is not None:
        spelled = spelled.model_copy(update={"accelerators": None, "accelerator_partition": row.accelerator_partition})
    return amounts_in(spelled)
