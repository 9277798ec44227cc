"""Who may be preempted? Candidates of a queue and of its cohort tree, in Kueue's order.

All heads of a cycle are judged against the same state, so the borrowers of a tree are listed and sorted once per
cycle (`Candidates`), however many heads ask. Rules: `pkg/scheduler/preemption/common` and `.../classical` of Kueue.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from taskgov.scheduling.objects import ANY, LOWER_OR_NEWER_EQUAL, LOWER_PRIORITY, FlavorResource
from taskgov.scheduling.quota import QuotaNode, add_usage, remove_usage, within_nominal
from taskgov.scheduling.state import QueueState, Record, RunningKey

if TYPE_CHECKING:
    from taskgov.scheduling.fair_admission import QueueKey
    from taskgov.scheduling.instants import Instant

QueueOf = Callable[[str], QueueState]


class Victim(NamedTuple):
    """A workload to preempt, and why it may be."""

    record: Record
    reason: str


class Preemptor(NamedTuple):
    """The workload that needs room: its queue, its total request, and where it lacks quota."""

    record: Record
    queue: QueueState
    usage: Mapping[FlavorResource, int]
    frs: frozenset[FlavorResource]

    @property
    def priority(self) -> int:
        """Its effective priority."""
        return self.record.workload.priority

    @property
    def since(self) -> Instant:
        """Its place in time."""
        return self.record.queued_since


class InLine(Protocol):
    """What policies compare of a preemptor."""

    @property
    def priority(self) -> int:
        """Its effective priority."""
        ...

    @property
    def since(self) -> Instant:
        """Its place in time."""
        ...


def allows(policy: str, preemptor: InLine, candidate: Record) -> bool:
    """Return whether a preemption policy lets `preemptor` take from `candidate`."""
    if policy == ANY:
        return True
    priority, other = preemptor.priority, candidate.workload.priority
    if policy == LOWER_PRIORITY:
        return priority > other
    if policy == LOWER_OR_NEWER_EQUAL:
        return priority > other or (priority == other and preemptor.since < candidate.queued_since)
    return False


def asked_of(policy: str, preemptor: InLine) -> tuple[int, ...]:
    """Return what `allows` depends on in a preemptor: those with equal values may take from the same."""
    if policy == ANY:
        return ()
    return (preemptor.priority,) if policy == LOWER_PRIORITY else (preemptor.priority, preemptor.since)


def take_out(record: Record) -> None:
    """Count the quota `record` holds as free; nothing else changes."""
    if record.queue is not None:
        remove_usage(record.queue.node, record.usage)


def put_back(victims: Iterable[Victim]) -> None:
    """Undo `take_out`."""
    for record, _ in victims:
        if record.queue is not None:
            add_usage(record.queue.node, record.usage)


@dataclass(slots=True)
class Candidates:
    """The running workloads of all active queues as candidates, as things stand; `gone` ones are left out.

    With `usage_of` LocalQueues take turns where their cluster queue says so: of two candidates of one such queue comes
    first whose LocalQueue has used more (Kueue: `CandidatesOrdering` in `pkg/scheduler/preemption/common`).
    """

    queue_of: QueueOf
    is_active: Callable[[QueueState], bool]
    gone: Collection[Record] = ()
    usage_of: Callable[[QueueKey], float] | None = None
    known: dict[object, Any] = field(default_factory=dict)
    """What was found out for one head and holds for others."""
    _borrowers: dict[tuple[QuotaNode, frozenset[FlavorResource]], list[RunningKey]] = field(default_factory=dict)
    _by_queue: dict[tuple[QuotaNode, frozenset[FlavorResource]], dict[QuotaNode, list[Record]]] = field(
        default_factory=dict
    )

    def own(self, preemptor: Preemptor) -> list[Record]:
        """Return those of the preemptor's own queue that `withinClusterQueue` lets it take, in order."""
        policy = preemptor.queue.spec.preemption.within_cluster_queue
        if policy not in {LOWER_PRIORITY, LOWER_OR_NEWER_EQUAL, ANY}:
            return []
        running = preemptor.queue.running
        if policy != ANY:  # the order is by priority: those after these are out of reach
            beyond = preemptor.priority + (policy == LOWER_OR_NEWER_EQUAL)
            running = running[: bisect_left(running, (1, beyond))]
        if self.usage_of is not None:
            running = self.in_turn(running)
        records = (entry[-1] for entry in running)
        return [
            r
            for r in records
            if allows(policy, preemptor, r) and not preemptor.frs.isdisjoint(r.usage) and r not in self.gone
        ]

    def borrowers(self, root: QuotaNode, frs: frozenset[FlavorResource]) -> list[RunningKey]:
        """Everyone in the tree of `root` whose queue exceeds its nominal quota of some of `frs`, in order.

        Nobody in a queue that is inactive: Kueue leaves it out of the cycle's snapshot (`skipInactiveCQReason` in
        `pkg/cache/scheduler/snapshot.go`). What it uses counts anyway.
        """
        known = self._borrowers.get((root, frs))
        if known is None:
            known = sorted(entry for _, entries in self._in_borrowing_queues(root, frs) for entry in entries)
            if self.usage_of is not None:
                known = self.in_turn(known)
            self._borrowers[root, frs] = known
        return known

    def borrowers_by_queue(self, root: QuotaNode, frs: frozenset[FlavorResource]) -> Mapping[QuotaNode, list[Record]]:
        """Return the same by queue."""
        known = self._by_queue.get((root, frs))
        if known is None:
            known = self._by_queue[root, frs] = {}
            if self.usage_of is None:  # the order in a queue is that of all
                for node, entries in self._in_borrowing_queues(root, frs):
                    known[node] = [entry[-1] for entry in entries]
            else:
                for *_, record in self.borrowers(root, frs):
                    if record.queue is not None:
                        known.setdefault(record.queue.node, []).append(record)
        return known

    def _in_borrowing_queues(
        self, root: QuotaNode, frs: frozenset[FlavorResource]
    ) -> Iterator[tuple[QuotaNode, list[RunningKey]]]:
        for node in root.subtree_queues():
            if within_nominal(node, frs) or not self.is_active(queue := self.queue_of(node.name)):
                continue
            held = [e for e in queue.running if not frs.isdisjoint(e[-1].usage) and e[-1] not in self.gone]
            if held:
                yield node, held

    def in_turn(self, entries: list[RunningKey]) -> list[RunningKey]:
        """Return candidates in Kueue's order where LocalQueues take turns."""
        return sorted(entries, key=cmp_to_key(self._compare))

    def _compare(self, left: RunningKey, right: RunningKey) -> int:
        first, other = left[-1], right[-1]
        of_one_queue = first.queue is not None and first.queue is other.queue and first.queue.spec.fair_admission
        if left[0] == right[0] and of_one_queue and first.workload.queue != other.workload.queue and self.usage_of:
            used = self.usage_of((first.workload.namespace, first.workload.queue))
            used_by_other = self.usage_of((other.workload.namespace, other.workload.queue))
            if used != used_by_other:
                return -1 if used > used_by_other else 1
        return -1 if left[:-1] < right[:-1] else int(left[:-1] > right[:-1])
