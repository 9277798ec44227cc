"""Who is starved? Whose work waits, with a guarantee that it does not use, while others borrow from it.

Kueue reclaims what is borrowed within moments where it may. What lasts needs a person: a queue that may not preempt,
pods that take long to end, a workload that requests more than the guarantee.
"""

from collections import Counter
from dataclasses import dataclass

from taskgov.quantities import ResourceName, is_accelerator
from taskgov.snapshot.model import Snapshot
from taskgov.usage.demand import waiting_demand
from taskgov.usage.quota_usage import usage_in
from taskgov.usage.shares import pool_of, roots_of


@dataclass(frozen=True, slots=True)
class Starved:
    """One team on one instance type; counts of accelerators."""

    team: str
    instance_type: str
    resource: ResourceName
    guaranteed: int
    own_use: int
    waiting: int
    """What its waiting work requests on this instance type."""
    borrowed: int
    """What others of its cohort borrow of it."""

    @property
    def reclaimable(self) -> int:
        """How many its waiting work could have back."""
        return min(self.guaranteed - self.own_use, self.borrowed, self.waiting)


def starved_teams(snapshot: Snapshot) -> tuple[Starved, ...]:
    """Return who could reclaim accelerators and waits for them, by team and instance type."""
    kueue = snapshot.kueue
    lines = [line for line in usage_in(kueue).lines if is_accelerator(line.resource)]
    pool = pool_of(roots_of(kueue))
    borrowed = Counter[tuple[str, str, ResourceName]]()
    for line in lines:
        if line.borrowed:
            borrowed[pool(line)] += line.borrowed
    demand = waiting_demand(kueue)
    found = (
        Starved(
            team=line.team,
            instance_type=line.instance_type,
            resource=line.resource,
            guaranteed=line.guaranteed,
            own_use=line.own_use,
            waiting=waiting,
            borrowed=borrowed[pool(line)] - line.borrowed,
        )
        for line in lines
        if (waiting := demand.get((line.queue, line.instance_type, line.resource), 0))
    )
    return tuple(
        sorted(
            (team for team in found if team.reclaimable > 0),
            key=lambda team: (team.team, team.instance_type, team.resource),
        )
    )
