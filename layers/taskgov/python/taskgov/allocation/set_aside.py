"""Remove leased amounts from a quota, because limits apply to the rest only.

The leased amounts of a write are recorded with it (`AppliedQuota.leased`). For older records without this field, the
numbers decide, type by type:

| the numbers | leases in them |
| --- | --- |
| equal the plan without its leases | none |
| equal that after removing the leases that were active when they were written | those |
| are something else | those that were active when they were written, by the clock |
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.goals import NOTHING, Goal
from taskgov.allocation.leases import Given, active_leases, unit_after
from taskgov.allocation.low_write import queue_amounts
from taskgov.allocation.transfer import Net, without_leases
from taskgov.hyperpod.equality import is_same_config
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.policy.measured import Lease, Measured


def leased_net(team: str, given: Iterable[Given]) -> dict[str, int]:
    """Return what leases bring a team, in whole units by place; below zero: what they take."""
    net: dict[str, int] = {}
    for lent in given:
        if side := lent.side_of(team):
            net[lent.lease.place] = net.get(lent.lease.place, 0) + side * lent.amount
    return net


def net_of_type(net: Net, instance_type: str) -> dict[str, int]:
    """Return what leases move of one instance type."""
    return {place: n for place, n in net.items() if n and place.partition(" ")[0] == instance_type}


def said_leases(team: str, instance_type: str, given: Iterable[Given], had: Net) -> str:
    """Return the leases of one type as words, empty without any; `had` is what was there by leases before."""
    here = [lent for lent in given if lent.lease.instance_type == instance_type and lent.side_of(team)]
    words = [
        f"{lent.amount}{unit_after(lent.lease)} leased "
        + (f"from {lent.lease.from_}" if lent.lease.to == team else f"to {lent.lease.to}")
        for lent in here
    ]
    net = leased_net(team, here)
    for place, count in net_of_type(had, instance_type).items():
        if count != net.get(place, 0):
            unit = unit_after(Measured.at(place))
            words.append(f"{abs(count)}{unit} leased {'from' if count > 0 else 'to'} others before")
    return ", ".join(words) + " set aside" if words else ""


class SettingAside:
    """Takes leases out of configs: of the plan those it gives, of the past those that were in it."""

    def __init__(self, leases: Iterable[Lease], given: Iterable[Given], capacities: Mapping[str, TypeCapacity]) -> None:
        """Take all leases of the document, those that the plan gives, and what there is of each type."""
        self.given = tuple(given)
        self._leases, self._capacities = tuple(leases), capacities

    def without(self, config: ComputeQuotaConfig, net: Net) -> ComputeQuotaConfig:
        """Return the config without leases: received amounts are removed, given amounts added back."""
        return without_leases(config, net, self._capacities)

    def net_after(self, goal: Goal) -> Net:
        """Return what leases bring in the goal."""
        return leased_net(goal.team, self.given)

    def net_before(self, goal: Goal) -> Net:
        """Return what leases brought in what limits judge from."""
        applied = goal.applied
        if applied is None:
            return {}  # what the automation never wrote has no lease in it
        recorded = applied.leased
        past = (applied.history or ())[-1:]
        same = past and is_same_config(past[0].config, goal.before)
        if applied.began_from is not None and goal.before == applied.began_from:
            recorded = past[0].leased if same else None
        elif same and goal.before != goal.stands:  # the plan that wrote what stands was broken off
            recorded = past[0].leased
        return self._by_the_numbers(goal, applied.at) if recorded is None else recorded

    def net_at(self, team: str, recorded: Net | None, written: datetime | None) -> Net:
        """Return what leases brought in an earlier config, by its record or else by the clock."""
        if recorded is not None or written is None:
            return recorded or {}
        return leased_net(team, self._by_clock(written))

    def _by_the_numbers(self, goal: Goal, written: datetime) -> Net:
        wanted = self.without(goal.after, self.net_after(goal))
        by_clock = leased_net(goal.team, self._by_clock(written))
        return {
            place: count
            for place, count in by_clock.items()
            if self._amounts(goal.before, name := place.partition(" ")[0]) != self._amounts(wanted, name)
        }

    def _amounts(self, config: ComputeQuotaConfig, instance_type: str) -> Mapping[tuple[str, str], int]:
        rows = tuple(row for row in config.compute_quota_resources if row.instance_type == instance_type)
        only = NOTHING.model_copy(update={"compute_quota_resources": rows})
        return queue_amounts(only, lambda name: self._capacities[name].resources if name in self._capacities else None)

    def _by_clock(self, moment: datetime) -> Iterator[Given]:
        return (Given(lease, lease.count) for lease in active_leases(self._leases, moment))
