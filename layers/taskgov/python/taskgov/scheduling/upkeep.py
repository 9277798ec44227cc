"""What does Kueue's workload controller do between cycles? It reads admission checks, and gates and evicts.

Called by `kueue_model` before each cycle and whenever workloads that may not run are evicted. Rules:
`pkg/controller/core/workload_controller.go`, `pkg/workload/admissionchecks.go` and `pkg/workload/evict` of Kueue.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from taskgov.scheduling import lifecycle
from taskgov.scheduling.activity import RUN
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import CHECK_PENDING, CHECK_REJECTED, CHECK_RETRY, CheckState
from taskgov.scheduling.reasons import ADMISSION_GATED, GATE_CLEARED, PENDING, PENDING_EVALUATION
from taskgov.scheduling.state import BY_ADMISSION_CHECK, QUOTA_RESERVED

if TYPE_CHECKING:
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Admission, ClusterQueue
    from taskgov.scheduling.state import Record
    from taskgov.scheduling.workload_store import WorkloadStore

DEACTIVATED_BY_CHECK: Final = f"DeactivatedDueTo{BY_ADMISSION_CHECK}"


def keep_up(store: WorkloadStore, now: Instant) -> None:
    """Write what should be said of the workloads that changed since: closed gates, checks to wait for, admission."""
    while store.unsaid:
        _, record = store.unsaid.popitem()
        if record.finished:
            continue
        if record.admission is None:
            _say_gates(store, record, now)
            if record.stopped_by and _runs_again(store, record):
                lifecycle.come_back(record, now)
        queue = store.queue_of(record)
        if queue is not None:
            ask(record, queue.spec, record.admission, now)
            lifecycle.sync_admitted(record, now, explicit=store.explicit)


def ask(record: Record, queue: ClusterQueue, admission: Admission | None, now: Instant) -> None:
    """Have the checks on a workload that its queue requires: new ones are pending, others are dropped."""
    names = required(queue, admission)
    if names != record.checks.keys():
        record.checks = {name: record.checks.get(name) or CheckState(CHECK_PENDING, since=now) for name in names}


def required(queue: ClusterQueue, admission: Admission | None) -> set[str]:
    """Name the checks of a workload: those of the flavors that it has; before that, those of all flavors alike.

    Kueue: `AdmissionChecksForWorkload` in `pkg/workload/workload.go`.
    """
    if not queue.checks:
        return set()
    flavors = {flavor for group in queue.groups for flavor in group.flavors}
    asked = {name: set(on) or flavors for name, on in queue.checks}
    if admission is None:
        return {name for name, on in asked.items() if on >= flavors}
    taken = {flavor for pod_set in admission.pod_sets for flavor in pod_set.flavors.values()}
    return {name for name, on in asked.items() if on & taken}


def order_to_leave(store: WorkloadStore, record: Record, now: Instant) -> tuple[str, str] | None:
    """Say for which reason, in which words, a workload that holds quota has to leave; `None` when it may stay.

    One that a check has rejected is deactivated. One that a check sends back may come again when the check says so.
    """
    if record.admission is None or record.finished or record.evicted:
        return None
    if record.workload.active and (said := _said_by(record, CHECK_REJECTED)):
        record.workload = replace(record.workload, active=False)
        record.requeue_count, record.requeue_at = 0, None
        return DEACTIVATED_BY_CHECK, f"The workload is deactivated due to {said}"
    if record.workload.active and (said := _said_by(record, CHECK_RETRY)):
        record.requeue_at = _may_come_back(record, now)
        return BY_ADMISSION_CHECK, f"Evicted due to {said}"
    return store.drained_because(record) if record.admitted else None


def loses_its_reservation(store: WorkloadStore, record: Record) -> str | None:
    """Say why a workload that is not admitted yet loses its quota at once, without an eviction; `None` if it keeps it.

    Kueue: `reconcileOnLocalQueueActiveState` and `reconcileOnClusterQueueActiveState`.
    """
    if record.admission is None or record.finished or record.evicted or record.admitted:
        return None
    workload = record.workload
    local = store.local_queue_of(record)
    if local is None:
        return f"LocalQueue {workload.queue} is terminating or missing"
    if local.stop_policy != RUN:
        return f"LocalQueue {workload.queue} is stopped"
    queue = store.queues.get(local.cluster_queue)
    if queue is None:
        return f"ClusterQueue {local.cluster_queue} is terminating or missing"
    return f"ClusterQueue {local.cluster_queue} is stopped" if queue.spec.stop_policy != RUN else None


def _runs_again(store: WorkloadStore, record: Record) -> bool:
    """Return whether the reason for keeping a workload out is gone.

    Kueue: `isDisabledRequeuedByClusterQueueStopped` and its like.
    """
    workload = record.workload
    local = store.local_queue_of(record)
    if not workload.active or record.stopped_by == "Deactivated":
        return workload.active
    if record.stopped_by == "LocalQueueStopped":
        return local is not None and local.stop_policy == RUN
    queue = store.queues.get(local.cluster_queue) if local is not None and local.stop_policy == RUN else None
    return queue is not None and queue.spec.stop_policy == RUN


def _say_gates(store: WorkloadStore, record: Record, now: Instant) -> None:
    """Write that gates are closed, once (with granular reasons: whenever they change), and that none is any more."""
    gated, explicit = f"Admission is gated by: {record.gates}", store.explicit
    if record.gates and (
        not record.gates_said or (explicit and str(record.conditions[QUOTA_RESERVED].message) != gated)
    ):
        lifecycle.wait(record, ADMISSION_GATED, gated, now, explicit=explicit)
    elif record.gates_said and not record.gates:
        pending = PENDING_EVALUATION if explicit else PENDING
        lifecycle.wait(record, pending, GATE_CLEARED, now, explicit=explicit)


def _said_by(record: Record, state: str) -> str:
    """Name the checks in a state, with their messages, as in Kueue's message; empty for none."""
    said = [(name, check.message) for name, check in sorted(record.checks.items()) if check.state == state]
    parts = "; ".join(f'"{name}" ({message})' if message else f'"{name}"' for name, message in said)
    noun = "AdmissionChecks" if len(said) > 1 else "AdmissionCheck"
    return f"{noun} in {state} state: {parts}" if said else ""


def _may_come_back(record: Record, now: Instant) -> Instant | None:
    """Return the latest moment that a check names for another try, if it is yet to come (Kueue: `GetMaxRetryTime`)."""
    moments = [
        check.since + check.requeue_after * SECOND
        for check in record.checks.values()
        if check.state == CHECK_RETRY and check.requeue_after is not None
    ]
    latest = max([*moments, record.requeue_at or now])
    return latest if latest > now else None
