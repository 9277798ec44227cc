"""Queues in numbers: quota and usage as lists by flavor and resource, who runs, and who waits in which order.

A place in the lists is a flavor and resource that some job requests or holds; nobody uses the others. Rules as in
`taskgov.scheduling.quota`, `.shares` and `.pending`, for queues on their own and in cohorts of one level.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.futures.asks import Amounts, Search
    from taskgov.futures.jobs import Shape
    from taskgov.scheduling.objects import ClusterQueue

ENDLESS: Final = 2**62
"""In the place of a limit that is not set."""
NOBODY: Final = -1
Running = tuple[int, int, int, int]
"""Priority, moment of the reservation (negative), place by UID, rank: Kueue's order of a queue's candidates."""
INFINITE: Final = 2.0**600
"""Lifts shares of borrowers without weight above all others, exactly."""


class Kind:
    """Jobs of one queue of equal shape and priority. While it is `marked`, none of them is in line."""

    __slots__ = ("anyhow", "asks", "heap", "marked", "may_preempt", "offered", "priority", "queue", "searches", "size")

    def __init__(self, queue: Queue, priority: int) -> None:
        self.queue = queue
        self.priority = priority
        self.asks: Amounts | None = None  # what one of them requests, where there is nothing to choose
        self.searches: tuple[Search, ...] = ()
        """The searches that choose flavors; with neither, it can never have what it requests."""
        self.anyhow = False
        """Whether the queue's rules may free anything by preemption."""
        self.may_preempt = 0  # the places that preemption could free, as bits
        self.heap: list[int] = []
        self.offered = NOBODY
        """Who of them stands in the queue's line."""
        self.size = 0
        self.marked = False


class Tree:
    """A cohort with its queues, or a queue on its own: those who lend to one another."""

    __slots__ = ("active", "changed", "due", "lendable", "marked", "notified", "queues", "subtree", "used")

    def __init__(self, places: int) -> None:
        self.queues: list[Queue] = []
        self.subtree = [0] * places
        self.used = [0] * places
        self.lendable = [0] * places
        """What the whole tree has of a place's resource, over all flavors."""
        self.active = 0
        """How many jobs are in line in open queues."""
        self.changed: dict[Queue, None] = {}
        """The queues whose usage has changed since `Taking.borrowing` was last asked."""
        self.marked: dict[Queue, None] = {}
        """The queues in which somebody is inadmissible."""
        self.notified = False
        """Whether room was freed since its inadmissible jobs were last reconsidered."""
        self.due = False
        """Whether they will be reconsidered at a planned time."""


