"""From which queue is the next workload taken under fair sharing? From the one that borrows most, down the tree.

Called by `fair_preemption`. Rules: `pkg/scheduler/preemption/fairsharing` of Kueue (KEP-1714).
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from taskgov.scheduling.fair_places import Place, queue_place, rank_of
from taskgov.scheduling.quota import QuotaNode, add_usage, remove_usage
from taskgov.scheduling.shares import Rank, Share, SharesOfQueues, dominant_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov.scheduling.objects import FlavorResource
    from taskgov.scheduling.state import Record


class Line:
    """Queues to take from: the candidates of each, in order, and for each cohort its queues that borrow, by share.

    All heads of a cycle that ask for the same quota see the same, so that it is made once for them.
    """

    __slots__ = ("_largest", "_returned", "candidates", "place_of", "places", "shares")

    def __init__(self, candidates: Mapping[QuotaNode, list[Record]]) -> None:
        self.candidates = candidates
        self.place_of: dict[QuotaNode, Place] = {}
        self.places: dict[QuotaNode, list[Place]] = {}
        self.shares = {node: dominant_share(node) for node in candidates}
        self._largest: dict[QuotaNode, Rank] = {}
        self._returned: dict[tuple[QuotaNode, FlavorResource], list[int]] = {}
        for node, share in self.shares.items():
            if share.borrowing and node.parent is not None:
                place = self.place_of[node] = queue_place(node, share, candidates[node][0], own=False)
                self.places.setdefault(node.parent, []).append(place)
        for places in self.places.values():
            places.sort()

    def largest_without(self, node: QuotaNode) -> Rank:
        """Return the largest share that a queue would have without one of its candidates, as all heads find it."""
        rank = self._largest.get(node)
        if rank is None:
            rank = self._largest[node] = max(_rank_without(node, record) for record in self.candidates[node])
        return rank

    def returned(self, cohort: QuotaNode, fr: FlavorResource, least: Rank) -> int:
        """Return the most of `fr` that a cohort gets back from its queues with shares of `least` or more."""
        places = self.places.get(cohort)
        if not places:
            return 0
        sums = self._returned.get((cohort, fr))
        if sums is None:
            nodes = (place[-1] for place in places)
            given = (_returned_by(node, fr, self.candidates[node]) for node in nodes)
            sums = self._returned[cohort, fr] = list(accumulate(given, initial=0))
        return sums[bisect_right(places, (not least[0], -least[1]), key=lambda place: place[:2])]


def _returned_by(node: QuotaNode, fr: FlavorResource, records: list[Record]) -> int:
    """Return how much of `fr` the parent gets back if all these workloads leave the queue."""
    given = sum(amount for record in records if (amount := record.usage.get(fr, 0)) > 0)
    return max(0, min(given, node.usage.get(fr, 0) - node.local.get(fr, 0)))


def _rank_without(node: QuotaNode, record: Record) -> Rank:
    remove_usage(node, record.usage)
    rank = dominant_share(node).rank
    add_usage(node, record.usage)
    return rank


class TargetOrder:
    """Gives, again and again, the queue to take from next: down the tree, always to the child with the largest share.

    Shares are taken as they are at each step. What is dropped once never comes back. The queues of a cohort stand in
    line as all heads find them; the preemptor's own, and those that `changed`, have their places in a heap beside it.
    So a step costs the logarithm of the queues that it has touched, however many there are.
    """

    def __init__(
        self, preemptor: QuotaNode, others: Line, queues: SharesOfQueues, own: list[Record] | None = None
    ) -> None:
        self.preemptor, self.queues = preemptor, queues
        self.others = others
        self.candidates: dict[QuotaNode, list[Record]] = {preemptor: own or []}
        self.ancestors = set(preemptor.ancestors())
        self.dropped: set[QuotaNode] = set()
        self.shares: dict[QuotaNode, Share] = {}
        self.passed: dict[QuotaNode, int] = {}
        self.moved: dict[QuotaNode, list[Place]] = {}
        self.place_of: dict[QuotaNode, Place | None] = {}
        self._stand(preemptor)

    def __iter__(self) -> Iterator[QuotaNode]:
        if self.preemptor.parent is None:
            while self.candidates[self.preemptor]:
                yield self.preemptor
            return
        root = self.preemptor.root
        while root not in self.dropped:
            target = self._next(root)
            if target is not None:
                yield target

    def changed(self, node: QuotaNode) -> None:
        """Take note that somebody left `node`: its share and those above it are others now."""
        self._stand(node)
        for cohort in node.ancestors():
            self.shares.pop(cohort, None)

    def drop(self, node: QuotaNode) -> None:
        """Leave `node` out from now on."""
        self.dropped.add(node)

    def pass_over(self, least: Rank) -> list[QuotaNode]:
        """Leave out, and return, the queues that come next as long as none can keep a share of `least` or more.

        Only of a cohort without child cohorts, the preemptor's, and until one comes that changed, or is below `least`.
        """
        cohort = self.preemptor.root
        line, at = self.others.places.get(cohort, ()), self.passed.get(cohort, 0)
        moved = self._first_moved(cohort)
        passed = []
        for place in islice(line, at, None):
            node = place[-1]
            if node not in self.place_of and node not in self.dropped:
                late = (moved is not None and moved < place) or rank_of(place) < least
                if late or self.others.largest_without(node) >= least:
                    break
                passed.append(node)
            at += 1
        self.passed[cohort] = at
        return passed

    def waiting(self, node: QuotaNode) -> list[Record]:
        """Return the candidates of a queue that are left, as a list of this search's own."""
        if node not in self.candidates:
            self.candidates[node] = list(self.others.candidates[node])
        return self.candidates[node]

    def _stand(self, node: QuotaNode) -> None:
        """Give a queue its place among those of its cohort; it has none without candidates, or if it borrows nothing.

        At equal shares the queue comes first whose first candidate is first.
        """
        share, waiting, own = self.queues.of(node), self.waiting(node), node is self.preemptor
        self.place_of[node] = None
        if node.parent is not None and waiting and (share.borrowing or own):
            place = self.place_of[node] = queue_place(node, share, waiting[0], own=own)
            heappush(self.moved.setdefault(node.parent, []), place)

    def _next(self, cohort: QuotaNode) -> QuotaNode | None:
        place = self._largest_queue(cohort)
        child, child_rank = self._largest_cohort(cohort)
        if child is not None and (place is None or child_rank >= rank_of(place)):
            return self._next(child)
        if place is None:
            self.drop(cohort)
            return None
        return place[-1]

    def _largest_queue(self, cohort: QuotaNode) -> Place | None:
        """Find the place of the borrowing queue with the largest share."""
        line, at = self.others.places.get(cohort, ()), self.passed.get(cohort, 0)
        while at < len(line) and (line[at][-1] in self.place_of or line[at][-1] in self.dropped):
            at += 1
        self.passed[cohort] = at
        first, moved = line[at] if at < len(line) else None, self._first_moved(cohort)
        return moved if moved is not None and (first is None or moved < first) else first

    def _first_moved(self, cohort: QuotaNode) -> Place | None:
        """Find the first place among those of the preemptor's queue and of queues that changed."""
        moved = self.moved.get(cohort)
        while moved and (self.place_of[moved[0][-1]] is not moved[0] or moved[0][-1] in self.dropped):
            heappop(moved)
        return moved[0] if moved else None

    def _largest_cohort(self, cohort: QuotaNode) -> tuple[QuotaNode | None, tuple[bool, float]]:
        """Find the child cohort with the largest share that borrows or is above the preemptor; the last of equals."""
        best, best_rank = None, (False, -1.0)
        for node in cohort.cohorts:
            if node in self.dropped:
                continue
            share = self.shares.get(node)
            if share is None:
                share = self.shares[node] = dominant_share(node)
            if not share.borrowing and node not in self.ancestors:
                self.drop(node)
            elif share.rank >= best_rank:
                best, best_rank = node, share.rank
        return best, best_rank
