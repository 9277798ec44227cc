"""Which queues and workloads take part? A stopped or broken queue admits nothing, and may evict its workloads.

Called by `store`. Rules: `pkg/cache/scheduler/clusterqueue.go` and `pkg/controller/core/workload_controller.go` of
Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.scheduling.forest import in_circle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling.eligibility import FlavorBook
    from taskgov.scheduling.objects import ClusterQueue, Cohort, LocalQueue
    from taskgov.scheduling.state import Record

RUN: Final = "None"
DRAIN: Final = "HoldAndDrain"


def inactive_because(
    queue: ClusterQueue, cohorts: Mapping[str, Cohort], flavors: FlavorBook, checks: Mapping[str, bool]
) -> str | None:
    """Say why a cluster queue takes no workloads, `None` when it is active (Kueue: its Active condition).

    `checks` are the AdmissionChecks by name, and whether each is active. Where there are none at all nothing is known
    about them, and those that a queue names count as active: not every dump has them.
    """
    if queue.stop_policy != RUN:
        return "Stopped"
    if queue.cohort and in_circle(queue.cohort, cohorts):
        return "CohortCycleDetected"
    if not all(flavors.has_all(group.flavors) for group in queue.groups):
        return "FlavorNotFound"
    if queue.checks and checks:
        if any(name not in checks for name, _ in queue.checks):
            return "AdmissionCheckNotFound"
        if not all(checks[name] for name, _ in queue.checks):
            return "AdmissionCheckInactive"
    return None


def drained_because(record: Record, local_queue: LocalQueue | None) -> tuple[str, str] | None:
    """Say for which reason, in which words, a running workload has to leave; `None` when it may stay."""
    if record.admission is None or record.finished:
        return None
    if not record.workload.active:
        return "Deactivated", "The workload is deactivated"
    if record.queue is not None and record.queue.spec.stop_policy == DRAIN:
        return "ClusterQueueStopped", "The ClusterQueue is stopped"
    if local_queue is not None and local_queue.stop_policy == DRAIN:
        return "LocalQueueStopped", "The LocalQueue is stopped"
    return None
