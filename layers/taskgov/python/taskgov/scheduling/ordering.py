"""In which order are the heads of a cycle processed? By borrowing, priority and time; or by a fair-sharing tournament.

Rules: `pkg/scheduler/scheduler.go` (entryOrdering) and `fair_sharing_iterator.go` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.instants import Instant
from taskgov.scheduling.quota import QuotaNode, add_usage, remove_usage, would_borrow
from taskgov.scheduling.shares import dominant_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.cycle import Entry

Standing = tuple[bool, tuple[bool, float], int, Instant, str]


def in_order(entries: Sequence[Entry], config: ManagerConfig) -> Iterable[Entry]:
    """Give the entries one by one; under fair sharing each choice sees what the earlier ones changed."""
    by_priority = config.gate("PrioritySortingWithinCohort")
    if config.fair_sharing:
        return _Tournament(entries, config, by_priority=by_priority)
    return sorted(entries, key=lambda e: _classical(e, by_priority=by_priority))


def _classical(entry: Entry, *, by_priority: bool) -> tuple[int, int, Instant, str]:
    """Less borrowing first, then higher priority, then earlier; ties by name."""
    workload = entry.record.workload
    priority = -workload.priority if by_priority else 0
    return entry.assignment.borrowing, priority, entry.record.queued_since, entry.record.key


class _Tournament:
    """Entries by share: within each cohort the least deserving queue loses, round by round up to the root.

    Different roots do not influence one another; they come by name.
    """

    def __init__(self, entries: Sequence[Entry], config: ManagerConfig, *, by_priority: bool) -> None:
        self.waiting = {entry.queue.node: entry for entry in entries}
        self.prefer_unborrowed = config.gate("FairSharingPrioritizeNonBorrowing")
        self.by_priority = by_priority

    def __iter__(self) -> Iterator[Entry]:
        roots = sorted({node.root for node in self.waiting}, key=lambda root: (root.name, root.is_queue))
        for root in roots:
            members = [root] if root.is_queue else [n for n in root.subtree_queues() if n in self.waiting]
            while members:
                winner = root if root.is_queue else self._winner(root, self._standings(members))
                members.remove(winner)
                yield self.waiting.pop(winner)

    def _standings(self, members: Iterable[QuotaNode]) -> dict[tuple[QuotaNode, QuotaNode], Standing]:
        """For each queue, its standing in each cohort above it, were its workload admitted."""
        standings: dict[tuple[QuotaNode, QuotaNode], Standing] = {}
        for queue in members:
            entry = self.waiting[queue]
            workload = entry.record.workload
            rest = (-workload.priority if self.by_priority else 0, entry.record.queued_since, entry.record.key)
            add_usage(queue, entry.assignment.usage)
            child = queue
            for cohort in queue.ancestors():
                standings[cohort, queue] = (self._borrows(child, entry), dominant_share(child).rank, *rest)
                child = cohort
            remove_usage(queue, entry.assignment.usage)
        return standings

    def _borrows(self, node: QuotaNode, entry: Entry) -> bool:
        """Whether `node` would borrow something this workload uses."""
        return self.prefer_unborrowed and any(
            amount > 0 and would_borrow(node, fr, 0) for fr, amount in entry.assignment.usage.items()
        )

    def _winner(self, root: QuotaNode, standings: dict[tuple[QuotaNode, QuotaNode], Standing]) -> QuotaNode:
        """Play the tournament of a tree that has at least one entry."""
        winner = self._play(root, standings)
        if winner is None:
            raise ValueError(f"no entry below {root.name}")
        return winner

    def _play(self, cohort: QuotaNode, standings: dict[tuple[QuotaNode, QuotaNode], Standing]) -> QuotaNode | None:
        winners = [winner for child in cohort.cohorts if (winner := self._play(child, standings)) is not None]
        contenders = winners + [queue for queue in cohort.queues if queue in self.waiting]
        return min(contenders, key=lambda queue: standings[cohort, queue], default=None)
