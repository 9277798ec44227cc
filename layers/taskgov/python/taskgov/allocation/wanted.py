"""What every governed quota is to become in this plan, and what of it is not written."""

from dataclasses import dataclass
from datetime import datetime

from taskgov.allocation.desired import Desired
from taskgov.allocation.sources import Cause
from taskgov.allocation.standing import Kept
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import RefusedWrite


@dataclass(frozen=True, slots=True)
class Refused:
    """A write that is not made because it was refused."""

    refusal: RefusedWrite
    stays: Desired | None = None
    """The quota as it stands; None for one that gets back what stood before its low write, and where `kept` says it."""
    kept: Kept | None = None
    """A failed quota that stays, because it cannot be deleted or would not be created again."""
    is_wanted: bool = True
    """Whether it would be written, had it not been refused."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What every governed quota is to become now, which failed ones are deleted, and when the rest can go on."""

    desired: tuple[Desired, ...]
    stuck: tuple[ComputeQuota, ...]
    recheck_at: datetime | None = None
    kept: tuple[Kept, ...] = ()
    """Failed quotas that limits do not let go."""
    refused: tuple[Refused, ...] = ()

    @property
    def left_alone(self) -> tuple[Kept, ...]:
        """Failed quotas that stay, whatever keeps them."""
        return (*self.kept, *(each.kept for each in self.refused if each.kept is not None))

    def cause_of(self, kept: Kept) -> Cause:
        """Return why a quota stays as it is."""
        if any(each.kept == kept for each in self.refused):
            return Cause.REFUSED
        return Cause.EDIT_KEPT if kept.is_edited else Cause.LEFT_ALONE
