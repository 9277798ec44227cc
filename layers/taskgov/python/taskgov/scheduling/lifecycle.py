"""What is written on a workload when something happens to it? Its conditions, exactly as Kueue 0.19 words them.

Called by `kueue_model`. Rules: `pkg/workload/workload.go`, `pkg/workload/evict` and
`pkg/controller/jobframework/reconciler.go` of Kueue.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from taskgov.scheduling.instants import SECOND, Instant
from taskgov.scheduling.objects import CHECK_PENDING, CHECK_RETRY, RESTARTS, CheckState
from taskgov.scheduling.reasons import NO_RESERVATION, UNSATISFIED_CHECKS
from taskgov.scheduling.state import (
    ADMITTED,
    BY_ADMISSION_CHECK,
    EVICTED,
    FINISHED,
    PODS_READY,
    PODS_READY_TIMEOUT,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    Record,
)

if TYPE_CHECKING:
    from taskgov.scheduling.config import RequeueBackoff
    from taskgov.scheduling.objects import Admission, Condition, Usage
    from taskgov.scheduling.results import Verdict

_WAITS_FOR_START: Final = "WaitForStart"
_WAITS_FOR_RECOVERY: Final = "WaitForRecovery"
_FAILED_ONCE: Final = {_WAITS_FOR_RECOVERY, "Recovered"}
_NOT_READY: Final = "Not all pods are ready or succeeded"
_COME_BACK_AT_ONCE: Final = {"Preempted", "NodeFailures"}


def admit(
    record: Record, admission: Admission, now: Instant, usage: Usage | None = None, *, explicit: bool = False
) -> None:
    """Reserve quota, and admit if no admission check is open; what was said about an earlier eviction is history.

    `usage` is what `admission` gives in all, where the caller has it.
    """
    record.hold(admission, usage)
    record.scan = None
    message = f"Quota reserved in ClusterQueue {admission.cluster_queue}"
    record.set_condition(QUOTA_RESERVED, status=True, reason=QUOTA_RESERVED, message=message, now=now)
    for kind in (EVICTED, PREEMPTED):
        before = record.conditions.get(kind)
        if before is not None and before.status:
            past = f"Previously: {before.message}"
            record.set_condition(kind, status=False, reason=QUOTA_RESERVED, message=past, now=now)
    if record.checks:
        sync_admitted(record, now, explicit=explicit)
    else:
        record.set_condition(ADMITTED, status=True, reason=ADMITTED, message="The workload is admitted", now=now)


def sync_admitted(record: Record, now: Instant, *, explicit: bool) -> None:
    """Admit a workload that holds quota once all checks agree; one that is admitted stays so until it leaves.

    That it is not is written only where `explicit`. Kueue: `SyncAdmittedCondition` in
    `pkg/workload/admissionchecks.go`.
    """
    before = record.conditions.get(ADMITTED)
    if record.admission is None or (before is not None and before.status):
        return
    if not record.checks or not record.unready:
        record.set_condition(ADMITTED, status=True, reason=ADMITTED, message="The workload is admitted", now=now)
    elif explicit:
        reason = "UnsatisfiedAdmissionChecks"
        record.set_condition(ADMITTED, status=False, reason=reason, message=UNSATISFIED_CHECKS, now=now)


def wait(record: Record, reason: str, message: str | Verdict, now: Instant, *, explicit: bool) -> None:
    """Say why there is no quota.

    That it is not admitted is said of a workload that was; of every one only where `explicit` (the feature gate
    `UnadmittedWorkloadsObservability`). Kueue: `SyncAdmittedCondition` in `pkg/workload/admissionchecks.go`.
    """
    record.set_condition(QUOTA_RESERVED, status=False, reason=reason, message=message, now=now)
    admitted = record.conditions.get(ADMITTED)
    if explicit or (admitted is not None and admitted.status):
        unready = bool(record.checks) and not explicit and bool(record.unready)
        message = f"{NO_RESERVATION} and not all checks ready" if unready else NO_RESERVATION
        token = "NoReservationUnsatisfiedChecks" if unready else "NoReservation"
        record.set_condition(ADMITTED, status=False, reason=token, message=message, now=now)


def tell_to_leave(record: Record, reason: str, message: str, now: Instant, preempted: str | None = None) -> None:
    """Evict; a preemption also says which kind. The quota stays until `leave`."""
    record.set_condition(EVICTED, status=True, reason=reason, message=message, now=now)
    record.checks = {name: _asked_again(check, now) for name, check in record.checks.items()}
    if preempted is not None:
        record.set_condition(PREEMPTED, status=True, reason=preempted, message=message, now=now)


def _asked_again(check: CheckState, now: Instant) -> CheckState:
    """Return a check as it stands after an eviction (Kueue: `resetChecksOnEviction`)."""
    if check.state == CHECK_PENDING:
        return check
    retries = (check.retries or 0) + 1 if check.state == CHECK_RETRY else None
    said = f"Reset to Pending after eviction. Previously: {check.state}"
    return CheckState(CHECK_PENDING, said, now, check.requeue_after, retries)


def leave(record: Record, pending_reason: str, backoff: RequeueBackoff, now: Instant, *, explicit: bool) -> None:
    """Give the quota back now that the pods are gone, and say whether the workload may queue again.

    Preempted workloads may at once; those whose pods did not become ready wait (60 s, 120 s, ... by default); those
    that an admission check sent back wait as long as it says; those of a stopped queue until it runs again
    (`come_back`). Kueue: step 6, handle eviction, in `pkg/controller/jobframework/reconciler.go`.
    """
    eviction = record.conditions.get(EVICTED)
    if eviction is None or not eviction.status:
        raise ValueError(f"workload {record.key} is not evicted")
    if eviction.reason in _COME_BACK_AT_ONCE:
        _requeued(record, eviction, now, status=True)
    elif eviction.reason == PODS_READY_TIMEOUT:
        _back_off(record, eviction, backoff, now)
    else:
        _requeued(record, eviction, now, status=False)
    record.let_go()
    record.scan = None
    if PODS_READY in record.conditions:
        record.set_condition(PODS_READY, status=False, reason=_WAITS_FOR_START, message=_NOT_READY, now=now)
    wait(record, pending_reason, str(eviction.message), now, explicit=explicit)
    if eviction.reason == BY_ADMISSION_CHECK and (record.requeue_at is None or record.requeue_at <= now):
        end_backoff(record, now)


def _back_off(record: Record, eviction: Condition, backoff: RequeueBackoff, now: Instant) -> None:
    """Keep the workload out for a time that doubles with each eviction; one too many deactivates it."""
    count = record.requeue_count + 1
    if backoff.limit is not None and count > backoff.limit:
        record.workload = replace(record.workload, active=False)
        return
    record.requeue_count = count
    seconds = min(backoff.base_seconds * 2 ** (count - 1), backoff.max_seconds)
    record.requeue_at = now + seconds * SECOND
    _requeued(record, eviction, now, status=False)


def come_back(record: Record, now: Instant) -> None:
    """Say that a workload whose queue was stopped, or that was deactivated itself, may queue again."""
    before = record.conditions.get(REQUEUED)
    if before is None or before.status or before.reason not in RESTARTS:
        return
    reason, message = RESTARTS[before.reason]
    record.set_condition(REQUEUED, status=True, reason=reason, message=message, now=now)


def end_backoff(record: Record, now: Instant) -> None:
    """End the time out of the queue."""
    record.requeue_at = None
    message = "The workload backoff was finished"
    record.set_condition(REQUEUED, status=True, reason="BackoffFinished", message=message, now=now)


def pods_ready(record: Record, now: Instant, *, ready: bool) -> None:
    """Return whether all pods are ready (Kueue: `generatePodsReadyCondition`); one that was ready must recover."""
    before = record.conditions.get(PODS_READY)
    failed = before is not None and (before.status or before.reason == _WAITS_FOR_RECOVERY)
    if ready:
        reason = "Recovered" if before is not None and before.reason in _FAILED_ONCE else "Started"
        message = "All pods reached readiness and the workload is running"
    elif failed:
        reason, message = _WAITS_FOR_RECOVERY, "At least one pod has failed, waiting for recovery"
    else:
        reason, message = _WAITS_FOR_START, _NOT_READY
    record.set_condition(PODS_READY, status=ready, reason=reason, message=message, now=now)


def finish(record: Record, reason: str, message: str, now: Instant) -> None:
    """Done for good."""
    record.set_condition(FINISHED, status=True, reason=reason, message=message, now=now)


def _requeued(record: Record, eviction: Condition, now: Instant, *, status: bool) -> None:
    record.set_condition(REQUEUED, status=status, reason=eviction.reason, message=str(eviction.message), now=now)
