"""Which objects are there? Applying and deleting them; `workload_store` keeps which workloads run and wait.

`kueue_model.KueueModel` stands on this. A change of quota or of flavors raises the generation of the queues it touches
and marks their trees, so that inadmissible workloads are reconsidered (`requeue_inadmissible`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from taskgov.scheduling import kueue_fields
from taskgov.scheduling.account_store import AccountStore
from taskgov.scheduling.fair_admission import Account
from taskgov.scheduling.fair_pending import FairPendingQueue
from taskgov.scheduling.forest import in_circle
from taskgov.scheduling.limits import requote
from taskgov.scheduling.pending import PendingQueue
from taskgov.scheduling.state import QueueState, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from taskgov.scheduling.fair_admission import Consumed
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload

KINDS: Final = (
    "Namespace",
    "LimitRange",
    "RuntimeClass",
    "ResourceFlavor",
    "AdmissionCheck",
    "WorkloadPriorityClass",
    "Cohort",
    "ClusterQueue",
    "LocalQueue",
    "Workload",
)
"""What can be applied, in the order in which a dump is loaded."""


class Store(AccountStore):
    """Objects, records and queues, kept consistent with one another."""

    def copy(self) -> Store:
        """Return a store of its own in the same state; frozen values are shared."""
        twin = Store(self.config)
        twin.namespaces = {name: dict(labels) for name, labels in self.namespaces.items()}
        twin.flavors = self.flavors.copy()
        twin.priorities = dict(self.priorities)
        twin.pod_rules.take_objects_of(self.pod_rules)
        twin.cohorts = dict(self.cohorts)
        twin.local_queues = dict(self.local_queues)
        twins = {record: record.copy() for record in self.records.values()}
        twin.records = {key: twins[record] for key, record in self.records.items()}
        twin.orphans = {key: twins[record] for key, record in self.orphans.items()}
        twin.unrouted = {key: twins[record] for key, record in self.unrouted.items()}
        twin.known_checks = dict(self.known_checks)
        twin.unsaid = {key: twins[record] for key, record in self.unsaid.items()}
        twin.late = {key: twins[record] for key, record in self.late.items()}
        twin.slices = {key: twins[record] for key, record in self.slices.items()}
        twin.backing_off = {key: twins[record] for key, record in self.backing_off.items()}
        twin.queues = {name: queue.copy(twins) for name, queue in self.queues.items()}
        for queue in twin.queues.values():
            if isinstance(queue.pending, FairPendingQueue):
                queue.pending.usage_of = twin.usage_of
        twin.ledger.take_accounts_of(self.ledger)
        for record, other in twins.items():
            other.queue = None if record.queue is None else twin.queues[record.queue.spec.name]
        twin.notified = set(self.notified)
        twin.held = None if self.held is None else self.held.copy(twins, twin.queues)
        twin._tree_changed = True
        return twin

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Set a namespace's labels; queues may select it now."""
        if self.namespaces.get(name) != labels:
            self.namespaces[name] = dict(labels)
            self.notified.update(self.queues)

    def put_flavor(self, flavor: ResourceFlavor) -> None:
        """Add or change a flavor; queues that use it are reconsidered."""
        if self.flavors.put(flavor):
            self._flavor_changed(flavor.name)

    def drop_flavor(self, name: str) -> None:
        """Delete a flavor; queues that use it become inactive."""
        self.flavors.drop(name)
        self._flavor_changed(name)

    def put_check(self, name: str, *, active: bool) -> None:
        """Add or change an admission check; queues that use it are reconsidered."""
        if self.known_checks.get(name) is not active:
            self.known_checks[name] = active
            self._check_changed(name)

    def drop_check(self, name: str) -> None:
        """Delete an admission check; queues that ask it become inactive."""
        del self.known_checks[name]
        self._check_changed(name)

    def put_cohort(self, cohort: Cohort) -> None:
        """Add or change a cohort: the tree in which it is then is reconsidered, not the one that it leaves.

        Kueue: `AddOrUpdateCohort` in `pkg/cache/queue/manager.go`.
        """
        if self.cohorts.get(cohort.name) == cohort:
            return
        self._raise_generations(cohort.name)
        self.cohorts[cohort.name] = cohort
        self._specs_changed()
        self._raise_generations(cohort.name)
        self.notified.update(self._queues_of_tree(cohort.name))

    def drop_cohort(self, name: str) -> None:
        """Delete a cohort; queues and children that still name it keep an implicit one without quota.

        No workload is reconsidered because of it (`DeleteCohort` in `pkg/cache/queue/manager.go` of Kueue).
        """
        self._raise_generations(name)
        del self.cohorts[name]
        self._specs_changed()

    def put_queue(self, spec: ClusterQueue) -> None:
        """Add or change a cluster queue. Workloads that waited for it are queued.

        If it changes its cohort, the new tree is reconsidered, not the one it leaves: Kueue moves it first and notifies
        then (`UpdateClusterQueue` in `pkg/cache/queue/manager.go`).
        """
        state = self.queues.get(spec.name)
        if state is None:
            self.queues[spec.name] = QueueState(spec, self._pending_queue(spec))
            self._specs_changed()
            for record in [r for r in self.orphans.values() if r.admission and r.admission.cluster_queue == spec.name]:
                self.start(record, spec.name)
            self._route_waiting()
            return
        if state.spec == spec:
            return
        self.notified.add(spec.name)
        if state.spec.quotas != spec.quotas or state.spec.cohort != spec.cohort:
            state.generation += 1
        if state.spec.checks != spec.checks or state.spec.stop_policy != spec.stop_policy:
            self.unsaid.update({r.key: r for r in self.records.values() if self.queue_of(r) is state})
        state.pending.strategy = spec.strategy
        self.suppose(spec)

    def suppose(self, spec: ClusterQueue) -> None:
        """Give a cluster queue another spec, as far as it decides who fits; no workload is reconsidered for it."""
        state = self.queues[spec.name]
        moves = state.spec.cohort != spec.cohort
        state.redefine(spec)
        self._inactive.clear()
        if self._tree_changed or moves or not requote(state.node, spec.quotas, spec.weight):
            self._tree_changed = True

    def _pending_queue(self, spec: ClusterQueue) -> PendingQueue[Record]:
        """Return the queue of a new cluster queue: whether LocalQueues take turns in it is decided now.

        A change of `admissionScope` orders it otherwise only after a restart, as in Kueue (`newClusterQueueImpl` in
        `pkg/cache/queue/cluster_queue.go`).
        """
        hashing = self.config.gate("SchedulingEquivalenceHashing")
        if self.takes_turns and spec.fair_admission:
            return FairPendingQueue(spec.strategy, hashing=hashing, usage_of=self.usage_of)
        return PendingQueue(spec.strategy, hashing=hashing)

    def drop_queue(self, name: str) -> None:
        """Delete a cluster queue; its pending workloads wait for it to come back, running ones leave the tree.

        Its neighbours are not reconsidered because of it (`DeleteClusterQueue` in `pkg/cache/queue/manager.go` of
        Kueue).
        """
        state = self.queues.pop(name)
        for record in [*state.pending.in_line(), *state.pending.inadmissible()]:
            state.pending.remove(record)
            self._unroute(record)
        for record in state.running_records():
            record.queue = None
            self.orphans[record.key] = record
        self._specs_changed()

    def put_local_queue(self, queue: LocalQueue, consumed: tuple[Consumed, Instant] | None = None) -> None:
        """Add or change a local queue; its workloads are queued, or taken out of line while it is stopped.

        What a new one has `consumed`, and when that was, begins its account.
        """
        key = (queue.namespace, queue.name)
        before = self.local_queues.get(key)
        if before == queue:
            return
        self.local_queues[key] = queue
        if before is None:
            if consumed is not None:
                self.ledger.accounts[key] = Account(*consumed)
            self._route_waiting()
        elif replace(before, weight=queue.weight) != queue:
            self._reroute(key)

    def drop_local_queue(self, namespace: str, name: str) -> None:
        """Delete a local queue; its pending workloads wait for it to come back."""
        del self.local_queues[namespace, name]
        self.ledger.accounts.pop((namespace, name), None)
        self._reroute((namespace, name))

    def put_priority_class(self, name: str, value: int) -> None:
        """Set the value of a WorkloadPriorityClass; workloads of that class follow."""
        if self.priorities.get(name) == value:
            return
        self.priorities[name] = value
        self._read_again(lambda workload: workload.priority_class == name)

    def put_limit_range(self, namespace: str, name: str, limit_range: Mapping[str, Any] | None) -> None:
        """Add or change a LimitRange (`None` deletes it); workloads of its namespace are completed again.

        If only a bound excluded a workload, it stays inadmissible until its tree is reconsidered for another reason:
        its spec is unchanged (`resourceUpdatesHandler` in `pkg/controller/core/workload_controller.go` of Kueue).
        """
        self.pod_rules.put_limit_range(namespace, name, limit_range)
        self._read_again(lambda workload: workload.namespace == namespace)

    def put_runtime_class(self, name: str, overhead: Mapping[str, Any] | None) -> None:
        """Set the overhead of a RuntimeClass (`None` deletes it); workloads may ask for more or less now."""
        self.pod_rules.put_runtime_class(name, overhead)
        self._read_again(lambda _: True)

    def _read_again(self, concerns: Callable[[Workload], bool]) -> None:
        """Read those workloads again that something else than their own object has changed."""
        for record in list(self.records.values()):
            source = record.workload.source
            if source is not None and concerns(record.workload):
                self.change_workload(record, self.read(source))

    def drop(self, kind: str, name: str, namespace: str) -> None:
        """Delete one object. Raises `KeyError` when there is none, or no such kind."""
        match kind:
            case "Namespace":
                del self.namespaces[name]
            case "LimitRange":
                self.put_limit_range(namespace, name, None)
            case "RuntimeClass":
                self.put_runtime_class(name, None)
            case "ResourceFlavor":
                self.drop_flavor(name)
            case "WorkloadPriorityClass":
                del self.priorities[name]
            case "Cohort":
                self.drop_cohort(name)
            case "ClusterQueue":
                self.drop_queue(name)
            case "LocalQueue":
                self.drop_local_queue(namespace, name)
            case "AdmissionCheck":
                self.drop_check(name)
            case "Workload":
                self.drop_workload(self.records[f"{namespace}/{name}" if namespace else name])
            case _:
                if kind not in kueue_fields.KINDS:
                    raise KeyError(kind)

    # Consequences of what changes

    def _flavor_changed(self, name: str) -> None:
        self._inactive.clear()
        self.notified.update(
            queue.spec.name for queue in self.queues.values() if any(name in g.flavors for g in queue.spec.groups)
        )

    def _check_changed(self, name: str) -> None:
        self._inactive.clear()
        self.notified.update(
            queue.spec.name for queue in self.queues.values() if any(name == check for check, _ in queue.spec.checks)
        )

    def _raise_generations(self, cohort: str) -> None:
        for name in self._queues_of_tree(cohort):
            self.queues[name].generation += 1

    def _queues_of_tree(self, cohort: str) -> Iterable[str]:
        root = self._root_of(cohort)
        return [q.spec.name for q in self.queues.values() if q.spec.cohort and self._root_of(q.spec.cohort) == root]

    def _root_of(self, cohort: str) -> str:
        if in_circle(cohort, self.cohorts):
            return cohort
        while cohort in self.cohorts and (parent := self.cohorts[cohort].parent):
            cohort = parent
        return cohort
