"""Who holds what of the instance types that a workload requests: teams, and their workloads."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import datetime

from taskgov.kueue.named import named
from taskgov.scheduling import Admission, moment
from taskgov.scheduling.objects import FlavorResource, flavor_resource, split
from taskgov.scheduling.status_reading import read_admission, read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov.usage.quota_usage import usage_at


@dataclass(frozen=True, slots=True)
class Held:
    """What one workload holds of one resource of one instance type."""

    workload: str
    amount: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Holder:
    """One team on one instance type and resource, in base units, and its workloads there, the largest first."""

    team: str
    instance_type: str
    resource: str
    guaranteed: int
    used: int
    borrowed: int
    over_quota: int
    lent: int
    idle: int
    workloads: tuple[Held, ...]


def holders_of(snapshot: Snapshot, keys: Iterable[FlavorResource]) -> tuple[Holder, ...]:
    """Return who has quota or holds anything of these flavors and resources; by instance type, the largest first."""
    wanted = set(keys)
    lines = usage_at(snapshot.kueue, set(map(split, wanted))).lines
    running = _running(snapshot.kueue.workloads, wanted)
    found = (
        Holder(
            team=line.team,
            instance_type=line.instance_type,
            resource=line.resource,
            guaranteed=line.guaranteed,
            used=line.used,
            borrowed=line.borrowed,
            over_quota=line.over_quota,
            lent=line.lent,
            idle=line.idle,
            workloads=_workloads(running.get(line.queue, ()), line.instance_type, line.resource),
        )
        for line in lines
        if line.guaranteed or line.used
    )
    return tuple(sorted(found, key=lambda holder: (holder.instance_type, holder.resource, -holder.used, holder.team)))


_Running = tuple[KubernetesObject, Admission]


def _running(items: Iterable[KubernetesObject], wanted: Container[FlavorResource]) -> dict[str, list[_Running]]:
    """Return the workloads that hold any of these, with what they hold, by their ClusterQueue."""
    by_queue: dict[str, list[_Running]] = {}
    for item in items:
        status = item.get("status") or {}
        admission = read_admission(status) if _holds(status, wanted) else None
        if admission is not None:
            finished = read_conditions(status).get("Finished")
            if finished is None or not finished.status:
                by_queue.setdefault(admission.cluster_queue, []).append((item, admission))
    return by_queue


def _holds(status: KubernetesObject, wanted: Container[FlavorResource]) -> bool:
    assigned = (status.get("admission") or {}).get("podSetAssignments") or ()
    return any(
        flavor_resource(flavor, resource) in wanted
        for pods in assigned
        for resource, flavor in (pods.get("flavors") or {}).items()
    )


def _workloads(running: Iterable[_Running], instance_type: str, resource: str) -> tuple[Held, ...]:
    held = (
        Held(named(item).shown, amount, _since(item))
        for item, admission in running
        if (amount := _amount(admission, instance_type, resource))
    )
    return tuple(sorted(held, key=lambda holding: (-holding.amount, holding.workload)))


def _amount(admission: Admission, instance_type: str, resource: str) -> int:
    some = (pods for pods in admission.pod_sets if pods.flavors.get(resource) == instance_type)
    return sum(pods.usage.get(resource, 0) for pods in some)


def _since(item: KubernetesObject) -> datetime | None:
    admitted = read_conditions(item.get("status") or {}).get("Admitted")
    return moment(admitted.since) if admitted and admitted.status else None
