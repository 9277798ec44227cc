"""What would Kueue do? A whole installation: load objects, run cycles, read the outcome.

`World` is the door to this room. The embedded cluster drives one live, plans drive copies of one to predict. It owns
no clock: every call that writes a moment takes `now` (aware `datetime`, RFC 3339 text or `Instant`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling import inquiry, lifecycle, reading, unmodelled, writing
from taskgov.scheduling.conclusion import conclude, tell_to_leave
from taskgov.scheduling.config import ManagerConfig
from taskgov.scheduling.cycle import Cycle
from taskgov.scheduling.instants import Instant, instant
from taskgov.scheduling.matching import selects
from taskgov.scheduling.nomination import Nominator, namespace_labels
from taskgov.scheduling.quota import QuotaNode, available
from taskgov.scheduling.reasons import (
    PENDING,
    PENDING_EVALUATION,
)
from taskgov.scheduling.shares import Share, dominant_share
from taskgov.scheduling.store import KINDS, Store
from taskgov.scheduling.unmodelled import NotModelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from taskgov.scheduling.assignment import Assignment, Oracle
    from taskgov.scheduling.objects import Admission, FlavorResource, Usage, Workload
    from taskgov.scheduling.results import CycleResult, Preempted
    from taskgov.scheduling.state import QueueState, Record

Now = datetime | str | Instant
_NOTHING: Final[Mapping[FlavorResource, int]] = {}


@dataclass(frozen=True, slots=True)
class QuotaView:
    """What a cluster queue or cohort has of its flavors and resources, in base units; keys are `flavor/resource`."""

    available: Usage
    potential: Usage
    usage: Usage
    nominal: Usage


class World:
    """A Kueue installation whose scheduler runs when it is told to.

    Example:
        >>> from taskgov.scheduling import World
        >>> world = World()
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
        self._store = Store(config or ManagerConfig())
        self._cycle_number = 0
        self._unmodelled: dict[tuple[str, str, str], frozenset[str]] = {}

    @property
    def config(self) -> ManagerConfig:
        """How the manager is configured."""
        return self._store.config

    @property
    def not_modelled(self) -> tuple[NotModelled, ...]:
        """What the input uses and this model does not follow; every result says it too."""
        found = unmodelled.of_config(self.config)
        for (kind, namespace, name), features in self._unmodelled.items():
            key = f"{namespace}/{name}" if namespace else name
            found += [NotModelled(feature, kind, key) for feature in features]
        return tuple(sorted(found))

    def copy(self) -> World:
        """Return a world of its own in the same state, for what-if questions; specs are shared, state is not."""
        twin = World(self.config)
        twin._store = self._store.copy()
        twin._cycle_number = self._cycle_number
        twin._unmodelled = dict(self._unmodelled)
        return twin

    # Objects in

    def load(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Apply many objects, such as the items of `kubectl get -o json`, in an order that suits them."""
        for obj in sorted(objects, key=lambda o: KINDS.index(o["kind"]) if o["kind"] in KINDS else len(KINDS)):
            self.apply(obj)

    def apply(self, obj: Mapping[str, Any]) -> None:
        """Add or change one object of `kueue.x-k8s.io` v1beta1 or v1beta2, or a Namespace.

        A workload's status is read when the workload is new; from then on its status is this world's.
        Raises `ValueError` for an object of another kind or one that cannot be read.
        """
        store, name = self._store, reading.name_of(obj)
        self._remember_unmodelled(obj)
        match obj["kind"]:
            case "Namespace":
                store.put_namespace(name, obj["metadata"].get("labels") or {})
            case "ResourceFlavor":
                store.put_flavor(reading.read_flavor(obj))
            case "WorkloadPriorityClass":
                store.put_priority_class(name, int(obj["value"]))
            case "Cohort":
                store.put_cohort(reading.read_cohort(obj))
            case "ClusterQueue":
                store.put_queue(reading.read_cluster_queue(obj))
            case "LocalQueue":
                store.put_local_queue(reading.read_local_queue(obj))
            case "Workload":
                self.submit(reading.read_workload(obj, store.priorities), obj.get("status") or {})
            case kind:
                if kind not in unmodelled.KINDS:
                    raise ValueError(f"Kueue does not schedule by objects of kind {kind}")

    def submit(self, workload: Workload, status: Mapping[str, Any] = _NOTHING) -> None:
        """Add or change a workload given as a value."""
        record = self._store.records.get(workload.key)
        if record is None:
            self._store.add_workload(workload, status)
        else:
            self._store.change_workload(record, workload)

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete one object. Raises `KeyError` when there is none."""
        store = self._store
        self._unmodelled.pop((kind, namespace, name), None)
        match kind:
            case "Namespace":
                del store.namespaces[name]
            case "ResourceFlavor":
                store.drop_flavor(name)
            case "WorkloadPriorityClass":
                del store.priorities[name]
            case "Cohort":
                store.drop_cohort(name)
            case "ClusterQueue":
                store.drop_queue(name)
            case "LocalQueue":
                store.drop_local_queue(namespace, name)
            case "Workload":
                store.drop_workload(store.records[f"{namespace}/{name}" if namespace else name])
            case _:
                if kind not in unmodelled.KINDS:
                    raise KeyError(kind)

    # What happens

    def cycle(self, now: Now) -> CycleResult:
        """Run one scheduling cycle: one head of each active queue with somebody in line.

        Admitted workloads hold their quota at once. Preempted ones keep theirs until `finish_eviction`.
        """
        when = _instant(now)
        self._store.settle_tree()
        self.release_backoffs(when)
        self._cycle_number += 1
        run = Cycle(self._nominator(), self._cycle_number, when)
        run.run(list(self._heads()))
        return conclude(run, self.not_modelled)

    def settle(self, now: Now, max_cycles: int = 1000) -> list[CycleResult]:
        """Run cycles at one moment until nothing changes, finishing evictions at once; see `simulation` for run times.

        Stops after `max_cycles` at the latest: rules can be set up so that workloads preempt one another for ever.
        """
        results: list[CycleResult] = []
        while len(results) < max_cycles:
            self.requeue_inadmissible()
            if not self.has_heads():
                break
            result = self.cycle(now)
            results.append(result)
            for victim in result.preempted:
                self.finish_eviction(victim.workload, now)
            if result.idle and not result.preempted and not self._someone_untried(result):
                break
        return results

    def evict(self, workload: str, now: Now, *, reason: str, message: str) -> None:
        """Tell a running workload to leave for a reason other than preemption, e.g. `PodsReadyTimeout`."""
        tell_to_leave(self._running(workload), reason, message, _instant(now))

    def finish_eviction(self, workload: str, now: Now) -> None:
        """Free the quota of an evicted workload whose pods are gone, and queue it again, as old as it is.

        Raises `ValueError` when it was not told to leave.
        """
        record, when = self._running(workload), _instant(now)
        if not record.evicted:
            raise ValueError(f"workload {workload} is not evicted")
        self._store.stop(record)
        pending = PENDING_EVALUATION if self._observable() else PENDING
        lifecycle.leave(record, pending, self.config.backoff, when)
        self._store.enqueue(record)

    def finish(
        self, workload: str, now: Now, *, reason: str = "Succeeded", message: str = "Job finished successfully"
    ) -> None:
        """Free the quota of a workload that is done; it stays readable until it is deleted."""
        record = self._record(workload)
        if record.admission is not None:
            self._store.stop(record)
        else:
            self._store.dequeue(record)
        lifecycle.finish(record, reason, message, _instant(now))

    def release_backoffs(self, now: Now) -> None:
        """Queue the workloads whose time out of the queue is over; every cycle does this first."""
        when = _instant(now)
        for record in self._store.now_in_line(when):
            self._store.dequeue(record)
            lifecycle.end_backoff(record, when)
            self._store.enqueue(record)

    def requeue_inadmissible(self, trees: Iterable[str] | None = None) -> int:
        """Put inadmissible workloads back in line, in all `notified` trees or in the given ones, and say how many.

        Kueue does this in batches of one second; whoever owns the clock decides.
        """
        chosen = self.notified if trees is None else frozenset(trees)
        moved = 0
        for tree, members in self._trees().items():
            if tree in chosen:
                self._store.notified.difference_update(state.spec.name for state in members)
                moved += sum(self._release(state) for state in members)
        return moved

    @property
    def notified(self) -> frozenset[str]:
        """The trees (`Cohort/name` or `ClusterQueue/name`) where capacity or specs changed since the last requeue."""
        queues = self._store.queues
        self._store.settle_tree()
        return frozenset(queues[name].node.root.tree for name in self._store.notified if name in queues)

    @property
    def has_notified(self) -> bool:
        """Whether any tree deserves another look."""
        return bool(self._store.notified)

    @property
    def next_backoff(self) -> Instant | None:
        """The moment when the next workload may come back after an eviction, `None` when nobody waits for one."""
        moments = [r.requeue_at for r in self._store.backing_off.values() if r.requeue_at is not None]
        return min(moments, default=None)

    @property
    def trees(self) -> frozenset[str]:
        """All trees: cohorts without parent, and cluster queues without cohort."""
        return frozenset(self._trees())

    def has_heads(self) -> bool:
        """Say whether a cycle would have anybody to look at."""
        return any(q.pending.active and self._store.inactive_because(q) is None for q in self._store.queues.values())

    # Reading

    def workload(self, key: str, version: str = "v1beta2") -> dict[str, Any]:
        """Return a workload as the API server would show it. Raises `KeyError` when it is unknown."""
        return writing.workload_object(self._record(key), version)

    def workloads(self) -> Iterator[str]:
        """Give the keys of all workloads."""
        return iter(self._store.records)

    def cluster_queues(self) -> Iterator[str]:
        """Give the names of all cluster queues."""
        return iter(self._store.queues)

    def admission(self, key: str) -> Admission | None:
        """Return what a workload holds, `None` when it holds nothing."""
        return self._record(key).admission

    def cluster_queue(self, name: str) -> dict[str, Any]:
        """Return the ClusterQueue `name` with its status as Kueue reports it (v1beta2)."""
        self._store.settle_tree()
        state = self._store.queues[name]
        return writing.cluster_queue_object(state, self._store.inactive_because(state))

    def pending(self, cluster_queue: str) -> tuple[list[str], list[str]]:
        """Return who is in line in a queue, and who is inadmissible until something changes; by name."""
        queue = self._store.queues[cluster_queue].pending
        return [r.key for r in queue.in_line()], [r.key for r in queue.inadmissible()]

    def quota(self, name: str, *, cohort: bool = False) -> QuotaView:
        """Return what a cluster queue (or cohort) has and could have."""
        node = self._node(name, cohort=cohort)
        keys = sorted({**node.root.subtree, **node.usage})
        return QuotaView(
            available={fr: available(node, fr) for fr in keys},
            potential={fr: node.potential.get(fr, 0) for fr in keys},
            usage={fr: node.usage.get(fr, 0) for fr in keys},
            nominal={fr: quota.nominal for fr, quota in node.quotas.items()},
        )

    def share(self, name: str, *, cohort: bool = False, extra: Mapping[FlavorResource, int] = _NOTHING) -> Share:
        """Return the dominant resource share of a cluster queue (or cohort), as it would be with `extra` usage."""
        return dominant_share(self._node(name, cohort=cohort), extra)

    def signature(self) -> tuple[Any, ...]:
        """Return everything that the next decisions depend on except time: who runs where, who waits how."""
        return tuple(
            (
                name,
                tuple((entry[-1].key, entry[0], *entry[-1].usage.items()) for entry in state.running),
                state.pending.signature(),
            )
            for name, state in sorted(self._store.queues.items())
        )

    # Questions

    def assign(self, workload: Mapping[str, Any], cluster_queue: str, oracle: Oracle | None = None) -> Assignment:
        """Return the flavors a Workload object could get in a queue now, with every flavor that was looked at.

        `oracle` answers what preemption could free, instead of a search among the running workloads.
        """
        return inquiry.assign(self._nominator(), self._read(workload), self._queue(cluster_queue), oracle)

    def victims(
        self,
        workload: Mapping[str, Any],
        cluster_queue: str,
        flavors: inquiry.FixedFlavors | None = None,
    ) -> list[Preempted]:
        """Return whom a Workload object would preempt, were it next in a queue now; `flavors` fixes what it gets."""
        return inquiry.victims(self._nominator(), self._read(workload), self._queue(cluster_queue), flavors)

    def candidates(self, cluster_queue: str) -> list[str]:
        """Return everyone who holds quota, in the order in which a workload of the queue would consider them."""
        return inquiry.candidates(list(self._store.queues.values()), cluster_queue)

    # Inside

    def _remember_unmodelled(self, obj: Mapping[str, Any]) -> None:
        key = (obj["kind"], reading.namespace_of(obj), reading.name_of(obj))
        self._unmodelled.pop(key, None)
        if features := unmodelled.features_of(obj):
            self._unmodelled[key] = features

    def _read(self, workload: Mapping[str, Any]) -> Workload:
        return reading.read_workload(workload, self._store.priorities)

    def _queue(self, name: str) -> QueueState:
        self._store.settle_tree()
        return self._store.queues[name]

    def _record(self, key: str) -> Record:
        return self._store.records[key]

    def _running(self, key: str) -> Record:
        record = self._record(key)
        if record.admission is None:
            raise ValueError(f"workload {key} holds no quota")
        return record

    def _node(self, name: str, *, cohort: bool) -> QuotaNode:
        self._store.settle_tree()
        return self._store.cohort_nodes[name] if cohort else self._store.queues[name].node

    def _nominator(self) -> Nominator:
        store = self._store
        return Nominator(store.config, store.queues.__getitem__, store.eligible, store.namespaces)

    def _observable(self) -> bool:
        return self.config.gate("UnadmittedWorkloadsObservability")

    def _heads(self) -> Iterator[tuple[QueueState, Record]]:
        """Pop exactly one head of each active queue."""
        for state in self._store.queues.values():
            if state.pending.active and self._store.inactive_because(state) is None:
                record = state.pending.pop()
                if record is not None:
                    yield state, record

    def _trees(self) -> Mapping[str, list[QueueState]]:
        """Group the queues by tree, by name."""
        self._store.settle_tree()
        return self._store.trees

    def _release(self, state: QueueState) -> int:
        return state.pending.release_inadmissible(self._may_enter(state))

    def _may_enter(self, state: QueueState) -> Callable[[Record], bool]:
        namespaces, selector = self._store.namespaces, state.spec.namespace_selector

        def may_enter(record: Record) -> bool:
            labels = namespace_labels(namespaces, record.workload.namespace)
            return record.requeue_at is None and selects(selector, labels)

        return may_enter

    def _someone_untried(self, result: CycleResult) -> bool:
        """Whether another cycle could bring something new although this one brought nothing."""
        return bool(self._store.notified) or not all(w.in_line for w in result.waiting)


def _instant(now: Now) -> Instant:
    return now if isinstance(now, int) else instant(now)
