"""Arrange the writes of a plan in waves, so that no sum of quotas exceeds its bound at any moment.

Writes of one wave are sent together, in an unknown order, and have settled before the next wave begins. The bound of
each resource of each instance type is the greater of capacity and the sum before the plan. Decreases come first, then
increases. A quota that does both is written once if there is room for it. Otherwise it is written twice: a low write
(`taskgov.allocation.low_write`) that only lowers, and the rest after all decreases.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from taskgov.allocation.plan import Change

Place = tuple[str, str]
"""Instance type and resource."""

Amounts = Mapping[Place, int]

MOST_ROUNDS: Final = 3
"""Waves in which quotas that give and take are written once; those that are left are written twice, in as many more."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write, and its change of the sums. `both`: it lowers some amounts and raises others."""

    change: Change
    delta: Amounts
    gives: bool
    takes: bool

    @property
    def name(self) -> str:
        """What is written, as people call it; two quotas may have one name."""
        return self.change.name

    @property
    def key(self) -> str:
        """The identity of the quota (or cluster policy) that is written; its writes follow one another."""
        return self.change.resource_id or f"new {self.change.team or self.change.name}"

    @property
    def both(self) -> bool:
        """Whether it lowers and raises amounts."""
        return self.gives and self.takes


Wave = tuple[Write, ...]


class Room:
    """What may still be added to each sum before it exceeds its bound."""

    def __init__(self, sums: Amounts, capacity: Amounts, unbound: Iterable[str] = ()) -> None:
        """Take the sums before the plan; the types in `unbound` may exceed any capacity (declared over-commitment)."""
        self._unbound = frozenset(unbound)
        self._free = {
            place: max(capacity.get(place, 0) - sums.get(place, 0), 0) for place in sorted({*sums, *capacity})
        }

    def copy(self) -> "Room":
        """Return a room of its own with as much in it."""
        twin = Room({}, {}, self._unbound)
        twin._free = dict(self._free)
        return twin

    def fits(self, wave: Iterable[Write]) -> bool:
        """Return whether all raises of a wave fit, whatever its order: what it gives does not count yet."""
        return not self.lacks(wave)

    def lacks(self, wave: Iterable[Write]) -> frozenset[Place]:
        """Return the places in which the raises of a wave do not fit."""
        raised: dict[Place, int] = {}
        for write in wave:
            for place, amount in write.delta.items():
                if amount > 0 and place[0] not in self._unbound:
                    raised[place] = raised.get(place, 0) + amount
        return frozenset(place for place, amount in raised.items() if amount > self._free.get(place, 0))

    def raise_by(self, write: Write) -> None:
        """Subtract what a write raises. What it lowers does not count yet, because the order in a wave is unknown."""
        for place, amount in write.delta.items():
            self._free[place] = self._free.get(place, 0) - max(amount, 0)

    def after(self, wave: Iterable[Write]) -> None:
        """Let the writes of a wave have settled."""
        for write in wave:
            for place, amount in write.delta.items():
                self._free[place] = self._free.get(place, 0) - amount

    def allows(self, waves: Iterable[Wave]) -> bool:
        """Return whether waves fit one after the other."""
        room = self.copy()
        for wave in waves:
            if not room.fits(wave):
                return False
            room.after(wave)
        return True


@dataclass(frozen=True, slots=True)
class Writes:
    """The writes to arrange: the first waves, the decreases, and the increases."""

    first: tuple[Wave, ...]
    """Recovery and the cluster policy."""
    gives: Wave
    takes: Wave
    """In an order in which there is room for each, once all that gives has settled."""
    room: Room
    """As it is before `gives`, when `first` has settled."""
    left_out: tuple[Change, ...] = field(default=())
    """Quotas that cannot be written now: parts of an unknown type that cannot be split, and those without room."""

    def __bool__(self) -> bool:
        """Return whether anything is written."""
        return any((*self.first, self.gives, self.takes))

    def in_waves(self) -> tuple[Wave, ...]:
        """Return the shortest path: all decreases at once, then the increases in as few waves as possible."""
        room = self.room.copy()
        room.after(self.gives)
        left = room.copy()
        waves: list[list[Write]] = [[]]
        for write in self.takes:
            if not left.fits([write]):
                room.after(waves[-1])
                left = room.copy()
                waves.append([])
            left.raise_by(write)
            waves[-1].append(write)
        return self.numbered([self.gives, *map(tuple, waves)])

    def numbered(self, waves: Iterable[Wave]) -> tuple[Wave, ...]:
        """Return the whole path with these waves after what comes first; empty waves are left out."""
        return tuple(wave for wave in (*self.first, *waves) if wave)


Split = Callable[[Write], tuple[Write, Write] | None]
"""Return the low and the second write of a quota, or None where it cannot be split."""


def arrange(first: Iterable[Wave], writes: Iterable[Write], room: Room, split: Split) -> Writes:
    """Sort writes into those that give and those that take, and split what cannot be written once.

    `room` is as it is when `first` has settled.
    """
    waves, left, waiting = tuple(first), list[Change](), sorted(writes, key=_by_name)
    while True:
        gives, takes, stuck = _sorted_out(waiting, room, split)
        if not stuck:
            return Writes(waves, tuple(gives), tuple(takes), room, tuple(left))
        # What cannot take does not give either: writes that counted on it are considered again.
        left += [write.change for write in waiting if write.key in stuck]
        waiting = [write for write in waiting if write.key not in stuck]


def _by_name(write: Write) -> tuple[str, str]:
    return write.name, write.key


def _sorted_out(writes: Sequence[Write], room: Room, split: Split) -> tuple[list[Write], list[Write], set[str]]:
    """Return the decreases, the increases, and the keys of writes without room or that cannot be split."""
    gives = [write for write in writes if write.gives and not write.takes]
    waiting = [write for write in writes if write.takes or not write.gives]
    now = room.copy()
    now.after(gives)
    takes: list[Write] = []
    for _ in range(MOST_ROUNDS):
        fitting, waiting = _fitting(waiting, now)
        takes += fitting
        now.after(fitting)
    rest: list[Write] = []
    for write in waiting:
        pair = split(write) if write.both else None
        if pair is not None:
            gives.append(pair[0])
            now.after(pair[:1])
        rest.append(write if pair is None else pair[1])
    last, stuck = _rounds(rest, now)
    for wave in last[MOST_ROUNDS:]:
        stuck += wave
    taken = (write for wave in last[:MOST_ROUNDS] for write in wave)
    return gives, [*takes, *taken], {write.key for write in stuck}


def _fitting(writes: Iterable[Write], room: Room) -> tuple[list[Write], list[Write]]:
    """Return the writes that fit together, taken in their order, and the others."""
    fitting, others, left = [], [], room.copy()
    for write in writes:
        if left.fits([write]):
            fitting.append(write)
            left.raise_by(write)
        else:
            others.append(write)
    return fitting, others


def _rounds(writes: Sequence[Write], room: Room) -> tuple[list[Wave], list[Write]]:
    """Return waves of what fits, each with the room that those before it left, and what never fits."""
    waves: list[Wave] = []
    fitting, waiting = _fitting(writes, room)
    while fitting:
        waves.append(tuple(fitting))
        room.after(fitting)
        fitting, waiting = _fitting(waiting, room)
    return waves, waiting
