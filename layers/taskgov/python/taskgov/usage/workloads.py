"""Which workloads wait and which were preempted, for whom and why: Kueue's Workloads as records of teams.

Metrics count them, explanations name them. A preemption has an identity (the workload's uid and the moment), so that it
counts once however often it is seen. Kueue keeps the condition until the workload is admitted again; what is evicted
and admitted again between two measurements is not noticed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from taskgov.hyperpod import names
from taskgov.scheduling.instants import moment
from taskgov.snapshot.model import KueueObjects
from taskgov.usage.pods_asked import accelerators_of
from taskgov.usage.workload_facts import Backlog, Preempted, WorkloadFacts, backlog_in

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
    job: str
    team: str
    at: datetime
    reason: str
    """InClusterQueue, InCohortReclamation, InCohortFairSharing or InCohortReclaimWhileBorrowing."""
    message: str
    accelerators: int
    ran_since: datetime | None
    """When it was admitted, as long as it has not released its quota; None once that is unknown."""
    preempting_team: str | None
    preempting_queue: str | None
    preemptor_uid: str | None
    preemptor_job_uid: str | None

    @property
    def identity(self) -> str:
        """Return what makes this preemption this one."""
        return f"{self.uid}#{self.at:%Y-%m-%dT%H:%M:%SZ}"


def pending_by_team(kueue: KueueObjects) -> tuple[TeamPending, ...]:
    """Return what waits, for each team of which something does, by name."""
    waiting: dict[str, list[Backlog]] = {}
    for backlog in backlog_in(kueue):
        waiting.setdefault(backlog.team, []).append(backlog)
    return tuple(
        TeamPending(
            team,
            sum(backlog.workloads for backlog in some),
            sum(backlog.workloads * accelerators_of(backlog.asks) for backlog in some),
            moment(min(backlog.oldest_since for backlog in some)),
        )
        for team, some in sorted(waiting.items())
    )


def preemptions_of(workloads: Iterable[WorkloadFacts]) -> tuple[Preemption, ...]:
    """Return every preemption that the workloads' conditions show, oldest first."""
    found = (_preemption(workload, workload.preempted) for workload in workloads if workload.preempted)
    return tuple(sorted(found, key=lambda preemption: (preemption.at, preemption.identity)))


def _preemption(workload: WorkloadFacts, preempted: Preempted) -> Preemption:
    said = _MESSAGE.search(preempted.message)
    queue = _queue(said["preemptor"]) if said else None
    own = preempted.reason == "InClusterQueue"
    return Preemption(
        uid=workload.uid,
        namespace=workload.namespace,
        name=workload.name,
        job=workload.job,
        team=workload.team,
        at=moment(preempted.at),
        reason=preempted.reason,
        message=preempted.message,
        accelerators=workload.accelerators,
        ran_since=None if preempted.ran_since is None else moment(preempted.ran_since),
        preempting_team=names.team_of_cluster_queue(queue) or queue if queue else workload.team if own else None,
        preempting_queue=queue,
        preemptor_uid=_known(said["uid"]) if said else None,
        preemptor_job_uid=_known(said["job"]) if said else None,
    )


def _queue(path: str | None) -> str | None:
    """Return the last step of `/shared-pool/hyperpod-ns-team-b-clusterqueue`."""
    return _known(path.strip().rpartition("/")[2]) if path else None


def _known(text: str | None) -> str | None:
    """Kueue writes UNKNOWN for what it does not know."""
    return None if not text or text == "UNKNOWN" else text
