"""What one team is to have in one row of its quota: what the allocation says, before it becomes a quota."""

from dataclasses import dataclass, replace

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import row_of_parts
from taskgov.allocation.plan import Reason
from taskgov.allocation.sources import Cause, Tell, Trail, amounts_in
from taskgov.allocation.units import vector_of
from taskgov.hyperpod.model import ComputeQuotaResource


@dataclass(frozen=True, slots=True)
class Holding:
    """What one team is to have in one row of its quota, and why; `tell` says where the row comes from."""

    team: str
    row: ComputeQuotaResource
    reason: Reason
    because: str
    tell: Tell

    def moved_to(self, row: ComputeQuotaResource, cause: Cause, because: str, capacity: TypeCapacity) -> "Holding":
        """Return the holding with another row, and with the cause that makes it another among its sources."""
        return replace(self, row=row, tell=lambda: self._told(row, cause, because, capacity))

    def _told(self, row: ComputeQuotaResource, cause: Cause, because: str, capacity: TypeCapacity) -> Trail:
        trail, before, after = self.tell(), amounts_in(self.row), amounts_in(row)
        if before and after and before.keys() != after.keys():
            # The units change: what was said before is said again in parts. A row of nothing has no units.
            spelled = row_of_parts(row.instance_type, vector_of(self.row, capacity) or {})
            trail = trail.restated(amounts_in(spelled))
        return trail.to(row, cause, because)
