"""How quotas stand at one measurement: what teams are guaranteed, use, borrow, lend and wait for, and what nodes offer.

Only changes are stored. A standing is valid until the next change, within measured time (`taskgov.work.measured`).
Amounts are in base units of the type's leading resource: accelerators, or CPU (in milli) if it has none.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeVar

from taskgov.quantities import ResourceName

Kind = tuple[str, ResourceName]
"""Instance type and resource."""
Place = tuple[str, str, ResourceName]
"""Team, instance type and resource."""


@dataclass(frozen=True, slots=True)
class Line:
    """One team on one instance type: guaranteed = own + lent + idle, used = own + borrowed + over quota."""

    guaranteed: int = 0
    used: int = 0
    borrowed: int = 0
    lent: int = 0
    over_quota: int = 0
    waiting: int = 0
    """What the team's waiting workloads request of this type."""

    @property
    def own(self) -> int:
        """What the team uses of its own guarantee."""
        return self.used - self.borrowed - self.over_quota

    @property
    def idle(self) -> int:
        """The part of its guarantee that neither the team nor a borrower uses."""
        return self.guaranteed - self.own - self.lent


NOTHING: Final = Line()
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Standing:
    """How quotas stand from `at` on: the whole state, or only what changed."""

    at: datetime
    lines: Mapping[Place, Line] = field(default_factory=dict)
    """A team with nothing of a type has no line. In a change, a line of zeros removes an earlier one."""
    capacity: Mapping[Kind, int] = field(default_factory=dict)
    """What healthy nodes offer. A type without healthy nodes is left out."""
    whole: bool = True
    """If False, what is not named is unchanged."""

    def since(self, before: "Standing") -> "Standing | None":
        """Return the changes since an earlier whole standing; None if there are none."""
        lines = _changed(before.lines, self.lines, NOTHING)
        capacity = _changed(before.capacity, self.capacity, 0)
        return Standing(self.at, lines, capacity, whole=False) if lines or capacity else None

    def after(self, before: "Standing") -> "Standing":
        """Return the whole standing: this one if it is whole, otherwise `before` with these changes."""
        if self.whole:
            return self
        lines = {place: line for place, line in {**before.lines, **self.lines}.items() if line != NOTHING}
        capacity = {kind: amount for kind, amount in {**before.capacity, **self.capacity}.items() if amount}
        return Standing(self.at, lines, capacity)


def whole_ones(standings: Iterable[Standing]) -> Iterator[Standing]:
    """Yield each standing as a whole, in order. A change without a predecessor starts from an empty standing."""
    before: Standing | None = None
    for standing in standings:
        before = standing.after(before or replace(standing, lines={}, capacity={}, whole=True))
        yield before


def _changed(before: Mapping[K, V], after: Mapping[K, V], nothing: V) -> dict[K, V]:
    found = {key: value for key, value in after.items() if before.get(key, nothing) != value}
    return found | {key: nothing for key in before.keys() - after.keys() if before[key] != nothing}
