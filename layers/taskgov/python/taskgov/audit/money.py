"""What do idle quota, waiting and preempted work come to in money? Where the policy document gives prices.

Prices (`audit.prices`) are of whole instances an hour, in a currency that nobody here needs to know. An accelerator
costs its part of the instance; where a type has none, a core does. Sums are exact and rounded to cents at the end.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Final

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.quantities import CPU, ResourceName, is_accelerator
from taskgov.usage.cluster_usage import ClusterUsage
from taskgov.usage.tasks import Task, TaskState

HOUR: Final = 3600
WAITING: Final = frozenset({TaskState.PENDING, TaskState.PREEMPTED, TaskState.WAITING_FOR_NODES})


@dataclass(frozen=True, slots=True)
class MoneyLine:
    """What one team's share of one instance type comes to, in the currency of the prices, rounded to cents."""

    team: str
    instance_type: str
    idle_per_hour: float
    """The price of an hour of quota that nobody uses now."""
    waiting: float
    """The price of what its waiting tasks request, for the time that they have waited in this state."""
    preempted: float
    """The price of the work that preempted tasks had done and may have to repeat."""


@dataclass(frozen=True, slots=True)
class Money:
    """All lines, their sums (rounded once, not line by line), and what is in none of them."""

    lines: tuple[MoneyLine, ...]
    idle_per_hour: float
    waiting: float
    preempted: float
    left_out_gpu_hours: float
    """Waited or preempted GPU-hours of a team that has several instance types, or a type without a price."""


@dataclass(slots=True)
class _Sums:
    idle: Fraction = Fraction(0)
    waiting: Fraction = Fraction(0)
    preempted: Fraction = Fraction(0)


def money_of(
    usage: ClusterUsage,
    tasks: Iterable[Task],
    prices: Mapping[str, float],
    table: InstanceTypeTable,
    now: datetime,
) -> Money | None:
    """Return what it comes to, None without prices. A task of several possible types is not guessed at.

    Its type is the one that its node selector names, else the only one on which its team has accelerators.
    """
    if not prices:
        return None
    rates = _Rates(prices, table)
    sums: dict[tuple[str, str], _Sums] = defaultdict(_Sums)
    types: dict[str, set[str]] = defaultdict(set)
    left_out = Fraction(0)
    for team in usage.teams:
        line = team.usage
        if team.leading and line.guaranteed and is_accelerator(line.resource):
            types[line.team].add(line.instance_type)
        rate = rates.of(line.instance_type, line.resource) if team.leading else None
        if rate is not None:
            sums[line.team, line.instance_type].idle += rate * line.idle
    for task in tasks:
        seconds = Fraction((now - task.since).total_seconds()) if task.state in WAITING else Fraction(0)
        kind = _only(task.instance_types) or _only(types[task.team])
        for resource, amount in task.leading.items():
            rate = rates.of(kind, resource)
            if rate is not None and kind is not None:
                sums[task.team, kind].waiting += rate * amount * seconds / HOUR
            elif is_accelerator(resource):
                left_out += amount * seconds / HOUR
    for preemption in usage.preemptions:
        lost = Fraction(usage.lost.get(preemption.identity) or 0)
        kind = _only(types[preemption.team])
        rate = rates.of_accelerator(kind)
        if rate is not None and kind is not None:
            sums[preemption.team, kind].preempted += rate * lost / HOUR
        else:
            left_out += lost / HOUR
    return Money(
        lines=tuple(
            MoneyLine(team, kind, cents(costs.idle), cents(costs.waiting), cents(costs.preempted))
            for (team, kind), costs in sorted(sums.items())
        ),
        idle_per_hour=cents(sum((costs.idle for costs in sums.values()), Fraction(0))),
        waiting=cents(sum((costs.waiting for costs in sums.values()), Fraction(0))),
        preempted=cents(sum((costs.preempted for costs in sums.values()), Fraction(0))),
        left_out_gpu_hours=cents(left_out),
    )


class _Rates:
    """What a base unit of a resource costs an hour, by instance type."""

    def __init__(self, prices: Mapping[str, float], table: InstanceTypeTable) -> None:
        self._prices = prices
        self._table = table

    def of(self, instance_type: str | None, resource: ResourceName) -> Fraction | None:
        """Return the rate of the resource that an instance is paid for: its accelerators, else its cores."""
        amounts = self._amounts(instance_type)
        paid_for = next((name for name, amount in amounts.items() if is_accelerator(name) and amount), CPU)
        if instance_type is None or resource != paid_for or not amounts.get(paid_for):
            return None
        return Fraction(str(self._prices[instance_type])) / amounts[paid_for]

    def of_accelerator(self, instance_type: str | None) -> Fraction | None:
        """Return the rate of an accelerator of this type; None where it has none, or no price."""
        found = (self.of(instance_type, name) for name in self._amounts(instance_type) if is_accelerator(name))
        return next((rate for rate in found if rate is not None), None)

    def _amounts(self, instance_type: str | None) -> Mapping[ResourceName, int]:
        known = instance_type in self._prices and self._table.resources_of(instance_type or "")
        return known.real_amounts() if known else {}


def cents(amount: Fraction) -> float:
    """Round to two decimals, halves to the even one.

    Example:
        >>> cents(Fraction(1, 3)), cents(Fraction("0.125"))
        (0.33, 0.12)

    """
    return float(round(amount, 2))


def _only(types: Iterable[str]) -> str | None:
    found = tuple(types)
    return found[0] if len(found) == 1 else None
