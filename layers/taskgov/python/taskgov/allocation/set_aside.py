"""What of a quota is there by leases? Limits judge what is left when that is set aside.

What the automation writes is recorded with it (`AppliedQuota.leased`). Records from before that say nothing; then the
numbers tell, type by type:

| the numbers | leases in them |
| --- | --- |
| are what the plan gives without its leases | none |
| less the leases that held when they were written are that | those |
| are something else | those that held when they were written, by the clock |
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.goals import NOTHING, Goal
from taskgov.allocation.leases import active_leases, with_instances
from taskgov.allocation.low_write import queue_amounts
from taskgov.allocation.parts import is_in_parts, row_key
from taskgov.hyperpod.equality import is_same_config
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import Lease

Net = Mapping[str, int]
"""Instance type -> whole instances that leases bring a team; below zero: that they take from it."""


def leased_net(team: str, leases: Iterable[Lease]) -> dict[str, int]:
    """Return what leases bring a team, in whole instances by type; below zero: what they take."""
    net: dict[str, int] = {}
    for lease in leases:
        side = (lease.to == team) - (lease.from_ == team)
        if side:
            net[lease.instance_type] = net.get(lease.instance_type, 0) + side * lease.count
    return net


def said_leases(team: str, instance_type: str, given: Iterable[Lease], had: int) -> str:
    """Return the leases of one number as words, empty without any; `had` is what was there by leases before."""
    words, net = [], 0
    for lease in given:
        if lease.instance_type != instance_type or team not in {lease.to, lease.from_}:
            continue
        words.append(f"{lease.count} leased " + (f"from {lease.from_}" if lease.to == team else f"to {lease.to}"))
        net += lease.count if lease.to == team else -lease.count
    if had and had != net:
        words.append(f"{abs(had)} leased {'from' if had > 0 else 'to'} others before")
    return ", ".join(words) + " set aside" if words else ""


class SettingAside:
    """Takes leases out of configs: of the plan those it gives, of the past those that were in it."""

    def __init__(self, leases: Iterable[Lease], given: Iterable[Lease], capacities: Mapping[str, TypeCapacity]) -> None:
        """Take all leases of the document, those that the plan gives, and what there is of each type."""
        self.given = tuple(given)
        self._leases, self._capacities = tuple(leases), capacities

    def without(self, config: ComputeQuotaConfig, net: Net) -> ComputeQuotaConfig:
        """Return the config as it is without leases: what they bring is taken off, what they take put back."""
        moved = {name: count for name, count in net.items() if count}
        if not moved:
            return config
        rows = {row_key(row): row for row in config.compute_quota_resources}
        for name, count in moved.items():
            whole = ComputeQuotaResource(instance_type=name, count=0)
            row = rows.get((name, ""), whole)
            if count < 0 or row is not whole:
                rows[name, ""] = self._less(row, count)
        return config.model_copy(update={"compute_quota_resources": tuple(rows.values())})

    def net_after(self, goal: Goal) -> Net:
        """Return what leases bring in the goal."""
        return leased_net(goal.team, self.given)

    def net_before(self, goal: Goal) -> Net:
        """Return what leases brought in what limits judge from."""
        applied = goal.applied
        if applied is None:
            return {}  # what the automation never wrote has no lease in it
        recorded = applied.leased
        if applied.began_from is not None and goal.before == applied.began_from:
            past = (applied.history or ())[-1:]
            same = past and is_same_config(past[0].config, goal.before)
            recorded = past[0].leased if same else None
        return self._by_the_numbers(goal, applied.at) if recorded is None else recorded

    def net_at(self, team: str, recorded: Net | None, written: datetime | None) -> Net:
        """Return what leases brought in an earlier config, by its record or else by the clock."""
        if recorded is not None or written is None:
            return recorded or {}
        return leased_net(team, active_leases(self._leases, written))

    def _by_the_numbers(self, goal: Goal, written: datetime) -> Net:
        wanted = self.without(goal.after, self.net_after(goal))
        by_clock = leased_net(goal.team, active_leases(self._leases, written))
        return {
            name: count
            for name, count in by_clock.items()
            if self._amounts(goal.before, name) != self._amounts(wanted, name)
        }

    def _amounts(self, config: ComputeQuotaConfig, instance_type: str) -> Mapping[tuple[str, str], int]:
        rows = tuple(row for row in config.compute_quota_resources if row.instance_type == instance_type)
        only = NOTHING.model_copy(update={"compute_quota_resources": rows})
        return queue_amounts(only, lambda name: self._capacities[name].resources if name in self._capacities else None)

    def _less(self, row: ComputeQuotaResource, count: int) -> ComputeQuotaResource:
        capacity = self._capacities.get(row.instance_type)
        if capacity is None and is_in_parts(row):
            return row  # nobody knows what an instance of the type is
        return with_instances(row, -count, capacity.per_instance if capacity else {})
