"""What does a cycle leave behind? Admissions, evictions and conditions are written; the rest goes back in line.

Called by `kueue_model` after each cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling import lifecycle
from taskgov.scheduling.inquiry import preemption
from taskgov.scheduling.instants import read_now
from taskgov.scheduling.objects import Admission
from taskgov.scheduling.reasons import (
    MISCONFIGURED,
    PENDING,
    PENDING_EVALUATION,
    WAITING,
    WAITING_FOR_PODS_READY,
    WAITING_FOR_PREEMPTED,
    WAITING_FOR_QUOTA,
)
from taskgov.scheduling.results import Admitted, CycleResult, Preempted, Requeue, Waiting
from taskgov.scheduling.state import QUOTA_RESERVED
from taskgov.scheduling.upkeep import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov.scheduling.blocking import HeldCycle
    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.cycle import Cycle
    from taskgov.scheduling.instants import Instant, Now
    from taskgov.scheduling.nomination import Entry
    from taskgov.scheduling.objects import Condition
    from taskgov.scheduling.state import Record
    from taskgov.scheduling.unmodelled import NotModelled


def conclude(
    run: Cycle, not_modelled: tuple[NotModelled, ...], reserved_at: Callable[[str], Now | None] | None = None
) -> CycleResult:
    """Carry out what a cycle decided; `reserved_at` as in `KueueModel.cycle`."""
    admitted: list[Admitted] = []
    preempted: list[Preempted] = []
    waiting: list[Waiting] = []
    explicit = run.config.gate("UnadmittedWorkloadsObservability")
    for entry in run.processed:
        if entry.admitted:
            moment = reserved_at(entry.record.key) if reserved_at is not None else None
            admitted.append(_admit(entry, run.now if moment is None else read_now(moment), explicit=explicit))
            continue
        if entry.requeue is Requeue.PENDING_PREEMPTION and not entry.deferred:
            preempted += _preempt(entry, run.now)
        waiting.append(_wait(entry, run))
    if run.left is not None:
        waiting.append(_keep(run.left, run))
    return CycleResult(
        number=run.number,
        now=run.now,
        admitted=tuple(admitted),
        preempted=tuple(preempted),
        waiting=tuple(waiting),
        skipped_preemptions=run.skipped_preemptions,
        not_modelled=not_modelled,
    )


def tell_to_leave(record: Record, reason: str, message: str, now: Instant, preempted: str | None = None) -> None:
    """Evict a running workload; its place among the candidates changes with its conditions."""
    if record.queue is not None:
        record.queue.remove(record)
    lifecycle.tell_to_leave(record, reason, message, now, preempted)
    if record.queue is not None:
        record.queue.add(record)


def _admit(entry: Entry, now: Instant, *, explicit: bool) -> Admitted:
    record, queue, assignment = entry.record, entry.queue, entry.assignment
    queued_since = record.queued_since
    admission = Admission(queue.spec.name, assignment.granted)
    if queue.spec.checks or record.checks:
        ask(record, queue.spec, admission, now)
    usage = None if entry.victims else assignment.usage  # that of a slice is only what it holds beyond another one
    lifecycle.admit(record, admission, now, usage, explicit=explicit)
    queue.pending.remove(record)
    queue.add(record)
    queue.generation += 1  # the controller takes it out of the cache and puts it in again with its conditions
    return Admitted(
        workload=record.key,
        uid=record.workload.uid,
        cluster_queue=queue.spec.name,
        admission=admission,
        assignment=assignment,
        queued_since=queued_since,
        waits_for=record.unready if record.checks else (),
        job_uid=record.workload.job_uid,
        replaces=entry.victims[0].record.key if entry.victims else "",
    )


def _preempt(entry: Entry, now: Instant) -> list[Preempted]:
    """Evict the victims, except those that are being evicted already."""
    issued = []
    for record, reason in entry.told:
        queue = record.queue
        if queue is None or record.evicted:
            continue
        issued.append(preemption(entry.record, entry.queue, record, queue, reason))
        tell_to_leave(record, "Preempted", issued[-1].message, now, preempted=reason)
    return issued


def _wait(entry: Entry, run: Cycle) -> Waiting:
    record, queue = entry.record, entry.queue
    reason = _reason(entry, run.config)
    explicit = run.config.gate("UnadmittedWorkloadsObservability")
    before = record.conditions.get(QUOTA_RESERVED)
    lifecycle.wait(record, reason, entry.verdict, run.now, explicit=explicit)
    in_line = queue.pending.requeue(record, entry.requeue, waits_for_backoff=record.requeue_at is not None)
    if not run.config.gate("FlavorFungibilityPreserveScanProgress") and _says_something_new(record, before):
        record.scan = None
    return Waiting(record.key, queue.spec.name, reason, entry.verdict, entry.requeue, in_line=in_line)


def _keep(left: HeldCycle, run: Cycle) -> Waiting:
    """Keep those whom a cycle that is held up continues with, and say what the first of them waits for."""
    for entry in left.entries:
        entry.queue.pending.keep(entry.record)
    first = left.entries[0]
    explicit = run.config.gate("UnadmittedWorkloadsObservability")
    reason = WAITING_FOR_PODS_READY if explicit else WAITING
    lifecycle.wait(first.record, reason, first.verdict, run.now, explicit=explicit)
    return Waiting(first.record.key, first.queue.spec.name, reason, first.verdict, first.requeue, in_line=True)


def _says_something_new(record: Record, before: Condition | None) -> bool:
    """Return whether a workload's condition was written: Kueue queues a workload that is updated as a new one."""
    now = record.conditions[QUOTA_RESERVED]
    if before is None or before.status:
        return True
    return (now.reason, str(now.message)) != (before.reason, str(before.message))


def _reason(entry: Entry, config: ManagerConfig) -> str:
    if not config.gate("UnadmittedWorkloadsObservability"):
        return PENDING
    match entry.requeue:
        case Requeue.NAMESPACE_MISMATCH | Requeue.GENERIC:
            return PENDING_EVALUATION if entry.record.has_failed_check else MISCONFIGURED
        case Requeue.PENDING_PREEMPTION:
            return WAITING_FOR_PREEMPTED
        case Requeue.NO_FIT:
            return entry.assignment.blocker.token
        case Requeue.NO_CANDIDATES | Requeue.FAILED_AFTER_NOMINATION:
            return WAITING_FOR_QUOTA
        case Requeue.KEPT:
            return WAITING_FOR_PODS_READY
