"""Who runs and who waits where? Workloads in the queues that their local queues lead to, and the quota they hold.

`store.Store` adds the other objects. What a workload holds is counted in the quota trees at once, unless a change of
specs waits for them to be built again (`settle_tree`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskgov.scheduling import reading, status_reading
from taskgov.scheduling.activity import RUN, drained_because, inactive_because
from taskgov.scheduling.blocking import HeldCycle, not_ready
from taskgov.scheduling.check_reading import read_check_states
from taskgov.scheduling.eligibility import FlavorBook
from taskgov.scheduling.forest import build_forest
from taskgov.scheduling.pods import PodRules
from taskgov.scheduling.quota import QuotaNode, add_usage, remove_usage
from taskgov.scheduling.state import QUOTA_RESERVED, REQUEUED, QueueState, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Cohort, LocalQueue, Workload


class WorkloadStore:
    """Records and queues, kept consistent with one another."""

    def __init__(self, config: ManagerConfig) -> None:
        self.config = config
        self.namespaces: dict[str, dict[str, str]] = {}
        self.flavors = FlavorBook()
        self.priorities: dict[str, int] = {}
        self.pod_rules = PodRules(config)
        self.cohorts: dict[str, Cohort] = {}
        self.local_queues: dict[tuple[str, str], LocalQueue] = {}
        self.queues: dict[str, QueueState] = {}
        self.records: dict[str, Record] = {}
        self.unrouted: dict[str, Record] = {}
        self.orphans: dict[str, Record] = {}
        self.backing_off: dict[str, Record] = {}
        self.unsaid: dict[str, Record] = {}
        self.late: dict[str, Record] = {}
        self.slices: dict[str, Record] = {}  # that take the place of another slice of their job, or once did
        self.known_checks: dict[str, bool] = {}
        self.notified: set[str] = set()
        self.held: HeldCycle | None = None
        self.cohort_nodes: dict[str, QuotaNode] = {}
        self.trees: dict[str, list[QueueState]] = {}
        self._tree_changed = False
        self._inactive: dict[str, str | None] = {}

    def read(self, obj: Mapping[str, Any], pods: bytes | None = None) -> Workload:
        """Read a Workload object with what its priority class and the rules about pods say now."""
        return reading.read_workload(obj, self.priorities, self.pod_rules, pods)

    @property
    def explicit(self) -> bool:
        """Whether conditions say more than that a workload waits (gate `UnadmittedWorkloadsObservability`)."""
        return self.config.gate("UnadmittedWorkloadsObservability")

    def queue_of(self, record: Record) -> QueueState | None:
        """Return the queue that a workload runs or waits in; also where it may not queue at the moment."""
        if record.queue is not None:
            return record.queue
        local = self.local_queue_of(record)
        return None if local is None else self.queues.get(local.cluster_queue)

    def local_queue_of(self, record: Record) -> LocalQueue | None:
        """Return the LocalQueue that a workload names, if it is there."""
        return self.local_queues.get((record.workload.namespace, record.workload.queue))

    def add_workload(self, workload: Workload, status: Mapping[str, Any]) -> Record:
        """Take a new workload, running or pending as its status says."""
        record = self._new_record(workload)
        record.conditions = status_reading.read_conditions(status)
        if REQUEUED in record.conditions or "requeueState" in status:
            record.requeue_count, record.requeue_at = status_reading.read_requeue_state(status)
        if "admissionChecks" in status:
            record.checks = read_check_states(status)
        admission = status_reading.read_admission(status)
        self.records[record.key] = record
        if workload.replaces:
            self.slices[record.key] = record
        reserved = record.conditions.get(QUOTA_RESERVED)
        if record.finished:
            return record
        if admission is not None and (reserved is None or reserved.status):
            record.hold(admission)
            self.start(record, admission.cluster_queue)
        else:
            self.enqueue(record)
        return record

    def change_workload(self, record: Record, workload: Workload) -> None:
        """Take a changed spec; a pending workload is queued again, a running one keeps what is not reclaimable."""
        if workload.replaces:
            self.slices[record.key] = record
        if record.workload == workload:
            record.workload = workload
            return
        fresh = self._new_record(workload)
        if record.finished:
            record.workload, record.demand = workload, fresh.demand
        elif record.admission is not None:
            self._change_running(record, fresh)
        else:
            self.dequeue(record, stays=workload.active and workload.queue == record.workload.queue)
            record.workload, record.demand = workload, fresh.demand
            self.enqueue(record)

    def _change_running(self, record: Record, fresh: Record) -> None:
        """Take a changed spec for a workload that runs; its tree is reconsidered if it holds less now.

        The same applies if more of its pods are reclaimable, even if it holds no less because it was admitted with
        fewer (`Update` in `pkg/controller/core/workload_controller.go` of Kueue).
        """
        if record.admission is None:
            return
        if record.admitted and record.workload.reclaimable != fresh.workload.reclaimable:
            self.notify_of(record)
        fresh.hold(record.admission)
        queue, shrinks = record.queue, fresh.usage != record.usage
        if shrinks:
            self.stop(record)
        elif queue is not None:
            queue.remove(record)
        record.workload, record.demand = fresh.workload, fresh.demand
        record.hold(record.admission)
        if shrinks:
            self.start(record, record.admission.cluster_queue)
        elif queue is not None:
            queue.add(record)

    def drop_workload(self, record: Record) -> None:
        """Forget a workload; the quota it held is free. Even if it held none, its tree is reconsidered."""
        if record.admission is not None:
            self.stop(record)
        else:
            self.dequeue(record)
        self.notify_of(record)
        self.unsaid.pop(record.key, None)
        self.late.pop(record.key, None)
        self.slices.pop(record.key, None)
        del self.records[record.key]

    def count_again(self) -> None:
        """Count usage again before it is considered: what was supposed in a cycle with slices does not cancel out."""
        self._tree_changed = True

    def drop_late(self, looked_at: Iterable[str]) -> None:
        """Take out of the queue who may not queue any more and was only waiting to be considered once."""
        for key in looked_at:
            if record := self.late.pop(key, None):
                self.dequeue(record)
                self._unroute(record)

    def start(self, record: Record, queue: str) -> None:
        """Count a workload that holds quota as running in `queue`."""
        state = record.queue = self.queues.get(queue)
        if state is None:
            self.orphans[record.key] = record
            return
        self.orphans.pop(record.key, None)
        if record.checks or state.spec.checks:
            self.unsaid[record.key] = record
        state.add(record)
        if not self._tree_changed:
            add_usage(state.node, record.usage)

    def stop(self, record: Record) -> None:
        """Free the quota of a running workload: its queue's generation rises and its tree is reconsidered."""
        state = record.queue
        if state is None:
            self.orphans.pop(record.key, None)
            return
        state.remove(record)
        if not self._tree_changed:
            remove_usage(state.node, record.usage)
        state.generation += 1
        self.notify_of(record)
        record.queue = None

    def enqueue(self, record: Record, *, started: bool = False) -> None:
        """Put a pending workload in line, where its local queue leads; that one may just have been `started`."""
        state = self._destination(record)
        if record.conditions or record.checks or record.workload.gates:
            state = None if record.barred else state
            if record.needs_word:
                self.unsaid[record.key] = record
        if state is not None and state.spec.checks:
            self.unsaid[record.key] = record
        if state is None:
            self._unroute(record)
            return
        self.unrouted.pop(record.key, None)
        record.queue = state
        if record.requeue_at is not None:
            self.backing_off[record.key] = record
            state.pending.park(record)
        elif started:
            state.pending.push_started(record)
        else:
            state.pending.push(record)

    def dequeue(self, record: Record, *, stays: bool = False) -> None:
        """Take a pending workload out of wherever it waits; one that `stays` comes back to the same queue at once."""
        self.unrouted.pop(record.key, None)
        self.backing_off.pop(record.key, None)
        if record.queue is not None:
            record.queue.pending.remove(record, keep_sticky=stays)
            record.queue = None

    def notify_of(self, record: Record) -> None:
        """Reconsider the tree of a workload that is done or gone, whether it held quota or not.

        Kueue: the workload controller calls `QueueAssociatedInadmissibleWorkloadsAfter` for either, which finds the
        tree by the workload's local queue; one that is held is not known to it.
        """
        local = self.local_queue_of(record)
        if local is not None and local.stop_policy == RUN and local.cluster_queue in self.queues:
            self.notified.add(local.cluster_queue)

    def now_in_line(self, now: Instant) -> list[Record]:
        """Return the workloads whose time out of the queue is over."""
        return [r for r in self.backing_off.values() if r.requeue_at is not None and r.requeue_at <= now]

    def _specs_changed(self) -> None:
        """Find out again what follows from the specs of queues and cohorts."""
        self._tree_changed = True
        self._inactive.clear()

    # Reading

    def settle_tree(self) -> None:
        """Rebuild the quota trees if specs changed since."""
        if self._tree_changed:
            self._tree_changed = False
            self.cohort_nodes = build_forest(self.queues.values(), self.cohorts)
            self.trees = {}
            for name in sorted(self.queues):
                state = self.queues[name]
                self.trees.setdefault(state.node.root.tree, []).append(state)

    def inactive_because(self, state: QueueState) -> str | None:
        """Say why a cluster queue takes no workloads, `None` when it is active; found once for the same specs."""
        name = state.spec.name
        if name not in self._inactive:
            self._inactive[name] = inactive_because(state.spec, self.cohorts, self.flavors, self.known_checks)
        return self._inactive[name]

    def somebody_starts(self) -> bool:
        """Return whether the pods of anybody who holds quota are not ready."""
        return next(not_ready(self.queues.values()), None) is not None

    def is_active(self, state: QueueState) -> bool:
        """Return whether a cluster queue takes workloads."""
        return self.inactive_because(state) is None

    def drained_because(self, record: Record) -> tuple[str, str] | None:
        """Say for which reason, in which words, a running workload has to leave; `None` when it may stay."""
        return drained_because(record, self.local_queue_of(record))

    def _new_record(self, workload: Workload) -> Record:
        return Record(workload, self.config)

    # Routing

    def _destination(self, record: Record) -> QueueState | None:
        local = self.local_queue_of(record)
        if local is None or local.stop_policy != RUN or not record.workload.active:
            return None
        return self.queues.get(local.cluster_queue)

    def _unroute(self, record: Record) -> None:
        record.queue = None
        self.unrouted[record.key] = record

    def _route_waiting(self) -> None:
        for record in list(self.unrouted.values()):
            self.enqueue(record, started=True)

    def _reroute(self, key: tuple[str, str]) -> None:
        for record in list(self.records.values()):
            pending = record.admission is None and not record.finished
            if pending and (record.workload.namespace, record.workload.queue) == key:
                self.dequeue(record)
                self.enqueue(record, started=True)
