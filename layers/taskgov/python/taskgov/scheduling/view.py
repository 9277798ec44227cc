"""How do things stand? Everything that can be read from a `KueueModel` without changing it.

`KueueModel` inherits this; explanations, audits and plans that only read need no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling import inquiry, kueue_forms, unmodelled, writing
from taskgov.scheduling.config import ManagerConfig
from taskgov.scheduling.doubts import Doubts, doubts_of
from taskgov.scheduling.nomination import Nominator
from taskgov.scheduling.quota import QuotaNode, available
from taskgov.scheduling.shares import Share, dominant_share
from taskgov.scheduling.standings import Specs, Standing, specs_of, standings_of
from taskgov.scheduling.state import QUOTA_RESERVED
from taskgov.scheduling.store import Store
from taskgov.scheduling.threats import Threat, threatened, threats_of
from taskgov.scheduling.unmodelled import NotModelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.scheduling.assignment import Assignment
    from taskgov.scheduling.flavor_search import Oracle
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Admission, ClusterQueue, FlavorResource, PodSet, Usage, Workload
    from taskgov.scheduling.results import Preempted
    from taskgov.scheduling.state import QueueState, Record

_NOTHING: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class QuotaView:
    """What a cluster queue or cohort has of its flavors and resources, in base units; keys are `flavor/resource`."""

    available: Usage
    potential: Usage
    usage: Usage
    nominal: Usage


class KueueModelView:
    """The readable side of the model."""

    def __init__(self, config: ManagerConfig | None = None) -> None:
        self._store = Store(config or ManagerConfig())
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

    @property
    def doubts(self) -> Doubts:
        """Workload -> the features that make predictions about it uncertain; see `taskgov.scheduling.doubts`."""
        return doubts_of(self._store, self._unmodelled)

    def threats(self, waiting: Iterable[str], doubts: Doubts) -> frozenset[Threat]:
        """Return what these waiting workloads threaten, as far as they are uncertain."""
        return threats_of(self._store, waiting, doubts)

    def threatened(self, threats: Iterable[Threat]) -> frozenset[str]:
        """Return the running workloads that may be preempted so."""
        return threatened(self._store, threats)

    @property
    def notified(self) -> frozenset[str]:
        """The trees (`Cohort/name` or `ClusterQueue/name`) where capacity or specs changed since the last requeue."""
        queues = self._store.queues
        self._store.settle_tree()
        return frozenset(queues[name].node.root.tree for name in self._store.notified if name in queues)

    @property
    def has_notified(self) -> bool:
        """Whether any tree has to be reconsidered."""
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
        """Return whether a cycle would consider any workload; one that is held up does so once all pods are ready."""
        if self._store.held is not None:
            return not self._store.somebody_starts()
        return any(q.pending.active and self._store.inactive_because(q) is None for q in self._store.queues.values())

    # Reading

    def specs(self) -> Specs:
        """Return the queues, flavors, cohorts and namespaces as values."""
        return specs_of(self._store)

    def standings(self) -> Iterator[Standing]:
        """Give how each workload stands that is not finished."""
        return standings_of(self._store)

    def workload(self, key: str, version: str = "v1beta2") -> dict[str, Any]:
        """Return a workload as the API server would show it. Raises `KeyError` when it is unknown."""
        return writing.workload_object(self._record(key), version)

    def waits(self, key: str) -> bool:
        """Return whether a workload waits for quota: it has no reservation, and is neither finished nor deactivated.

        Raises `KeyError` when it is unknown.
        """
        record = self._record(key)
        reserved = record.conditions.get(QUOTA_RESERVED)
        return record.workload.active and not record.finished and not (reserved is not None and reserved.status)

    def pod_sets(self, key: str) -> tuple[PodSet, ...]:
        """Return the pod sets of a workload as Kueue counts them. Raises `KeyError` when it is unknown."""
        return self._record(key).workload.pod_sets

    def workloads(self) -> Iterator[str]:
        """Give the keys of all workloads."""
        return iter(self._store.records)

    def told_to_leave(self) -> list[str]:
        """Return the keys of the workloads that are being evicted and still hold quota: their pods exist."""
        return [
            record.key for record in self._store.records.values() if record.admission is not None and record.evicted
        ]

    def anybody_waits(self) -> bool:
        """Return whether any workload holds no quota and is not finished."""
        return any(record.admission is None and not record.finished for record in self._store.records.values())

    def cluster_queues(self) -> Iterator[str]:
        """Give the names of all cluster queues."""
        return iter(self._store.queues)

    def admission(self, key: str) -> Admission | None:
        """Return what a workload holds, `None` when it holds nothing."""
        return self._record(key).admission

    def runs(self, key: str) -> bool:
        """Return whether a workload may run: it holds quota, and no admission check is open."""
        record = self._record(key)
        return record.admission is not None and record.admitted

    def cluster_queue(self, name: str) -> dict[str, Any]:
        """Return the ClusterQueue `name` with its status as Kueue reports it (v1beta2)."""
        self._store.settle_tree()
        state = self._store.queues[name]
        return writing.cluster_queue_object(state, self._store.inactive_because(state))

    def queue_spec(self, name: str) -> ClusterQueue:
        """Return a ClusterQueue as the model has read it. Raises `KeyError` when there is none."""
        return self._store.queues[name].spec

    def local_queue(self, namespace: str, name: str) -> dict[str, Any]:
        """Return a LocalQueue with its counts as Kueue reports them (v1beta2)."""
        queue = self._store.local_queues[namespace, name]
        members = [
            r for r in self._store.records.values() if (r.workload.namespace, r.workload.queue) == (namespace, name)
        ]
        account = self._store.ledger.accounts.get((namespace, name)) if self._store.takes_turns else None
        return writing.local_queue_object(queue, members, account)

    def cohort(self, name: str) -> dict[str, Any]:
        """Return the Cohort `name` with its share as Kueue reports it (v1beta2)."""
        return writing.cohort_object(self._node(name, cohort=True))

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
        held = self._store.held
        queues = (
            (
                name,
                tuple((entry[-1].key, entry[0], *entry[-1].usage.items()) for entry in state.running),
                state.pending.signature(),
            )
            for name, state in sorted(self._store.queues.items())
        )
        waits_for_pods = None if held is None else tuple(entry.record.key for entry in held.entries)
        return (waits_for_pods, self._store.ledger.signature(), *queues)

    # Questions

    def read(self, workload: Mapping[str, Any]) -> Workload:
        """Return a Workload object as Kueue takes it: what counts of its requests, and why it is refused if it is."""
        return self._store.read(kueue_forms.checked({**workload, "kind": "Workload"}))

    def assign(self, workload: Mapping[str, Any], cluster_queue: str, oracle: Oracle | None = None) -> Assignment:
        """Return the flavors a Workload object could get in a queue now, with every flavor that was considered.

        `oracle` answers what preemption could free, instead of a search among the running workloads.
        """
        return inquiry.assign(self._nominator(), self.read(workload), self._queue(cluster_queue), oracle)

    def victims(
        self,
        workload: Mapping[str, Any],
        cluster_queue: str,
        flavors: inquiry.FixedFlavors | None = None,
    ) -> list[Preempted]:
        """Return whom a Workload object would preempt, were it next in a queue now; `flavors` fixes what it gets."""
        return inquiry.victims(self._nominator(), self.read(workload), self._queue(cluster_queue), flavors)

    def victims_of_each(self, questions: Iterable[tuple[Mapping[str, Any], str]]) -> Iterator[list[Preempted]]:
        """Give whom each of many Workload objects would preempt by itself, were it next in its queue now.

        What is found out for one is not searched again for the others. The model must not change meanwhile.
        """
        nominator = self._nominator()
        for workload, cluster_queue in questions:
            yield inquiry.victims(nominator, self.read(workload), self._queue(cluster_queue), None)

    def candidates(self, cluster_queue: str) -> list[str]:
        """Return everyone who holds quota, in the order in which a workload of the queue would consider them."""
        return inquiry.candidates(self._nominator().candidates, list(self._store.queues.values()), cluster_queue)

    # Inside

    def _queue(self, name: str) -> QueueState:
        self._store.settle_tree()
        return self._store.queues[name]

    def _record(self, key: str) -> Record:
        return self._store.records[key]

    def _node(self, name: str, *, cohort: bool) -> QuotaNode:
        self._store.settle_tree()
        return self._store.cohort_nodes[name] if cohort else self._store.queues[name].node

    def _nominator(self) -> Nominator:
        store = self._store
        return Nominator(
            store.config,
            store.queues.__getitem__,
            store.flavors,
            store.namespaces,
            store.is_active,
            store.somebody_starts,
            store.records,
            store.usage_of if store.takes_turns else None,
        )

    def _trees(self) -> Mapping[str, list[QueueState]]:
        """Group the queues by tree, by name."""
        self._store.settle_tree()
        return self._store.trees
