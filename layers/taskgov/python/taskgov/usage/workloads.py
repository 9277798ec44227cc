"""Which workloads wait and which were preempted, for whom and why: Kueue's Workloads as records of teams.

Metrics count them, explanations tell them. A preemption has an identity (the workload's uid and the moment), so that it
counts once however often it is seen. Kueue keeps the condition until the workload is admitted again; what is evicted
and admitted again between two looks is not seen.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from taskgov.hyperpod import names
from taskgov.quantities import is_accelerator
from taskgov.scheduling.instants import Instant, moment
from taskgov.scheduling.objects import Condition, Workload
from taskgov.scheduling.reading import namespace_of, read_workload
from taskgov.scheduling.status_reading import is_met, read_conditions

KubernetesObject = Mapping[str, Any]

PREEMPTION_REASONS: Final = {
    "InClusterQueue": "a task of higher priority in the same queue",
    "InCohortReclamation": "quota that it borrowed was reclaimed",
    "InCohortFairSharing": "fair sharing between teams that borrow",
    "InCohortReclaimWhileBorrowing": "a task of higher priority that borrows",
}
"""What Kueue's reasons mean; others are shown as they are."""
_MESSAGE: Final = re.compile(
    r"\(UID: (?P<uid>[^,)]*)(?:, JobUID: (?P<job>[^)]*))?\)"
    r"(?:.*?; preemptor path: (?P<preemptor>[^;]*); preemptee path: (?P<preemptee>[^;]*))?"
)
"""Kueue's sentence from 0.10 on: the job's uid came with 0.11, the paths of the two queues with 0.15."""


@dataclass(frozen=True, slots=True)
class TeamPending:
    """What waits for quota in one team's namespace."""

    team: str
    workloads: int
    accelerators: int
    """What they ask for, MIG partitions counted as one each."""
    oldest_since: datetime | None

    def oldest_wait(self, now: datetime) -> timedelta:
        """Return how long the oldest has waited; nothing waits for no time."""
        return max(now - self.oldest_since, timedelta()) if self.oldest_since else timedelta()


@dataclass(frozen=True, slots=True)
class Preemption:
    """One preemption of one workload."""

    uid: str
    namespace: str
    name: str
    team: str
    at: datetime
    reason: str
    """InClusterQueue, InCohortReclamation, InCohortFairSharing or InCohortReclaimWhileBorrowing."""
    message: str
    accelerators: int
    ran_since: datetime | None
    """When it was admitted, as long as it has not released its quota; None once nobody can tell."""
    preempting_team: str | None
    preempting_queue: str | None
    preemptor_uid: str | None
    preemptor_job_uid: str | None

    @property
    def identity(self) -> str:
        """Return what makes this preemption this one."""
        return f"{self.uid}#{self.at:%Y-%m-%dT%H:%M:%SZ}"


def pending_by_team(workloads: Iterable[KubernetesObject]) -> tuple[TeamPending, ...]:
    """Return what waits, for each team of which something does, by name.

    Waiting are workloads without a quota reservation that are neither finished nor deactivated. A preempted one waits
    since its eviction, any other since its creation.
    """
    waiting: dict[str, list[tuple[int, Instant]]] = {}
    for workload, conditions in _read(filter(waits, workloads)):
        since = _waits_since(workload, conditions)
        waiting.setdefault(_team(workload), []).append((_accelerators(workload), since))
    return tuple(
        TeamPending(team, len(some), sum(asked for asked, _ in some), moment(min(since for _, since in some)))
        for team, some in sorted(waiting.items())
    )


def waiting_for(workloads: Iterable[KubernetesObject]) -> frozenset[tuple[str, str]]:
    """Return for which instance type work of which team waits (see `pending_by_team`); "" where any type would do."""
    found: set[tuple[str, str]] = set()
    for item in filter(waits, workloads):
        namespace = namespace_of(item)
        team = names.team_of_namespace(namespace) or namespace
        found |= {(team, instance_type) for instance_type in wanted_types(item)}
    return frozenset(found)


def waiting_since(workloads: Iterable[KubernetesObject]) -> dict[str, datetime]:
    """Return since when each waiting workload waits (see `pending_by_team`), by uid."""
    return {
        workload.uid: moment(_waits_since(workload, conditions))
        for workload, conditions in _read(filter(waits, workloads))
    }


def preemptions_of(workloads: Iterable[KubernetesObject]) -> tuple[Preemption, ...]:
    """Return every preemption that the workloads' conditions tell of, oldest first."""
    found = (
        _preemption(workload, conditions)
        for workload, conditions in _read(item for item in workloads if is_met(item.get("status") or {}, "Preempted"))
    )
    return tuple(sorted(found, key=lambda preemption: (preemption.at, preemption.identity)))


def _preemption(workload: Workload, conditions: Mapping[str, Condition]) -> Preemption:
    condition = conditions["Preempted"]
    message = str(condition.message)
    said = _MESSAGE.search(message)
    queue = _queue(said["preemptor"]) if said else None
    own = condition.reason == "InClusterQueue"
    return Preemption(
        uid=workload.uid,
        namespace=workload.namespace,
        name=workload.name,
        team=_team(workload),
        at=moment(condition.since),
        reason=condition.reason,
        message=message,
        accelerators=_accelerators(workload),
        ran_since=moment(conditions["Admitted"].since) if _is_true(conditions, "Admitted") else None,
        preempting_team=names.team_of_cluster_queue(queue) or queue if queue else _team(workload) if own else None,
        preempting_queue=queue,
        preemptor_uid=_known(said["uid"]) if said else None,
        preemptor_job_uid=_known(said["job"]) if said else None,
    )


def _read(workloads: Iterable[KubernetesObject]) -> Iterator[tuple[Workload, dict[str, Condition]]]:
    for workload in workloads:
        yield read_workload(workload, {}), read_conditions(workload.get("status") or {})


def waits(workload: KubernetesObject) -> bool:
    """Say whether a workload waits (see `pending_by_team`)."""
    if (workload.get("spec") or {}).get("active") is False:
        return False
    status = workload.get("status") or {}
    return not is_met(status, "QuotaReserved") and not is_met(status, "Finished")


def _waits_since(workload: Workload, conditions: Mapping[str, Condition]) -> Instant:
    return conditions["Evicted"].since if _is_true(conditions, "Evicted") else workload.created


def wanted_types(item: KubernetesObject) -> set[str]:
    """Return the instance types that the pods' node selectors name; "" for pods that name none."""
    specs = (pod_set.get("template", {}).get("spec", {}) for pod_set in item["spec"].get("podSets", ()))
    return {str((spec.get("nodeSelector") or {}).get(names.INSTANCE_TYPE_LABEL, "")) for spec in specs}


def _team(workload: Workload) -> str:
    """Return whose namespace it is; a namespace that HyperPod did not make stands for itself."""
    return names.team_of_namespace(workload.namespace) or workload.namespace


def _accelerators(workload: Workload) -> int:
    return sum(
        pods.count * amount
        for pods in workload.pod_sets
        for resource, amount in pods.requests
        if is_accelerator(resource)
    )


def _queue(path: str | None) -> str | None:
    """Return the last step of `/shared-pool/hyperpod-ns-team-b-clusterqueue`."""
    return _known(path.strip().rpartition("/")[2]) if path else None


def _known(text: str | None) -> str | None:
    """Kueue writes UNKNOWN for what it does not know."""
    return None if not text or text == "UNKNOWN" else text


def _is_true(conditions: Mapping[str, Condition], kind: str) -> bool:
    return kind in conditions and conditions[kind].status
