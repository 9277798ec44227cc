"""The new value of every governed quota in a plan, and the writes that are not made."""

from dataclasses import dataclass
from datetime import datetime

from taskgov.allocation.allocations import Allocation
from taskgov.allocation.governed import LeftAlone
from taskgov.allocation.sources import Cause
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.records import RefusedWrite


@dataclass(frozen=True, slots=True)
class Refused:
    """A write that is not made because it was refused."""

    refusal: RefusedWrite
    stays: Allocation | None = None
    """The quota as it stands; None for one that gets back what stood before its low write, and where `kept` says it."""
    kept: LeftAlone | None = None
    """A failed quota that stays, because it cannot be deleted or would not be created again."""
    is_wanted: bool = True
    """Whether it would be written, had it not been refused."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The new value of every governed quota, the failed ones to delete, and when the rest can continue."""

    allocations: tuple[Allocation, ...]
    stuck: tuple[ComputeQuota, ...]
    recheck_at: datetime | None = None
    kept: tuple[LeftAlone, ...] = ()
    """Failed quotas that limits keep."""
    refused: tuple[Refused, ...] = ()

    @property
    def left_alone(self) -> tuple[LeftAlone, ...]:
        """Failed quotas that stay, whatever keeps them."""
        return (*self.kept, *(write.kept for write in self.refused if write.kept is not None))

    def cause_of(self, left: LeftAlone) -> Cause:
        """Return why a quota stays unchanged."""
        if any(write.kept == left for write in self.refused):
            return Cause.REFUSED
        return Cause.EDIT_KEPT if left.is_edited else Cause.LEFT_ALONE
