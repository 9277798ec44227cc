"""The sources of a quota's numbers: each cause with the amount that it added or removed.

The allocation keeps a `Trail` for each row. Each step adds its difference to the row before it, with its cause, so the
sources of a row always sum to it, unit by unit. `taskgov explain --team` shows them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from taskgov.allocation.wording import given_amounts
from taskgov.hyperpod.model import ComputeQuotaResource

Amounts = Mapping[str, Fraction]
"""Unit of a row (`Count`, `Accelerators`, `VCpu`, `MemoryInGiB` or a MIG profile) -> amount; may be a fraction."""


class Cause(StrEnum):
    """Causes that raise or lower a quota: stable tokens."""

    PROMISE = "promise"
    SHARE = "share"
    FLOOR = "floor"
    CEILING = "ceiling"
    BOUNDS_OF_OTHERS = "bounds-of-others"
    """Floors and ceilings of other teams."""
    ROUNDING = "rounding"
    SHORTAGE = "shortage"
    INCIDENT = "incident"
    DEMAND = "demand"
    LEASE = "lease"
    EDIT_KEPT = "edit-kept"
    EDIT_ADOPTED = "edit-adopted"
    LEFT_ALONE = "left-alone"
    NO_NODES = "no-nodes"
    UNKNOWN_TYPE = "unknown-type"
    POOL = "shared-pool"
    LIMIT = "limit"
    """What `onLimit: partial` holds back."""
    NOT_WRITTEN = "not-written"
    """No wave of the plan can write the quota (`no-room`, `unknown-instance-type`): it stays as it is."""
    REFUSED = "refused"
    """The write of the quota was refused, and is not tried again for a while."""
    REFUSED_TO_ANOTHER = "refused-to-another"
    """The write of another quota was refused: a kept amount is not needed there, or a missing one is not freed."""
    NO_ROW = "no-row"
    """A quota has no more than 15 rows."""


@dataclass(frozen=True, slots=True)
class Source:
    """The amount of one cause, in the units of the row; negative if it lowers the row."""

    cause: Cause
    amounts: Amounts
    because: str


@dataclass(frozen=True, slots=True)
class Trail:
    """The way to a row: its sources, in the order in which they were applied."""

    sources: tuple[Source, ...] = ()

    @property
    def amounts(self) -> Amounts:
        """The sum of the sources."""
        total: dict[str, Fraction] = {}
        for source in self.sources:
            for unit, amount in source.amounts.items():
                total[unit] = total.get(unit, Fraction(0)) + amount
        return total

    def to(self, end: ComputeQuotaResource | Amounts, cause: Cause, because: str) -> "Trail":
        """Return the trail extended to a row (or amounts) because of a cause; the same trail when nothing moves."""
        stands, becomes = self.amounts, amounts_in(end) if isinstance(end, ComputeQuotaResource) else end
        moved = {
            unit: difference
            for unit in (*becomes, *(unit for unit in stands if unit not in becomes))
            if (difference := becomes.get(unit, Fraction(0)) - stands.get(unit, Fraction(0)))
        }
        return Trail((*self.sources, Source(cause, moved, because))) if moved else self

    def restated(self, unit: str, amount: Fraction, end: Amounts) -> "Trail":
        """Return the same sources in other units: `amount` of `unit`, which is not 0, is `end` in them."""
        parts = ((source, source.amounts.get(unit, Fraction(0)) / amount) for source in self.sources)
        return Trail(
            tuple(
                Source(source.cause, {name: value * part for name, value in end.items()}, source.because)
                for source, part in parts
                if part
            )
        )


Tell = Callable[[], Trail]
"""Where a row comes from; computed for one team at a time, while every plan makes all rows."""


def amounts_in(row: ComputeQuotaResource) -> dict[str, Fraction]:
    """Return the amounts that a row gives, by unit, as the decimals that a person wrote."""
    return {amount.unit: Fraction(str(amount.value)) for amount in given_amounts(row)}
