"""Who is next where LocalQueues take turns? A queue whose LocalQueue that used least comes first.

Admission fair sharing of a ClusterQueue (`admissionScope`). Rules: `queueOrderingFunc` in
`pkg/cache/queue/cluster_queue.go` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.pending import PendingQueue
from taskgov.scheduling.pending_class import PendingClass, R

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskgov.scheduling.fair_admission import QueueKey
    from taskgov.scheduling.instants import Instant

Rank = tuple[float, bool, int, "Instant", str, str]


class FairPendingQueue(PendingQueue[R]):
    """Pending workloads by usage of their LocalQueue, then as in any other queue."""

    __slots__ = ("usage_of",)

    def __init__(self, strategy: str, *, hashing: bool, usage_of: Callable[[QueueKey], float]) -> None:
        super().__init__(strategy, hashing=hashing)
        self.usage_of = usage_of

    def pop(self) -> R | None:
        """Take the next in line; usage is as it is now, for Kueue sorts again before it takes one."""
        usages: dict[QueueKey, float] = {}

        def rank(record: R) -> Rank:
            workload = record.workload
            key = (workload.namespace, workload.queue)
            if key not in usages:
                usages[key] = self.usage_of(key)
            waits_since = record.queued_since
            sticky = record is self._sticky
            return usages[key], not sticky, -workload.priority, waits_since, workload.uid, record.key

        first = min(self._first_ones(), key=rank, default=None)
        if first is not None:
            self._leave(first)
        return first

    def _first_ones(self) -> Iterator[R]:
        for kinds in self._classes.values():
            for kind in kinds.values():
                if not kind.marked and (ticket := kind.top()) is not None:
                    yield ticket.record
        sticky = self._sticky
        if sticky is not None and sticky.waiting is not None and not sticky.waiting.marked:
            yield sticky

    def _new(self) -> PendingQueue[R]:
        return FairPendingQueue(self.strategy, hashing=self.hashing, usage_of=self.usage_of)

    def _class_of(self, record: R) -> PendingClass[R]:
        """Return its class, one for each LocalQueue: they take turns."""
        workload = record.workload
        digest, place = (workload.priority, record.demand), f"{workload.namespace}/{workload.queue}"
        kinds = self._classes.setdefault(digest, {})
        if place not in kinds:
            kinds[place] = PendingClass(digest, place, marked=digest in self.marks)
        return kinds[place]

    def _offer(self, kind: PendingClass[R]) -> None:
        """Let nobody compete ahead of time: usage changes the order of everybody."""
