"""Who may be preempted next? Workloads on borrowed quota, when a lender reclaims its own.

For each team with unused quota, workloads of growing size within that quota are put to the scheduling model: whom would
it preempt? The smallest size at which somebody is a victim is that one's distance from preemption.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL
from taskgov.kueue.named import Named
from taskgov.quantities import format_quantity
from taskgov.scheduling import KueueModel, timestamp
from taskgov.scheduling.instants import instant
from taskgov.snapshot.model import Snapshot
from taskgov.usage.capacity import Offers, leading_in
from taskgov.usage.quota_usage import QuotaUsage, Usage, usage_at
from taskgov_explain.find import workloads_in


@dataclass(frozen=True, slots=True)
class Risk:
    """A running workload that is preempted once `lender` submits `size` (base units) or more of its unused quota."""

    workload: str
    team: str
    lender: str
    instance_type: str
    resource: str
    size: int
    unused: int
    reason: str
    key: str


def risks_of(
    snapshot: Snapshot, world: KueueModel, victim: str | None = None, *, usage: Usage | None = None
) -> tuple[Risk, ...]:
    """Return the risk of each running workload towards each lender, the nearest first; of one only, if it is named.

    `usage` is that of the snapshot's leading resources, where it is known.
    """
    held = None if victim is None else _held(world, victim)
    if held is not None and not held:
        return ()
    names = {workload.key: workload for workload in workloads_in(snapshot.kueue)}
    if usage is None:
        leading = leading_in(snapshot.kueue, Offers(snapshot))
        usage = usage_at(snapshot.kueue, leading if held is None else leading & held)
    lines = [line for line in usage.lines if line.used < line.guaranteed]
    found: dict[tuple[str, str, str], Risk] = {}
    for risk in _risks(snapshot, world, lines, names):
        if victim in {None, risk.key}:
            found.setdefault((risk.key, risk.lender, risk.instance_type), risk)
    return tuple(sorted(found.values(), key=lambda risk: (risk.size, risk.workload, risk.lender)))


def _held(world: KueueModel, workload: str) -> frozenset[tuple[str, str]]:
    """Return the instance types and resources that a workload holds: nobody is preempted for others."""
    admission = world.admission(workload) if workload in world.workloads() else None
    pod_sets = () if admission is None else admission.pod_sets
    return frozenset((flavor, resource) for pod_set in pod_sets for resource, flavor in pod_set.flavors.items())


def _risks(
    snapshot: Snapshot, world: KueueModel, lines: Iterable[QuotaUsage], names: Mapping[str, Named]
) -> Iterator[Risk]:
    """Give victims of each lender's next workload, from the smallest size up to all that it has left."""
    sizes = [
        (line, size)
        for line in lines
        for size in _sizes(line.guaranteed - line.used, 1000 if line.resource == "cpu" else 1)
    ]
    answers = world.victims_of_each((_next_workload(snapshot, line, size), line.queue) for line, size in sizes)
    for (line, size), victims in zip(sizes, answers, strict=True):
        for victim in victims:
            named_victim = names.get(victim.workload)
            yield Risk(
                workload=named_victim.shown if named_victim else victim.workload,
                team=named_victim.team if named_victim else "",
                lender=line.team,
                instance_type=line.instance_type,
                resource=line.resource,
                size=size,
                unused=line.guaranteed - line.used,
                reason=victim.reason,
                key=victim.workload,
            )


def _sizes(most: int, unit: int) -> list[int]:
    """Return 1, 2, 4, ... units, and all there is.

    Example:
        >>> _sizes(6, 1), _sizes(1, 1)
        ([1, 2, 4, 6], [1])

    """
    sizes = []
    size = unit
    while size < most:
        sizes.append(size)
        size *= 2
    return [*sizes, most]


def _next_workload(snapshot: Snapshot, line: QuotaUsage, size: int) -> dict[str, Any]:
    """Return a workload of a lender that requests `size` of the instance type, with the lowest priority there is."""
    requests = {line.resource: format_quantity(line.resource, size)}
    pod = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "nodeSelector": {INSTANCE_TYPE_LABEL: line.instance_type},
    }
    return {
        "kind": "Workload",
        "metadata": {
            "name": "next",
            "namespace": "taskgov-what-if",
            "creationTimestamp": timestamp(instant(snapshot.taken_at)),
        },
        "spec": {"queueName": "next", "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]},
    }
