"""Who waits alike? Workloads of equal priority, shape and namespace, in Kueue's order: the parts of a queue."""

from __future__ import annotations

from heapq import heapify, heappop
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from taskgov.scheduling.demand import Demand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Workload
    from taskgov.scheduling.scan import Scan


class Queued(Protocol):
    """A queue's state of a workload, which it also writes to: `waiting` and `ticket`, its place."""

    key: str
    workload: Workload
    demand: Demand
    scan: Scan | None
    waiting: PendingClass[Any] | None
    ticket: int

    @property
    def queued_since(self) -> Instant:
        """The moment that orders it."""
        ...


R = TypeVar("R", bound=Queued)


class Ticket(NamedTuple, Generic[R]):
    """A place in the order: higher priority, then earlier, then smaller UID; a stale number is skipped."""

    rank: int
    since: Instant
    uid: str
    key: str
    number: int
    record: R
    kind: PendingClass[R]


Hash = tuple[int, Demand]


class PendingClass(Generic[R]):
    """Equal workloads of one `place`, their namespace or LocalQueue; while `marked` none of them can be admitted."""

    __slots__ = ("hash", "heap", "marked", "offered", "place", "size")

    def __init__(self, digest: Hash, place: str, *, marked: bool) -> None:
        self.hash = digest
        self.place = place
        self.marked = marked
        self.heap: list[Ticket[R]] = []
        self.size = 0
        self.offered = 0

    def copy(self, twins: Mapping[R, R]) -> PendingClass[R]:
        """Return a class of its own with the given copies of its workloads."""
        twin: PendingClass[R] = PendingClass(self.hash, self.place, marked=self.marked)
        for ticket in self.heap:
            if ticket.record.ticket == ticket.number and ticket.record.waiting is self:
                record = twins[ticket.record]
                record.waiting = twin
                twin.heap.append(ticket._replace(record=record, kind=twin))
        heapify(twin.heap)
        twin.size = self.size
        return twin

    def top(self) -> Ticket[R] | None:
        """Return the first one still waiting here."""
        heap = self.heap
        while heap:
            ticket = heap[0]
            if ticket.record.ticket == ticket.number and ticket.record.waiting is self:
                return ticket
            heappop(heap)
        return None

    def records(self) -> Iterator[R]:
        """Everyone waiting here, in no particular order."""
        return (t.record for t in self.heap if t.record.ticket == t.number and t.record.waiting is self)
