"""How quotas stand at one look: what teams are guaranteed, use, borrow, lend and wait for, and what nodes offer.

What is kept are changes. A standing holds until the next change, as long as looks follow each other
(`taskgov.work.measured`). Amounts are in base units of the resource that leads for the type: accelerators, or cpu (in
milli) where it has none.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeVar

from taskgov.quantities import ResourceName

Kind = tuple[str, ResourceName]
"""An instance type and the resource of it."""
Place = tuple[str, str, ResourceName]
"""A team, an instance type and its resource."""


@dataclass(frozen=True, slots=True)
class Line:
    """One team on one instance type: guaranteed = own + lent + idle, used = own + borrowed + over quota."""

    guaranteed: int = 0
    used: int = 0
    borrowed: int = 0
    lent: int = 0
    over_quota: int = 0
    waiting: int = 0
    """What its waiting work requests of this type."""

    @property
    def own(self) -> int:
        """What the team uses of its own guarantee."""
        return self.used - self.borrowed - self.over_quota

    @property
    def idle(self) -> int:
        """What neither the team nor a borrower uses of its guarantee."""
        return self.guaranteed - self.own - self.lent


NOTHING: Final = Line()
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Standing:
    """How quotas stand from a moment on: the whole of it, or what is another than before."""

    at: datetime
    lines: Mapping[Place, Line] = field(default_factory=dict)
    """A team without anything of a type has no line; in a change, it has one of nothing if it had one before."""
    capacity: Mapping[Kind, int] = field(default_factory=dict)
    """What healthy nodes offer; nothing where there are none."""
    whole: bool = True
    """Without it, what is not named is as it was before."""

    def since(self, before: "Standing") -> "Standing | None":
        """Return what is another than in a whole standing before this one; None where nothing is."""
        lines = _changed(before.lines, self.lines, NOTHING)
        capacity = _changed(before.capacity, self.capacity, 0)
        return Standing(self.at, lines, capacity, whole=False) if lines or capacity else None

    def after(self, before: "Standing") -> "Standing":
        """Return the whole standing after this one, which is whole itself or a change of the one before."""
        if self.whole:
            return self
        lines = {place: line for place, line in {**before.lines, **self.lines}.items() if line != NOTHING}
        capacity = {kind: amount for kind, amount in {**before.capacity, **self.capacity}.items() if amount}
        return Standing(self.at, lines, capacity)


def whole_ones(standings: Iterable[Standing]) -> Iterator[Standing]:
    """Yield each standing as a whole, in their order; a change without one before it counts from nothing."""
    before: Standing | None = None
    for standing in standings:
        before = standing.after(before or replace(standing, lines={}, capacity={}, whole=True))
        yield before


def _changed(before: Mapping[K, V], after: Mapping[K, V], nothing: V) -> dict[K, V]:
    found = {key: value for key, value in after.items() if before.get(key, nothing) != value}
    return found | {key: nothing for key in before.keys() - after.keys() if before[key] != nothing}
