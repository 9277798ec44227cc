"""In which order are the heads of a cycle processed? By borrowing, priority and time; or by a fair-sharing tournament.

Rules: `pkg/scheduler/scheduler.go` (entryOrdering) and `fair_sharing_iterator.go` of Kueue.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from taskgov.scheduling.instants import Instant
from taskgov.scheduling.quota import QuotaNode, add_usage, remove_usage, would_borrow
from taskgov.scheduling.shares import dominant_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.nomination import Entry

Rest = tuple[int, Instant, int, str]
"""What decides between entries that borrow alike: priority, time, and then what Kueue leaves to chance."""
DrsOrder = tuple[bool, tuple[bool, float], Rest]
"""The order under fair sharing: whether the queue would borrow, its dominant resource share (DRS), and the rest."""


def in_order(entries: Sequence[Entry], config: ManagerConfig, turn: Sequence[str] = ()) -> Iterable[Entry]:
    """Give the entries one by one; under fair sharing each choice sees what the earlier ones changed.

    Of entries that are equal in everything Kueue takes any: it goes through a Go map. Here those of the ClusterQueues
    in `turn` come first, in that order, and then the others by name, so that a prediction can be repeated.
    """
    rank = {name: place for place, name in enumerate(turn)}
    by_priority = config.gate("PrioritySortingWithinCohort")

    def rest(entry: Entry) -> Rest:
        priority = -entry.record.workload.priority if by_priority else 0
        record = entry.record
        return priority, record.queued_since, rank.get(entry.queue.node.name, len(rank)), record.key

    if config.fair_sharing:
        return _Tournament(entries, config, rest)
    return sorted(entries, key=lambda entry: (entry.assignment.borrowing, rest(entry)))


class _Tournament:
    """Entries by share: within each cohort the least deserving queue loses, round by round up to the root.

    Different roots do not influence one another; they come by name.
    """

    def __init__(self, entries: Sequence[Entry], config: ManagerConfig, rest: Callable[[Entry], Rest]) -> None:
        self.waiting = {entry.queue.node: entry for entry in entries}
        self.orders: dict[QuotaNode, dict[QuotaNode, DrsOrder]] = {}
        self.prefer_unborrowed = config.gate("FairSharingPrioritizeNonBorrowing")
        self.rest = rest

    def __iter__(self) -> Iterator[Entry]:
        roots = sorted({node.root for node in self.waiting}, key=lambda root: (root.name, root.is_queue))
        for root in roots:
            if root.is_queue:
                yield self.waiting.pop(root)
            else:
                yield from self._tournaments(root)

    def _tournaments(self, root: QuotaNode) -> Iterator[Entry]:
        """Play until nobody is left; a winner changes the standing only of those in its own branch below the root.

        The best of each branch stand in a heap: a choice costs the logarithm of their number.
        """
        branches = dict.fromkeys(_branch(queue) for queue in root.subtree_queues() if queue in self.waiting)
        line = [best for branch in branches if (best := self._best_of(branch, root)) is not None]
        heapify(line)
        while line:
            *_, winner = heappop(line)
            yield self.waiting.pop(winner)
            if (best := self._best_of(_branch(winner), root)) is not None:
                heappush(line, best)

    def _best_of(self, branch: QuotaNode, root: QuotaNode) -> tuple[DrsOrder, str, QuotaNode] | None:
        """Return who of a branch plays at the root, and its order there; `None` when nobody of it is left."""
        for queue in (branch,) if branch.is_queue else branch.subtree_queues():
            if queue in self.waiting:
                self.orders[queue] = self._drs_order(queue)
        winner = self._winner(branch)
        return None if winner is None else (self.orders[winner][root], winner.name, winner)

    def _drs_order(self, queue: QuotaNode) -> dict[QuotaNode, DrsOrder]:
        """Return a queue's place in the order of each cohort above it, were its workload admitted."""
        entry = self.waiting[queue]
        rest = self.rest(entry)
        order: dict[QuotaNode, DrsOrder] = {}
        add_usage(queue, entry.assignment.usage)
        child = queue
        for cohort in queue.ancestors():
            order[cohort] = (self._borrows(child, entry), dominant_share(child).rank, rest)
            child = cohort
        remove_usage(queue, entry.assignment.usage)
        return order

    def _borrows(self, node: QuotaNode, entry: Entry) -> bool:
        """Return whether `node` would borrow something this workload uses."""
        return self.prefer_unborrowed and any(
            amount > 0 and would_borrow(node, fr, 0) for fr, amount in entry.assignment.usage.items()
        )

    def _winner(self, node: QuotaNode) -> QuotaNode | None:
        """Play one tournament among the queues below a cohort that have an entry; a queue is its own winner."""
        if node.is_queue:
            return node if node in self.waiting else None
        winners = (self._winner(child) for child in (*node.cohorts, *node.queues))
        contenders = [winner for winner in winners if winner is not None]
        return min(contenders, key=lambda queue: self.orders[queue][node], default=None)


def _branch(queue: QuotaNode) -> QuotaNode:
    """Return the child of the root that holds `queue`, maybe itself."""
    node = queue
    for cohort in queue.ancestors():
        if cohort.parent is not None:
            node = cohort
    return node
