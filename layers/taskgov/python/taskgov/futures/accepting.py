"""What can the fast replay not do? Then the exact model does it (`taskgov_explain.simulation`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.scheduling.config import GATE_DEFAULTS
from taskgov.scheduling.demand import demand_of
from taskgov.scheduling.matching import selects
from taskgov.scheduling.nomination import namespace_labels
from taskgov.scheduling.objects import BEST_EFFORT_FIFO, PREEMPTION_OVER_BORROWING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskgov.futures.jobs import Job, Jobs
    from taskgov.futures.setting import Change, Setting
    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.objects import ClusterQueue, Quota

LARGEST: Final = 2**60
"""Greater amounts may saturate in sums, which only the exact model follows."""
_RUN: Final = "None"
_HOLD: Final = "Hold"
_WITHOUT_EFFECT: Final = frozenset({"DisableWaitForPodsReady"})
"""Gates that change no decision by themselves: what they switch off is off in the configuration as it is read."""


def accepts(setting: Setting, jobs: Jobs, changes: Sequence[Change] = ()) -> tuple[str, ...]:
    """Return the reasons why these jobs under this setting need the exact model; none when `replay` does it."""
    found = [*_of_manager(setting.config), *_of_queues(setting), *_of_changes(setting, changes)]
    return tuple(dict.fromkeys([*found, *_of_jobs(setting, jobs)]))


def _of_manager(config: ManagerConfig) -> Iterator[str]:
    for gate, on in sorted(config.gates.items()):
        if GATE_DEFAULTS.get(gate, on) != on and gate not in _WITHOUT_EFFECT:
            yield f"feature gate {gate} is {'on' if on else 'off'}"
    if config.wait_for_pods_ready_block_admission:
        yield "admission waits for pods to be ready"


def _of_queues(setting: Setting) -> Iterator[str]:
    nested = {cohort.name for cohort in setting.cohorts if cohort.parent}
    nested |= {cohort.parent for cohort in setting.cohorts if cohort.parent}
    for queue in setting.queues:
        if queue.cohort in nested:
            yield f"queue {queue.name} is in a cohort of cohorts"
        if setting.config.admission_fair_sharing is not None and queue.fair_admission:
            yield f"the LocalQueues of queue {queue.name} take turns by usage"
        yield from (f"queue {queue.name} {why}" for why in _of_queue(queue))
    for cohort in setting.cohorts:
        if any(map(_is_large, cohort.quotas.values())):
            yield f"cohort {cohort.name} has a quota without bound"
    for door in setting.doors:
        if door.stop_policy not in {_RUN, _HOLD}:
            yield f"LocalQueue {door.namespace}/{door.name} is drained"


def _of_changes(setting: Setting, changes: Sequence[Change]) -> Iterator[str]:
    before = {queue.name: queue for queue in setting.queues}
    for change in changes:
        for queue in change.queues:
            was = before.get(queue.name)
            if was is None:
                yield f"queue {queue.name} comes later"
            elif (was.cohort, was.groups, was.namespace_selector) != (
                queue.cohort,
                queue.groups,
                queue.namespace_selector,
            ):
                yield f"queue {queue.name} changes its cohort, flavors or namespaces"
            yield from (f"queue {queue.name} {why}" for why in _of_queue(queue))


def _of_queue(queue: ClusterQueue) -> Iterator[str]:
    if queue.strategy != BEST_EFFORT_FIFO:
        yield f"is {queue.strategy}"
    if queue.checks:
        yield "has admission checks"
    if queue.stop_policy not in {_RUN, _HOLD}:
        yield "is drained"
    if queue.fungibility.preference == PREEMPTION_OVER_BORROWING and any(len(g.resources) > 1 for g in queue.groups):
        yield "prefers preemption to borrowing, of several resources"
    if any("pods" in group.resources for group in queue.groups):
        yield "counts pods"
    if any(map(_is_large, queue.quotas.values())):
        yield "has a quota without bound"


def _is_large(quota: Quota) -> bool:
    amounts = (quota.nominal, quota.borrowing_limit or 0, quota.lending_limit or 0)
    return any(amount >= LARGEST for amount in amounts)


def _of_jobs(setting: Setting, jobs: Jobs) -> Iterator[str]:
    selectors = {queue.name: queue.namespace_selector for queue in setting.queues}
    doors = {(door.namespace, door.name): door.cluster_queue for door in setting.doors}
    for namespace, door in sorted({origin for origin, _ in jobs.origins}):
        queue = doors.get((namespace, door))
        labels = namespace_labels(setting.namespaces, namespace)
        if queue in selectors and not selects(selectors[queue], labels):
            yield f"queue {queue} does not admit namespace {namespace}"
    for pod_sets in dict.fromkeys(pod_sets for _, (pod_sets, _) in jobs.origins):
        demand = demand_of(pod_sets, ())
        if demand.can_shrink:
            yield "a job may be admitted with fewer pods"
        if any(amount >= LARGEST for part in demand.pod_sets for amount in part.requests.values()):
            yield "a job requests an amount without bound"
    open_doors = {(door.namespace, door.name): door.cluster_queue for door in setting.doors if door.stop_policy == _RUN}
    for job in jobs.jobs:
        yield from _of_job(job)
        if job.held is not None:
            holder = job.held.admission.cluster_queue
            if holder not in selectors:
                yield f"a job runs in queue {holder}, which is not there"
            elif open_doors.get((job.workload.namespace, job.workload.queue)) != holder:
                # Kueue looks for who may start once it ends by way of its LocalQueue (`notify_of`).
                yield f"a job runs in queue {holder}, to which its LocalQueue does not lead now"


def _of_job(job: Job) -> Iterator[str]:
    workload = job.workload
    if workload.replaces:
        yield "a job is a slice of an elastic job"
    if workload.gates:
        yield "a job is gated"
    if workload.reclaimable:
        yield "a job has reclaimable pods"
    if workload.refusal:
        yield "a job is refused"
    if not workload.active:
        yield "a job is deactivated"
