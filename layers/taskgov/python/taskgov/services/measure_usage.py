"""Which metric values does the usage of a cluster have? `publish_usage` records them.

Only the resource that leads for an instance type becomes metric values (`taskgov.usage.capacity` says which);
the others travel with it as properties, which cost nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import repeat
from typing import Any, Final

from taskgov.allocation.lease_book import LeaseEntry, leased, leased_words
from taskgov.ports import Measurement
from taskgov.quantities import ResourceName
from taskgov.services import metric_catalogue as metric
from taskgov.services.metric_form import PER_QUOTA, Metric, Property
from taskgov.usage.capacity import Capacity
from taskgov.usage.cluster_usage import ClusterUsage, TeamUsage
from taskgov.usage.lost_work import LostWork
from taskgov.usage.quota_usage import QuotaUsage
from taskgov.usage.units import all_in_metrics, in_metrics, metric_name
from taskgov.usage.workloads import Preemption

_Value = tuple[Metric, float, Mapping[str, Property]]
"""A metric, its value and what travels with it, whoever has it."""
UNKNOWN: Final = "unknown"
"""The preempting team where Kueue does not say: CloudWatch takes no empty dimension."""


def measure_usage(usage: ClusterUsage, now: datetime, leases: Iterable[LeaseEntry] = ()) -> list[Measurement]:
    """Return the values of every team and instance type, and of the cluster's capacity.

    A team that waits for nothing has zeros, so that an alarm on waiting can end. Instances that a team has by a lease,
    or gave by one, travel with its quota.
    """
    return [*_quotas(usage, tuple(leases)), *_pending(usage, now), *_capacities(usage)]


def measure_preemptions(preemptions: Iterable[Preemption], lost: LostWork) -> list[Measurement]:
    """Return the values of preemptions that were not counted before, by team, reason and preempting team."""
    groups: dict[tuple[str, str, str], list[Preemption]] = defaultdict(list)
    for preemption in preemptions:
        groups[preemption.team, preemption.reason, preemption.preempting_team or UNKNOWN].append(preemption)
    measured: list[Measurement] = []
    for dimensions, some in sorted(groups.items()):
        measured.append(metric.PREEMPTIONS.of(len(some), *dimensions))
        known = [lost[preemption.identity] for preemption in some if preemption.identity in lost]
        if known:
            measured.append(metric.PREEMPTED_GPU_SECONDS.of(sum(known), *dimensions))
    return measured


def _quotas(usage: ClusterUsage, leases: tuple[LeaseEntry, ...]) -> Iterator[Measurement]:
    known: dict[tuple[Any, ...], list[_Value]] = {}  # many teams have and use the same
    others: dict[tuple[str, str], list[QuotaUsage]] = {}
    for team in usage.teams:
        if not team.leading:
            others.setdefault((team.usage.queue, team.usage.instance_type), []).append(team.usage)
    for team in usage.teams:
        if team.leading:
            # The first leading resource takes them along; a second one (GPU partitions) would only repeat them.
            along = others.pop((team.usage.queue, team.usage.instance_type), [])
            moved = leased(leases, team.usage.team, team.usage.instance_type) if leases else {}
            lines = [_resource_and_amounts(line) for line in (team.usage, *along)]
            same = (team.entitlement, team.infinite_share, *lines, *moved.items())
            if (values := known.get(same)) is None:
                values = known[same] = _quota(team, along, moved)
            line = team.usage
            place = dict(zip(PER_QUOTA, (line.team, line.instance_type, line.resource), strict=True))
            for quota_metric, amount, properties in values:
                yield quota_metric.at(amount, place, properties)


def _resource_and_amounts(line: QuotaUsage) -> tuple[Any, ...]:
    return line[3:]


def _quota(team: TeamUsage, others: list[QuotaUsage], moved: Mapping[str, int]) -> list[_Value]:
    line = team.usage
    there = [other for other in others if other.guaranteed or other.used]
    names = _along(tuple([other.resource for other in there]))
    numbers = zip(*map(_amounts, there), strict=True) if there else repeat(())
    along: list[dict[str, Property]] = [dict(zip(*pair, strict=True)) for pair in zip(names, numbers, strict=False)]
    along[_OF_QUOTAS.index(metric.QUOTA_GUARANTEED)] |= _moved(moved)
    values: list[_Value] = [*zip(_OF_QUOTAS, _amounts(line), along, strict=True)]
    if line.borrow_limit:
        values.append((metric.BORROW_LIMIT_UTILIZATION, 100 * line.borrowed / line.borrow_limit, {}))
    if team.entitlement is not None:
        values.append((metric.FAIR_SHARE_ENTITLEMENT, in_metrics(line.resource, team.entitlement), {}))
        deviation = in_metrics(line.resource, line.used - team.entitlement)
        values.append((metric.FAIR_SHARE_DEVIATION, deviation, {"infiniteShare": team.infinite_share}))
    return values


def _moved(moved: Mapping[str, int]) -> dict[str, Property]:
    """Return what leases add to a quota or take from it, as properties."""
    parts = {unit: amount for unit, amount in moved.items() if unit != "instances"}
    told: dict[str, Property] = {"leasedInstances": moved["instances"]} if "instances" in moved else {}
    return told | {"leasedParts": leased_words(parts)} if parts else told


_OF_QUOTAS: Final = (
    metric.QUOTA_GUARANTEED,
    metric.QUOTA_USED,
    metric.BORROWED,
    metric.LENT,
    metric.IDLE,
    metric.OVER_QUOTA,
)


def _amounts(line: QuotaUsage) -> Sequence[float]:
    """Return the values of `_OF_QUOTAS`."""
    amounts = (line.guaranteed, line.used, line.borrowed, line.lent, line.idle, line.over_quota)
    return all_in_metrics(line.resource, amounts)


@cache
def _along(resources: tuple[ResourceName, ...]) -> tuple[tuple[str, ...], ...]:
    """Return for each of `_OF_QUOTAS` how the amounts of resources that do not lead are called as its properties."""
    last = [metric_name(resource) for resource in resources]
    return tuple(tuple(f"{quota_metric.name}_{name}" for name in last) for quota_metric in _OF_QUOTAS)


def _pending(usage: ClusterUsage, now: datetime) -> Iterator[Measurement]:
    pending = {waiting.team: waiting for waiting in usage.pending}
    for team in sorted({team.usage.team for team in usage.teams} | pending.keys()):
        waiting = pending.get(team)
        yield metric.PENDING_WORKLOADS.of(waiting.workloads if waiting else 0, team)
        yield metric.PENDING_GPUS.of(waiting.accelerators if waiting else 0, team)
        yield metric.OLDEST_PENDING_SECONDS.of(waiting.oldest_wait(now).total_seconds() if waiting else 0, team)


def _capacities(usage: ClusterUsage) -> Iterator[Measurement]:
    sums: dict[tuple[str, ResourceName], int] = defaultdict(int)
    for team in usage.teams:
        sums[team.usage.instance_type, team.usage.resource] += team.usage.borrowed - team.usage.lent
    for capacity in usage.capacities:
        yield from _capacity(capacity, sums[capacity.instance_type, capacity.resource])


def _capacity(capacity: Capacity, unattributed: int) -> Iterator[Measurement]:
    """Return the values of one instance type; borrowed and lent that differ would be a mistake, and are shown."""
    place = (capacity.instance_type, capacity.resource)
    told: dict[str, Property] = {"instancesHealthy": capacity.healthy_nodes}
    if unattributed:
        told["unattributed"] = in_metrics(capacity.resource, unattributed)
    yield metric.CAPACITY_HEALTHY.of(in_metrics(capacity.resource, capacity.healthy), *place, **told)
    unhealthy = in_metrics(capacity.resource, capacity.unhealthy)
    yield metric.CAPACITY_UNHEALTHY.of(unhealthy, *place, instancesUnhealthy=capacity.unhealthy_nodes)
    yield metric.OVERCOMMIT.of(in_metrics(capacity.resource, capacity.overcommit), *place)
