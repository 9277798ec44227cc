"""Who is next in a cluster queue? Pending workloads in Kueue's order, moved class by class instead of one by one.

Workloads of equal priority and shape (and namespace) form a class. Where Kueue moves all equals of a workload that
does not fit to the inadmissible ones, here the class gets a mark; where it moves them back, the mark goes. So a cycle
costs the same for ten or ten thousand waiting. Rules: `pkg/cache/queue/cluster_queue.go` of Kueue.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic

from taskgov.scheduling.objects import STRICT_FIFO
from taskgov.scheduling.pending_class import Hash, PendingClass, R, Ticket
from taskgov.scheduling.results import Requeue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class PendingQueue(Generic[R]):
    """The pending workloads of one cluster queue: those in line, and those inadmissible until something changes."""

    __slots__ = ("_classes", "_heads", "_number", "_sticky", "active", "hashing", "kept", "marks", "parked", "strategy")

    def __init__(self, strategy: str, *, hashing: bool) -> None:
        self.strategy = strategy
        self.hashing = hashing
        self.active = 0
        self.parked: dict[str, R] = {}
        self.kept: dict[str, R] = {}
        self.marks: set[Hash] = set()
        self._classes: dict[Hash, dict[str, PendingClass[R]]] = {}
        self._heads: list[Ticket[R]] = []
        self._number = 0
        self._sticky: R | None = None

    def copy(self, twins: Mapping[R, R]) -> PendingQueue[R]:
        """Return a queue of its own with the given copies of its workloads, in the same state."""
        twin: PendingQueue[R] = self._new()
        twin.active, twin.marks, twin._number = self.active, set(self.marks), self._number
        twin.parked = {key: twins[record] for key, record in self.parked.items()}
        twin.kept = {key: twins[record] for key, record in self.kept.items()}
        twin._sticky = None if self._sticky is None else twins.get(self._sticky)
        for digest, kinds in self._classes.items():
            twin._classes[digest] = {place: kind.copy(twins) for place, kind in kinds.items()}
            for kind in twin._classes[digest].values():
                if not kind.marked:
                    twin._offer(kind)
        return twin

    def push(self, record: R) -> None:
        """Put a new, changed or evicted workload in line; an equal of inadmissible ones joins them."""
        self._enter(record, self._class_of(record))

    def push_started(self, record: R) -> None:
        """Put in line a workload whose LocalQueue begins or starts again, even where equals of it are inadmissible.

        Kueue: `AddFromLocalQueue`, which does not ask for equals, unlike `PushOrUpdate`.
        """
        self._enter(record, self._class_in_line(record))

    def keep(self, record: R) -> None:
        """Count `record`, which was popped, as waiting still: a cycle that is held up continues with it."""
        self.kept[record.key] = record

    def park(self, record: R) -> None:
        """Keep `record` out of line until `release_inadmissible` or until it is pushed again."""
        self.parked[record.key] = record

    def pop(self) -> R | None:
        """Take the next in line: the sticky one, else the first in order; `None` when nobody is."""
        sticky = self._sticky
        if sticky is not None and sticky.waiting is not None and not sticky.waiting.marked:
            self.remove(sticky, keep_sticky=True)
            return sticky
        while self._heads:
            ticket = heappop(self._heads)
            kind = ticket.kind
            if kind.offered == ticket.number:
                kind.offered = 0
            if kind.marked:
                continue
            stale = ticket.record.ticket != ticket.number or ticket.record.waiting is not kind
            if not stale:
                self._leave(ticket.record)
            self._offer(kind)
            if not stale:
                return ticket.record
        return None

    def requeue(self, record: R, reason: Requeue, *, waits_for_backoff: bool) -> bool:
        """Requeue a workload that got no quota; say whether it is in line again (Q: requeueIfNotPresent).

        A preemptor that becomes inadmissible keeps its place as the sticky workload: it is the next to be considered.
        """
        strict = self.strategy == STRICT_FIFO
        if reason is Requeue.PENDING_PREEMPTION and not strict:
            self._sticky = record
        immediate = (
            reason is not Requeue.NAMESPACE_MISMATCH
            if strict
            else reason is Requeue.PENDING_PREEMPTION or reason is Requeue.FAILED_AFTER_NOMINATION
        )
        unfinished = record.scan is not None and record.scan.unfinished
        if not waits_for_backoff and (immediate or unfinished):
            self._enter(record, self._class_in_line(record))
            return True
        if self.hashing and not strict and (reason is Requeue.NO_FIT or reason is Requeue.NO_CANDIDATES):
            kind = self._class_of(record)
            self._mark(kind.hash)
            self._enter(record, kind)
        else:
            self.park(record)
        return False

    def release_inadmissible(self, may_enter: Callable[[R], bool]) -> int:
        """Put inadmissible workloads back in line and clear all marks; those that `may_enter` refuses stay out.

        `may_enter` is called once for each class (equals share their namespace) and each parked workload.
        """
        moved = 0
        for digest in self.marks:
            for kind in [kind for kind in self._classes.get(digest, {}).values() if kind.marked]:
                kind.marked = False
                first = kind.top()
                if first is None or may_enter(first.record):
                    self.active += kind.size
                    moved += kind.size
                    self._offer(kind)
                else:
                    self._park_all(kind)
        self.marks.clear()
        for record in [r for r in self.parked.values() if may_enter(r)]:
            del self.parked[record.key]
            self.push(record)
            moved += 1
        return moved

    def remove(self, record: R, *, keep_sticky: bool = False) -> None:
        """Take out a workload wherever it waits."""
        self.parked.pop(record.key, None)
        self.kept.pop(record.key, None)
        if record.waiting is not None:
            self._leave(record)
        if not keep_sticky:
            self._drop_sticky(record)

    def in_line(self) -> list[R]:
        """Everyone who may be popped, or was and is kept, by key."""
        unmarked = (r for kinds in self._classes.values() for k in kinds.values() if not k.marked for r in k.records())
        return sorted([*unmarked, *self.kept.values()], key=lambda r: r.key)

    def inadmissible(self) -> list[R]:
        """Everyone who may not be popped before something changes, by key."""
        marked = (r for kinds in self._classes.values() for k in kinds.values() if k.marked for r in k.records())
        return sorted([*marked, *self.parked.values()], key=lambda r: r.key)

    @property
    def sticky(self) -> R | None:
        """The one that preempted last: first when in line, until it is admitted, deleted, or another one preempts."""
        return self._sticky

    def signature(self) -> tuple[object, ...]:
        """Return who waits, how, and how far flavor searches came; equal for equal futures."""
        sticky = None if self._sticky is None else self._sticky.key
        in_line = tuple((r.key, r.scan and repr(r.scan.tried)) for r in self.in_line())
        return sticky, in_line, tuple((r.key, r.scan and repr(r.scan.tried)) for r in self.inadmissible())

    def __len__(self) -> int:
        return (
            len(self.parked) + len(self.kept) + sum(k.size for kinds in self._classes.values() for k in kinds.values())
        )

    def _class_of(self, record: R) -> PendingClass[R]:
        workload = record.workload
        digest = (workload.priority, record.demand)
        kinds = self._classes.setdefault(digest, {})
        kind = kinds.get(workload.namespace)
        if kind is None:
            kind = kinds[workload.namespace] = PendingClass(digest, workload.namespace, marked=digest in self.marks)
        return kind

    def _class_in_line(self, record: R) -> PendingClass[R]:
        """Return its class, or one beside it where that one has a mark."""
        kind = self._class_of(record)
        while kind.marked:
            kinds, place = self._classes[kind.hash], f"{kind.place} beside"
            if place not in kinds or not kinds[place].size:
                kinds[place] = PendingClass(kind.hash, place, marked=False)
            kind = kinds[place]
        return kind

    def _new(self) -> PendingQueue[R]:
        """Return an empty queue like this one."""
        return PendingQueue(self.strategy, hashing=self.hashing)

    def _enter(self, record: R, kind: PendingClass[R]) -> None:
        workload = record.workload
        self._number += 1
        record.ticket, record.waiting = self._number, kind
        ticket = Ticket(-workload.priority, record.queued_since, workload.uid, record.key, self._number, record, kind)
        heappush(kind.heap, ticket)
        kind.size += 1
        if not kind.marked:
            self.active += 1
            if kind.heap[0] is ticket:
                self._offer(kind)

    def _leave(self, record: R) -> None:
        kind = record.waiting
        if kind is None:
            return
        record.waiting = None
        kind.size -= 1
        if not kind.marked:
            self.active -= 1
        if kind.size == 0 and not kind.marked:
            kinds = self._classes[kind.hash]
            kinds.pop(kind.place, None)
            if not kinds:
                del self._classes[kind.hash]

    def _offer(self, kind: PendingClass[R]) -> None:
        """Let the first of a class compete with those of the others."""
        first = kind.top()
        if first is not None and first.number != kind.offered:
            kind.offered = first.number
            heappush(self._heads, first)

    def _mark(self, digest: Hash) -> None:
        self.marks.add(digest)
        for kind in self._classes.get(digest, {}).values():
            if not kind.marked:
                kind.marked = True
                self.active -= kind.size

    def _park_all(self, kind: PendingClass[R]) -> None:
        self.active += kind.size
        for record in list(kind.records()):
            self._leave(record)
            self.park(record)

    def _drop_sticky(self, record: R) -> None:
        if self._sticky is record:
            self._sticky = None
