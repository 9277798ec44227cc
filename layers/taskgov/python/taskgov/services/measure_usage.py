"""Which metric values does the usage of a cluster have? `publish_usage` records them.

Only the resource that leads for an instance type becomes metric values (`taskgov.usage.capacity` says which);
the others travel with it as properties, which cost nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from taskgov.allocation.lease_book import LeaseEntry, leased, leased_words
from taskgov.ports import Measurement
from taskgov.services import metric_catalogue as metric
from taskgov.services.metric_form import Metric, Property
from taskgov.usage.capacity import Capacity
from taskgov.usage.cluster_usage import ClusterUsage, TeamUsage
from taskgov.usage.lost_work import LostWork
from taskgov.usage.quota_usage import QuotaUsage
from taskgov.usage.units import in_metrics, metric_name
from taskgov.usage.workloads import Preemption

if TYPE_CHECKING:
    from taskgov.quantities import ResourceName

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
    others: dict[tuple[str, str], list[QuotaUsage]] = defaultdict(list)
    for team in usage.teams:
        if not team.leading:
            others[team.usage.queue, team.usage.instance_type].append(team.usage)
    for team in usage.teams:
        if team.leading:
            # The first leading resource takes them along; a second one (GPU partitions) would only repeat them.
            along = others.pop((team.usage.queue, team.usage.instance_type), [])
            yield from _quota(team, along, leased(leases, team.usage.team, team.usage.instance_type))


def _quota(team: TeamUsage, others: list[QuotaUsage], moved: Mapping[str, int]) -> Iterator[Measurement]:
    line = team.usage
    place = (line.team, line.instance_type, line.resource)
    for quota_metric, amount in _amounts(line):
        along = {
            f"{quota_metric.name}_{metric_name(other.resource)}": _metered(other, quota_metric)
            for other in others
            if _is_there(other)
        }
        if quota_metric is metric.QUOTA_GUARANTEED and "instances" in moved:
            along["leasedInstances"] = moved["instances"]
        if quota_metric is metric.QUOTA_GUARANTEED and moved.keys() - {"instances"}:
            along["leasedParts"] = leased_words({unit: n for unit, n in moved.items() if unit != "instances"})
        yield quota_metric.of(in_metrics(line.resource, amount), *place, **along)
    if (utilization := line.borrow_limit_utilisation) is not None:
        yield metric.BORROW_LIMIT_UTILIZATION.of(float(100 * utilization), *place)
    if team.entitlement is not None:
        yield metric.FAIR_SHARE_ENTITLEMENT.of(in_metrics(line.resource, team.entitlement), *place)
        deviation = in_metrics(line.resource, line.used - team.entitlement)
        yield metric.FAIR_SHARE_DEVIATION.of(deviation, *place, infiniteShare=team.infinite_share)


def _amounts(line: QuotaUsage) -> tuple[tuple[Metric, int], ...]:
    return (
        (metric.QUOTA_GUARANTEED, line.guaranteed),
        (metric.QUOTA_USED, line.used),
        (metric.BORROWED, line.borrowed),
        (metric.LENT, line.lent),
        (metric.IDLE, line.idle),
        (metric.OVER_QUOTA, line.over_quota),
    )


def _metered(line: QuotaUsage, wanted: Metric) -> Property:
    return in_metrics(line.resource, next(amount for quota_metric, amount in _amounts(line) if quota_metric is wanted))


def _is_there(line: QuotaUsage) -> bool:
    return bool(line.guaranteed or line.used)


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
