"""Order the writes of quotas so that their sum never overshoots.

Writes are one quota each, and one quota spans several instance types: a write may lower one type and raise another. The
order is: what only lowers, by name; then what does both, each as soon as there is room for it; then what only raises.
Where two such writes wait for each other, they first give what they give, and take what they take in the next run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from taskgov.allocation.parts import Vector

Vectors = Mapping[str, Vector]
"""Instance type -> amounts."""


@dataclass(frozen=True, slots=True)
class Step:
    """One write: what the quota takes of each type before and after."""

    key: str
    before: Vectors
    after: Vectors

    def delta(self) -> dict[str, dict[str, int]]:
        """Return by how much each amount changes; types that do not change are left out."""
        deltas = {name: _difference(self.after.get(name, {}), self.before.get(name, {})) for name in self._types()}
        return {name: delta for name, delta in deltas.items() if any(delta.values())}

    def _types(self) -> list[str]:
        return sorted({*self.before, *self.after})


@dataclass(frozen=True, slots=True)
class Order:
    """Keys in the order of writing, and those of them that may only give in this run."""

    keys: tuple[str, ...]
    giving_only: frozenset[str] = frozenset()


def in_safe_order(steps: Iterable[Step], sums: Vectors, limits: Vectors) -> Order:
    """Order `steps` so that no sum exceeds the greater of its limit and its value now.

    Example: b can only take what a gives.
        >>> a = Step("b-gives", {"t": {"cpu": 2}}, {"t": {"cpu": 1}})
        >>> b = Step("a-takes", {"t": {"cpu": 2}}, {"t": {"cpu": 3}})
        >>> in_safe_order([a, b], {"t": {"cpu": 4}}, {"t": {"cpu": 4}}).keys
        ('b-gives', 'a-takes')

    """
    deltas = {step.key: step.delta() for step in sorted(steps, key=lambda step: step.key)}
    lowering = [key for key, delta in deltas.items() if not _raises(delta)]
    raising = [key for key, delta in deltas.items() if _raises(delta) and not _lowers(delta)]
    both = [key for key, delta in deltas.items() if _raises(delta) and _lowers(delta)]
    room = _Room(sums, limits)
    for key in lowering:
        room.take(deltas[key])
    ready, waiting = _as_room_allows(both, deltas, room)
    return Order((*lowering, *ready, *waiting, *raising), frozenset(waiting))


def _as_room_allows(keys: Sequence[str], deltas: Mapping[str, Vectors], room: "_Room") -> tuple[list[str], list[str]]:
    """Take those that fit, round by round, until a round brings none; the rest waits."""
    ready: list[str] = []
    waiting = list(keys)
    while fitting := [key for key in waiting if room.take_if_it_fits(deltas[key])]:
        ready += fitting
        waiting = [key for key in waiting if key not in set(fitting)]
    return ready, waiting


class _Room:
    """What may still be added to each sum."""

    def __init__(self, sums: Vectors, limits: Vectors) -> None:
        self._free: dict[tuple[str, str], int] = {}
        for name in {*sums, *limits}:
            limit, total = limits.get(name, {}), sums.get(name, {})
            for resource in {*limit, *total}:
                self._free[name, resource] = max(limit.get(resource, 0) - total.get(resource, 0), 0)

    def take_if_it_fits(self, delta: Vectors) -> bool:
        fits = all(
            amount <= self._free.get((name, resource), 0)
            for name, amounts in delta.items()
            for resource, amount in amounts.items()
            if amount > 0
        )
        if fits:
            self.take(delta)
        return fits

    def take(self, delta: Vectors) -> None:
        for name, amounts in delta.items():
            for resource, amount in amounts.items():
                self._free[name, resource] = self._free.get((name, resource), 0) - amount


def _difference(after: Vector, before: Vector) -> dict[str, int]:
    return {name: after.get(name, 0) - before.get(name, 0) for name in sorted({*after, *before})}


def _raises(delta: Vectors) -> bool:
    return any(amount > 0 for amounts in delta.values() for amount in amounts.values())


def _lowers(delta: Vectors) -> bool:
    return any(amount < 0 for amounts in delta.values() for amount in amounts.values())
