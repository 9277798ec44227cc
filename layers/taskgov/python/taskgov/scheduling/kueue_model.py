"""What would Kueue do? A whole installation: load objects, run cycles, read the outcome.

`KueueModel` is the entry to this room. The embedded cluster drives one live, plans drive copies of one to predict. It
owns no clock: every call that writes a moment takes `now` (aware `datetime`, RFC 3339 text or microseconds since 1970).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling import lifecycle, reports
from taskgov.scheduling.blocking import not_ready
from taskgov.scheduling.conclusion import conclude, tell_to_leave
from taskgov.scheduling.cycle import Cycle
from taskgov.scheduling.instants import Instant, Now, read_now
from taskgov.scheduling.matching import selects
from taskgov.scheduling.nomination import namespace_labels
from taskgov.scheduling.objects_in import KueueModelObjects
from taskgov.scheduling.reasons import PENDING, PENDING_EVALUATION, SLICE_GIVEN_UP, SLICE_REPLACED, replaced_message
from taskgov.scheduling.restart import restarted
from taskgov.scheduling.results import CycleResult
from taskgov.scheduling.slices import gives_way
from taskgov.scheduling.upkeep import keep_up, loses_its_reservation, order_to_leave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.state import QueueState, Record


class KueueModel(KueueModelObjects):
    """A Kueue installation whose scheduler runs on request.

    Example:
        >>> from taskgov.scheduling import KueueModel
        >>> world = KueueModel()
        >>> world.load([
        ...     {"kind": "ResourceFlavor", "metadata": {"name": "gpu"}},
        ...     {"kind": "ClusterQueue", "metadata": {"name": "team-a"}, "spec": {
        ...         "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        ...             {"name": "gpu", "resources": [{"name": "cpu", "nominalQuota": "4"}]}]}]}},
        ...     {"kind": "LocalQueue", "metadata": {"name": "main", "namespace": "a"},
        ...         "spec": {"clusterQueue": "team-a"}},
        ...     {"kind": "Workload", "metadata": {"name": "job", "namespace": "a"}, "spec": {
        ...         "queueName": "main", "podSets": [{"name": "main", "count": 2, "template": {"spec": {
        ...             "containers": [{"resources": {"requests": {"cpu": "1"}}}]}}}]}},
        ... ])
        >>> result = world.cycle("2026-11-20T09:00:00Z")
        >>> [(a.workload, a.admission.pod_sets[0].usage) for a in result.admitted]
        [('a/job', {'cpu': 2000})]
        >>> world.workload("a/job")["status"]["conditions"][0]["message"]
        'Quota reserved in ClusterQueue team-a'
        >>> world.finish("a/job", "2026-11-20T10:00:00Z")
        >>> world.cluster_queue("team-a")["status"]["reservingWorkloads"]
        0

    """

    def __init__(self, config: ManagerConfig | None = None) -> None:
        super().__init__(config)
        self._cycle_number = 0

    def copy(self) -> KueueModel:
        """Return a model of its own in the same state, for what-if questions; specs are shared, state is not."""
        twin = KueueModel(self.config)
        twin._store = self._store.copy()
        twin._cycle_number = self._cycle_number
        twin._unmodelled = dict(self._unmodelled)
        return twin

    def restarted(self, config: ManagerConfig) -> KueueModel:
        """Return the model after a restart of Kueue's manager with another configuration.

        Objects, admissions and conditions stay. Whatever the manager keeps in memory is gone: everybody who waits is in
        line again, no queue keeps who preempted last, and no flavor search continues where it stopped.
        """
        twin = KueueModel(config)
        twin._store = restarted(self._store, config)
        twin._unmodelled = dict(self._unmodelled)
        return twin

    # What happens

    def cycle(
        self, now: Now, turn: Sequence[str] = (), reserved_at: Callable[[str], Now | None] | None = None
    ) -> CycleResult:
        """Run one scheduling cycle: one head of each active queue with somebody in line.

        Admitted workloads hold their quota at once. Preempted ones keep theirs until `finish_eviction`. `turn` names
        ClusterQueues in the order in which heads of theirs that are equal in everything come; Kueue takes any.
        `reserved_at` gives the moment that is written of an admitted workload (`namespace/name`) where it is not `now`:
        Kueue reads the clock for each (`prepareWorkload` in `pkg/scheduler/scheduler.go`), so that one cycle may
        reserve in two seconds.

        With `wait_for_pods_ready_block_admission` a cycle stops before it admits one more while pods are not ready; the
        next call continues with it once they are, and before that decides nothing.
        """
        when, store = read_now(now), self._store
        store.settle_tree()
        keep_up(self._store, when)
        self.release_backoffs(when)
        store.sample_accounts(when)
        held = store.held
        if held is not None and store.somebody_starts():
            return CycleResult(held.number, when, not_modelled=self.not_modelled)
        if held is None:
            self._cycle_number += 1
        run = Cycle(self._nominator(), self._cycle_number, when, turn)
        if held is None:
            run.run(list(self._heads()))
        else:
            run.go_on(held, store.queues)
        store.held = run.left
        result = conclude(run, self.not_modelled, reserved_at)
        for entry in run.processed if store.takes_turns else ():
            if entry.admitted:
                store.charge(entry.record, when)
        if run.had_slices:
            self._store.count_again()
            for admitted in result.admitted:
                self._replace(admitted.replaces, admitted.workload, when)
        if store.late:
            store.drop_late(waiting.workload for waiting in result.waiting)
        return result

    def evict(self, workload: str, now: Now, *, reason: str, message: str) -> None:
        """Evict a running workload for a reason other than preemption, e.g. `PodsReadyTimeout`."""
        tell_to_leave(self._running(workload), reason, message, read_now(now))

    def evict_stopped(self, now: Now) -> list[str]:
        """Evict the workloads that may not run any more, and return them: what Kueue's workload controller does.

        These are deactivated ones, those of queues that are stopped with `HoldAndDrain`, and those that an admission
        check sent back or rejected. A reservation in a stopped queue is lost at once. Conditions are written too.
        """
        when, told = read_now(now), []
        keep_up(self._store, when)
        for record in list(self._store.records.values()):
            order = order_to_leave(self._store, record, when)
            if order is not None:
                tell_to_leave(record, *order, when)
                told.append(record.key)
            elif (stopped := loses_its_reservation(self._store, record)) is not None:
                reports.take_back(self._store, record, self._token("Suspended", "Inadmissible"), stopped, when)
        return told

    def pods_ready(self, workload: str, now: Now, *, ready: bool = True) -> None:
        """Say that all pods of a running workload are ready, or that they are not any more: admission may wait for it.

        Raises `ValueError` when it holds no quota.
        """
        lifecycle.pods_ready(self._running(workload), read_now(now), ready=ready)

    def all_pods_ready(self, now: Now) -> None:
        """Say so of everybody who runs, where admission waits for it: predictions suppose that nobody needs time."""
        if self.config.wait_for_pods_ready_block_admission:
            for record in list(not_ready(self._store.queues.values())):
                lifecycle.pods_ready(record, read_now(now), ready=True)

    def finish_eviction(self, workload: str, now: Now) -> None:
        """Free the quota of an evicted workload whose pods are gone, and queue it again, as old as it is.

        Raises `ValueError` when it was not evicted. A slice of a job that has another slice in line is finished
        instead: its job's controller keeps the newer one.
        """
        record, when = self._running(workload), read_now(now)
        if not record.evicted:
            raise ValueError(f"workload {workload} is not evicted")
        self._store.sample_accounts(when)
        if gives_way(self._store, record):
            self.finish(workload, when, reason=SLICE_REPLACED, message=SLICE_GIVEN_UP)
            return
        self._store.stop(record)
        pending = self._token(PENDING_EVALUATION, PENDING)
        lifecycle.leave(record, pending, self.config.backoff, when, explicit=self._store.explicit)
        self._store.enqueue(record)

    def finish(
        self, workload: str, now: Now, *, reason: str = "Succeeded", message: str = "Job finished successfully"
    ) -> None:
        """Free the quota of a workload that is done; it stays readable until it is deleted."""
        record = self._record(workload)
        self._store.sample_accounts(read_now(now))
        if record.admission is not None:
            self._store.stop(record)
        else:
            self._store.dequeue(record)
        self._store.notify_of(record)
        lifecycle.finish(record, reason, message, read_now(now))

    def release_backoffs(self, now: Now) -> None:
        """Queue the workloads whose time out of the queue is over; every cycle does this first."""
        when = read_now(now)
        for record in self._store.now_in_line(when):
            self._store.dequeue(record, stays=True)
            lifecycle.end_backoff(record, when)
            self._store.enqueue(record)

    def requeue_inadmissible(self, trees: Iterable[str] | None = None) -> int:
        """Put inadmissible workloads back in line, in all `notified` trees or in the given ones, and say how many.

        Kueue does this in batches of one second; the owner of the clock decides.
        """
        chosen = self.notified if trees is None else frozenset(trees)
        moved = 0
        for tree, members in self._trees().items():
            if tree in chosen:
                self._store.notified.difference_update(state.spec.name for state in members)
                moved += sum(self._release(state) for state in members)
        return moved

    # Inside

    def _replace(self, before: str, slice_key: str, now: Instant) -> None:
        """Finish the slice whose place another one of its job has taken, unless there is none or it is finished."""
        if before and not self._record(before).finished:
            new = self._record(slice_key).workload
            self.finish(before, now, reason=SLICE_REPLACED, message=replaced_message(new.uid, new.job_uid))

    def _token(self, explicit: str, otherwise: str) -> str:
        return explicit if self._store.explicit else otherwise

    def _running(self, key: str) -> Record:
        record = self._record(key)
        if record.admission is None or record.finished:
            raise ValueError(f"workload {key} holds no quota")
        return record

    def _heads(self) -> Iterator[tuple[QueueState, Record]]:
        """Pop exactly one head of each active queue."""
        for state in self._store.queues.values():
            if state.pending.active and self._store.is_active(state):
                record = state.pending.pop()
                if record is not None:
                    yield state, record

    def _release(self, state: QueueState) -> int:
        return state.pending.release_inadmissible(self._may_enter(state))

    def _may_enter(self, state: QueueState) -> Callable[[Record], bool]:
        namespaces, selector = self._store.namespaces, state.spec.namespace_selector

        def may_enter(record: Record) -> bool:
            labels = namespace_labels(namespaces, record.workload.namespace)
            return record.requeue_at is None and selects(selector, labels)

        return may_enter