class Queue:
    """One ClusterQueue: its quota and usage, who runs and who waits."""

    def __init__(self, spec: ClusterQueue, tree: Tree, number: int, places: int, waits: list[Kind | None]) -> None:
        self.spec = spec
        self.tree = tree
        self.number = number
        """Its place among all queues by name."""
        self.alone = not spec.cohort
        self.open = True
        self.used = [0] * places
        self.nominal = [0] * places
        self.local = [0] * places
        self.limit = [ENDLESS] * places
        """The borrowing limit."""
        self.room = [ENDLESS] * places
        self.potential = [0] * places
        self.counted: tuple[tuple[int, ...], ...] = ()
        """The places of which the queue has a quota, those of one resource together."""
        self.running: list[Running] = []
        self.kinds: dict[Shape, Kind] = {}
        self.marked: list[Kind] = []
        self.line: list[int] = []
        self.active = 0
        self.sticky = NOBODY
        self.generation = 0
        """How often its quota or usage has changed."""
        self.waits = waits
        """Where each job waits, by rank: its kind, or `None`; shared by all queues."""

    plain: ClassVar[bool] = False
    """Whether there is only one place, and everybody holds something of it."""

    def signature(self) -> tuple[object, ...]:
        """Return what the future depends on: who runs in which order, who waits in line and who does not."""
        waits = self.waits
        kinds = self.kinds.values()
        line = tuple((kind.marked, *sorted({rank for rank in kind.heap if waits[rank] is kind})) for kind in kinds)
        return self.sticky, tuple(entry[3] for entry in self.running), line

    # Quota

    def available(self, place: int) -> int:
        """Return what the queue can still use of a place, counting what it may borrow; negative when over-admitted."""
        used = self.used[place]
        if self.alone:
            return self.nominal[place] - used
        local, tree = self.local[place], self.tree
        spilled = used - local
        room = tree.subtree[place] - tree.used[place]
        if spilled > 0:
            limit = self.room[place] - spilled
            return limit if limit < room else room  # noqa: FURB136 -- asked most of all: `min` costs a call
        limit = self.room[place]
        return (limit if limit < room else room) - spilled  # noqa: FURB136 -- as above

    def may_ever_fit(self, asks: Amounts) -> bool:
        """Return whether amounts fit the borrowing limit while this queue keeps what it has, if all others left."""
        if self.alone:
            return True
        used, nominal, limit = self.used, self.nominal, self.limit
        return all(amount <= 0 or used[place] + amount <= nominal[place] + limit[place] for place, amount in asks)

    def fits(self, asks: Amounts) -> bool:
        """Return whether amounts fit as things stand."""
        for place, amount in asks:  # noqa: SIM110 -- asked more often than all else: a generator costs as much again
            if amount and amount > self.available(place):
                return False
        return True

    def add(self, amounts: Amounts) -> None:
        """Count usage, and what exceeds the quota that is not lent in the cohort."""
        used, local, of_tree = self.used, self.local, self.tree.used
        for place, amount in amounts:
            before = used[place]
            used[place] = before + amount
            kept = local[place] - before
            if kept <= 0:
                of_tree[place] += amount
            elif amount > kept:
                of_tree[place] += amount - kept

    def remove(self, amounts: Amounts) -> None:
        """Undo `add`."""
        used, local, of_tree = self.used, self.local, self.tree.used
        for place, amount in amounts:
            before = used[place]
            used[place] = before - amount
            spilled = before - local[place]
            if spilled > 0:
                of_tree[place] -= min(amount, spilled)

    def hold(self, amounts: Amounts) -> None:
        """Keep amounts for somebody until the cycle ends; a negative one counts in the queue alone, as in Kueue."""
        for place, amount in amounts:
            if amount < 0:
                self.used[place] += amount
            else:
                self.add(((place, amount),))

    def let_go(self, amounts: Amounts) -> None:
        """Undo `hold`."""
        for place, amount in amounts:
            if amount < 0:
                self.used[place] -= amount
            else:
                self.remove(((place, amount),))

    def would_borrow(self, asks: Amounts) -> bool:
        """Return whether amounts exceed the queue's own quota of any place."""
        return any(self.used[place] + amount > self.nominal[place] for place, amount in asks)

    def would_borrow_for(self, asks: Amounts) -> bool:
        """Return whether amounts exceed the queue's own quota of a place of which they request anything."""
        return any(amount > 0 and self.used[place] + amount > self.nominal[place] for place, amount in asks)

    def exceeds(self, mask: int) -> bool:
        """Return whether the queue uses more than its own quota of any place of `mask`."""
        return any(used > self.nominal[place] and mask >> place & 1 for place, used in enumerate(self.used))

    def borrows(self) -> bool:
        """Return whether the queue holds more than its quota of anything that it has a quota of."""
        return any(self.used[place] > self.nominal[place] for places in self.counted for place in places)

    def share(self) -> float:
        """Return the dominant resource share as a number to compare by; borrowers without weight are above all."""
        used, nominal, lendable = self.used, self.nominal, self.tree.lendable
        ratio = 0.0
        for places in self.counted:
            over = 0
            for place in places:
                more = used[place] - nominal[place]
                if more > 0:
                    over += more
            if over and lendable[places[0]] > 0:
                ratio = max(ratio, 1000.0 * over / lendable[places[0]])
        weight = self.spec.weight
        return ratio * INFINITE if weight == 0 else ratio / weight

    def share_with(self, asks: Amounts) -> float:
        """Return the dominant resource share with amounts in addition to what the queue uses."""
        self.add(asks)
        share = self.share()
        self.remove(asks)
        return share

    def stays_within(self, asks: Amounts, mask: int) -> bool:
        """Return whether the queue with amounts in addition exceeds its own quota of no place of `mask`."""
        self.add(asks)
        within = not self.exceeds(mask)
        self.remove(asks)
        return within

    # Who waits

    def push(self, rank: int, kind: Kind) -> None:
        """Put a job in line, or among the inadmissible ones where its kind is marked."""
        self.waits[rank] = kind
        heappush(kind.heap, rank)
        kind.size += 1
        if not kind.marked:
            self.active += 1
            if self.open:
                self.tree.active += 1
            first = kind.heap[0]
            if first != kind.offered:
                kind.offered = first
                heappush(self.line, first)

    def pop(self, kind_of: Sequence[Kind]) -> int:
        """Take the next in line, the sticky one first; somebody must be active."""
        waits, rank = self.waits, self.sticky
        if rank == NOBODY or (kind := waits[rank]) is None or kind.marked:
            kind = None
            while kind is None:
                rank = heappop(self.line)
                kind = self._offered(rank, kind_of[rank])
        waits[rank] = None
        kind.size -= 1
        self.active -= 1
        if self.open:
            self.tree.active -= 1
        return rank

    def _offered(self, rank: int, kind: Kind) -> Kind | None:
        """Return the kind of a rank that was first in line if it still waits as its first; offer who is first now."""
        if kind.offered == rank:
            kind.offered = NOBODY
        if kind.marked:
            return None
        heap, waits = kind.heap, self.waits
        valid = heap and heap[0] == rank and waits[rank] is kind
        while heap and ((first := heap[0]) == rank or waits[first] is not kind):
            heappop(heap)
        if heap and first != kind.offered:
            kind.offered = first
            heappush(self.line, first)
        return kind if valid else None

    def _offer(self, kind: Kind) -> None:
        """Let the first of a kind compete with those of the others."""
        if kind.heap and kind.heap[0] != kind.offered:
            kind.offered = kind.heap[0]
            heappush(self.line, kind.offered)

    def mark(self, rank: int, kind: Kind) -> None:
        """Requeue a job that cannot be admitted: all of its kind are inadmissible until they are reconsidered."""
        if not kind.marked:
            kind.marked = True
            self.marked.append(kind)
            self.tree.marked[self] = None
            self.active -= kind.size
            if self.open:
                self.tree.active -= kind.size
        self.waits[rank] = kind
        heappush(kind.heap, rank)
        kind.size += 1

    def release(self) -> None:
        """Put inadmissible jobs back in line."""
        for kind in self.marked:
            kind.marked = False
            self.active += kind.size
            if self.open:
                self.tree.active += kind.size
            while kind.heap and self.waits[kind.heap[0]] is not kind:
                heappop(kind.heap)
            self._offer(kind)
        self.marked.clear()
