"""What is drawn how often: the families of worlds, and the one source of chance of a world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Mix:
    """How likely each feature is in a world of a family, from 0 to 1."""

    types: tuple[int, ...] = (1, 1, 2)
    """How many instance types, drawn from these."""
    nodes: int = 6
    """The most nodes of a type."""
    modest: int = 1
    """New fixed promises are at most so small a part of the machines that are there: 3 is a third of them."""
    parts: float = 0.6
    mig: float = 0.0
    fractions: float = 0.2
    jobs: float = 0.0
    shares: float = 0.2
    weights: float = 0.4
    """Types on which shares may be weights."""
    units: float = 0.3
    """Shares and leases that are counted in parts of instances."""
    settings: float = 0.2
    borrowing: float = 0.4
    """Teams that borrow freely, where it is drawn how they share."""
    over_committed: float = 0.1
    applied: float = 0.4
    edited: float = 0.0
    stuck: float = 0.0
    leases: float = 0.0
    budgets: float = 0.0
    demand: float = 0.0
    limits: float = 0.0
    odd_machines: float = 0.0
    no_nodes: float = 0.0
    """Types of which there is a quota and no node."""
    unknown: float = 0.0
    sick: float = 0.1
    strangers: float = 0.05
    drifted: float = 0.0
    """Queues that hold something else than their quotas; nothing is drawn for these three where they are 0."""
    on_hold: float = 0.0
    doubles: float = 0.0
    """Second quotas of teams, and what else is odd about quotas: see `benchmarks.worlds_odd`."""
    refused: float = 0.0
    """Runs that were broken off because writes were refused: see `benchmarks.worlds_refused`."""


FAMILIES: Final[Mapping[str, Mix]] = {
    "converge": Mix(parts=0.85),
    "path": Mix(types=(1,), parts=0.15, jobs=1.0, sick=0.4, settings=0.1, borrowing=0.85),
    "squeeze": Mix(types=(1, 1, 2), parts=0.8, mig=0.1, jobs=1.0, settings=0.1, borrowing=0.9, applied=0.1),
    "mixed": Mix(
        types=(1, 2, 3),
        mig=0.4,
        jobs=0.5,
        shares=0.3,
        settings=0.4,
        edited=0.2,
        leases=0.4,
        budgets=0.3,
        demand=0.3,
        limits=0.2,
        sick=0.3,
        strangers=0.15,
    ),
    "recover": Mix(jobs=0.4, stuck=1.0, applied=0.6, limits=0.2),
    "limits": Mix(jobs=0.3, limits=1.0, leases=0.4, applied=0.8, edited=0.1, mig=0.2, sick=0.3, parts=0.5),
    "drift": Mix(types=(1, 1, 2), parts=0.3, jobs=1.0, borrowing=0.9, limits=0.6, sick=0.2, drifted=0.6, on_hold=0.3),
    "doubles": Mix(jobs=0.4, limits=1.0, applied=0.7, stuck=0.3, strangers=0.5, unknown=0.7, parts=0.6, doubles=0.7),
    "portions": Mix(
        types=(1, 1, 2),
        nodes=16,
        modest=4,
        parts=0.4,
        mig=0.25,
        shares=0.45,
        units=0.5,
        leases=0.9,
        over_committed=0.0,
        demand=0.15,
        edited=0.03,
        limits=0.15,
        no_nodes=0.15,
        strangers=0.05,
    ),
    "machines": Mix(types=(1, 2, 3), jobs=0.3, leases=0.4, odd_machines=1.0, unknown=0.5, sick=0.6, mig=0.1),
    "refused": Mix(
        types=(1, 1, 2), parts=0.5, mig=0.2, leases=0.3, demand=0.2, stuck=0.15, limits=0.3, sick=0.3, refused=0.9
    ),
}


class Draw:
    """The chance of one world: everything is drawn from here, in one order."""

    def __init__(self, seed: str, mix: Mix) -> None:
        self._random = Random(seed)
        self.mix = mix

    def chance(self, probability: float) -> bool:
        """Say yes so often."""
        return self._random.random() < probability

    def number(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return self._random.randint(low, max(low, high))

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return self._random.choice(items)

    def some(self, items: Sequence[Item], least: int, most: int) -> list[Item]:
        """Return from `least` to `most` different items, in their own order."""
        chosen = self._random.sample(range(len(items)), min(len(items), self.number(least, most)))
        return [items[index] for index in sorted(chosen)]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in another order."""
        return self._random.sample(list(items), len(items))
