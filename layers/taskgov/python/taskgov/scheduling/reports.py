"""What do others write on a workload that Kueue reads? Holds by its job, replacement pods, answers of admission checks.

Called by `kueue_model`. Kueue itself writes none of these: jobs' controllers (`pkg/controller/jobs`) and those of the
checks do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taskgov.scheduling import lifecycle, status_reading
from taskgov.scheduling.check_reading import read_check_states
from taskgov.scheduling.instants import read_now
from taskgov.scheduling.objects import CheckState
from taskgov.scheduling.reasons import HOLD_CLEARED, ON_HOLD, PENDING, PENDING_EVALUATION
from taskgov.scheduling.state import ADMITTED, QUOTA_RESERVED, WAITING_FOR_REPLACEMENT_PODS
from taskgov.scheduling.upkeep import keep_up
from taskgov.scheduling.view import KueueModelView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling.instants import Instant, Now
    from taskgov.scheduling.state import Record
    from taskgov.scheduling.workload_store import WorkloadStore


class KueueModelReports(KueueModelView):
    """What callers may report to the model that others than Kueue decide."""

    def hold(self, workload: str, now: Now, message: str = "Job is on hold") -> None:
        """Have a workload's job give its quota back and stay out of the queue, as a job that is scaled to nothing."""
        _hold(self._store, self._record(workload), message, read_now(now))

    def release(self, workload: str, now: Now) -> None:
        """Let a workload that is on hold queue again. Raises `ValueError` when it is not on hold."""
        record = self._record(workload)
        if not record.on_hold:
            raise ValueError(f"workload {workload} is not on hold")
        _let_queue(self._store, record, read_now(now))

    def answer(
        self, workload: str, check: str, state: str, now: Now, *, message: str = "", requeue_after: int | None = None
    ) -> None:
        """Have an admission check say `Ready`, `Retry`, `Rejected` or `Pending` of a workload.

        Ready checks admit at once; `evict_stopped` then evicts those that are sent back or rejected.
        `requeue_after` is how many seconds after a `Retry` the workload may come back. Raises `KeyError` for a check
        that the workload does not wait for.
        """
        when = read_now(now)
        keep_up(self._store, when)
        answered = CheckState(state, message, when, requeue_after)
        _answer(self._store, self._record(workload), check, answered)
        keep_up(self._store, when)


def observe(store: WorkloadStore, record: Record, status: Mapping[str, Any]) -> None:
    """Take what others wrote in the status of a workload that is known already; the rest is this world's.

    That is the states of its admission checks, `WaitingForReplacementPods`, and whether its job has it on hold
    (`reclaimablePods` are read with the spec).
    """
    told = status_reading.read_conditions(status)
    reserved, waits = told.get(QUOTA_RESERVED), told.get(WAITING_FOR_REPLACEMENT_PODS)
    if waits is not None and waits != record.conditions.get(WAITING_FOR_REPLACEMENT_PODS):
        _replace_pods(store, record, waits.status)
        record.conditions[WAITING_FOR_REPLACEMENT_PODS] = waits
        _queue(store, record)
    held = reserved is not None and not reserved.status and reserved.reason == ON_HOLD
    if reserved is not None and held is not record.on_hold:
        if held:
            _give_back(store, record)
        record.conditions[QUOTA_RESERVED] = reserved
        if ADMITTED in told:
            record.conditions[ADMITTED] = told[ADMITTED]
        _queue(store, record)
    for name, check in read_check_states(status).items():
        if name in record.checks and record.checks[name] != check:
            record.checks[name] = check
            store.unsaid[record.key] = record


def _hold(store: WorkloadStore, record: Record, message: str, now: Instant) -> None:
    """Give quota back for a job that needs none now, and keep the workload out of the queue."""
    _give_back(store, record)
    lifecycle.wait(record, ON_HOLD, message, now, explicit=store.explicit)
    _queue(store, record)


def _let_queue(store: WorkloadStore, record: Record, now: Instant) -> None:
    """Let a workload that was on hold queue again."""
    lifecycle.wait(
        record, PENDING_EVALUATION if store.explicit else PENDING, HOLD_CLEARED, now, explicit=store.explicit
    )
    _queue(store, record)


def _answer(store: WorkloadStore, record: Record, name: str, state: CheckState) -> None:
    """Take what an admission check says; the number of its tries is kept."""
    record.checks[name] = replace(state, retries=record.checks[name].retries)
    store.unsaid[record.key] = record


def take_back(store: WorkloadStore, record: Record, reason: str, message: str, now: Instant) -> None:
    """Take a reservation of quota from a workload that is not admitted yet, and let it wait."""
    _give_back(store, record)
    lifecycle.wait(record, reason, message, now, explicit=store.explicit)
    _queue(store, record)


def _give_back(store: WorkloadStore, record: Record) -> None:
    if record.admission is not None:
        store.stop(record)
        record.let_go()
        record.scan = None
    else:
        store.dequeue(record)


def _queue(store: WorkloadStore, record: Record) -> None:
    """Put a workload that has no quota where it belongs; one that stands in line stays there until it is considered."""
    if record.admission is None and not record.finished and record.queue is None:
        store.enqueue(record)


def _replace_pods(store: WorkloadStore, record: Record, waits: bool) -> None:  # noqa: FBT001 - a status, as given
    """See that pods are missing: Kueue leaves the workload in line, and does not take it back from there.

    `RequeueWorkload` and `AddOrUpdateWorkloadWithoutLock` in `pkg/cache/queue/manager.go`.
    """
    if waits and record.queue is not None and record.admission is None:
        store.late[record.key] = record
    else:
        store.late.pop(record.key, None)
