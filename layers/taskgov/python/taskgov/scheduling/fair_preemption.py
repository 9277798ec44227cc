"""Whom to preempt under fair sharing? Take from the queue that borrows most, while the preemptor stays behind it.

`fair_victims` is used when the manager has fair sharing on. Rules: `pkg/scheduler/preemption/preemption.go` and
`.../fairsharing` of Kueue (KEP-1714).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NewType

from taskgov.scheduling.candidates import Candidates, Preemptor, Victim, allows, put_back, take_out
from taskgov.scheduling.config import ManagerConfig, Strategy
from taskgov.scheduling.objects import NEVER
from taskgov.scheduling.preemption import fill_back, fits
from taskgov.scheduling.quota import QuotaNode, add_usage, remove_usage, within_nominal
from taskgov.scheduling.reasons import IN_CLUSTER_QUEUE, IN_COHORT_FAIR_SHARING, IN_COHORT_RECLAMATION
from taskgov.scheduling.shares import Share, dominant_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov.scheduling.state import Record

PreemptorNewShare = NewType("PreemptorNewShare", Share)
TargetOldShare = NewType("TargetOldShare", Share)
TargetNewShare = NewType("TargetNewShare", Share)


def fair_victims(preemptor: Preemptor, candidates: Candidates, config: ManagerConfig) -> list[Victim]:
    """Return the victims that make room for the preemptor, none when the strategies allow no sufficient set."""
    by_queue = _candidates_by_queue(preemptor, candidates)
    if not by_queue:
        return []
    search = _FairSearch(preemptor, config)
    return search.run(by_queue)


def _candidates_by_queue(preemptor: Preemptor, candidates: Candidates) -> dict[QuotaNode, list[Record]]:
    """List candidates of the own queue and of every borrowing queue of the tree, each in order."""
    own = preemptor.queue
    by_queue: dict[QuotaNode, list[Record]] = {}
    if mine := candidates.own(preemptor):
        by_queue[own.node] = mine
    policy = own.spec.preemption.reclaim_within_cohort
    if own.node.parent is None or policy in {NEVER, ""}:
        return by_queue
    for entry in candidates.borrowers(own.node.root, preemptor.frs):
        record = entry[-1]
        if record.queue is not None and record.queue is not own and allows(policy, preemptor, record):
            by_queue.setdefault(record.queue.node, []).append(record)
    return by_queue


class _FairSearch:
    """One search for victims, with the preemptor's own usage counted in its queue while shares are compared."""

    def __init__(self, preemptor: Preemptor, config: ManagerConfig) -> None:
        self.preemptor = preemptor
        self.strategies = config.strategies
        self.node = preemptor.queue.node
        self.removed: list[Victim] = []
        self.retry: dict[QuotaNode, list[Record]] = {}
        self.bypass = config.gate("FairSharingPreemptWithinNominal")

    def run(self, by_queue: dict[QuotaNode, list[Record]]) -> list[Victim]:
        add_usage(self.node, self.preemptor.usage)
        done = self._first_pass(by_queue) or (len(self.strategies) > 1 and self._second_pass())
        remove_usage(self.node, self.preemptor.usage)
        if done:
            return fill_back(self.preemptor, self.removed, borrow=True)
        put_back(self.removed)
        return []

    def _first_pass(self, by_queue: dict[QuotaNode, list[Record]]) -> bool:
        """Apply the first strategy until the preemptor fits; who fails it is kept for the second."""
        within = self.bypass and within_nominal(self.node, self.preemptor.frs)
        order = _TargetOrder(self.node, by_queue)
        for target, waiting in order:
            if target is self.node:
                taken = self._take(waiting, IN_CLUSTER_QUEUE)
            elif within:
                taken = self._take(waiting, IN_COHORT_RECLAMATION)
            else:
                taken = self._take_first_allowed(target, waiting)
            order.changed(target)
            if taken and self._fits():
                return True
        return False

    def _take(self, waiting: list[Record], reason: str) -> bool:
        record = waiting.pop(0)
        take_out(record)
        self.removed.append(Victim(record, reason))
        return True

    def _take_first_allowed(self, target: QuotaNode, waiting: list[Record]) -> bool:
        """Take the first of a queue's candidates that the first strategy allows."""
        mine, theirs = _almost_meeting(self.node, target)
        new_share = PreemptorNewShare(dominant_share(mine))
        old_share = TargetOldShare(dominant_share(theirs))
        while waiting:
            record = waiting[0]
            remove_usage(target, record.usage)
            after = TargetNewShare(dominant_share(theirs))
            add_usage(target, record.usage)
            if _allows(self.strategies[0], new_share, old_share, after):
                return self._take(waiting, IN_COHORT_FAIR_SHARING)
            self.retry.setdefault(target, []).append(waiting.pop(0))
        return False

    def _second_pass(self) -> bool:
        """Try the first candidate of each queue once more, against the share its queue has now."""
        order = _TargetOrder(self.node, self.retry)
        for target, waiting in order:
            mine, theirs = _almost_meeting(self.node, target)
            new_share, old_share = dominant_share(mine), dominant_share(theirs)
            if new_share.rank < old_share.rank:
                self._take(waiting, IN_COHORT_FAIR_SHARING)
                if self._fits():
                    return True
            order.drop(target)
        return False

    def _fits(self) -> bool:
        """Whether the preemptor fits now; its own usage, counted for the shares, is left out."""
        remove_usage(self.node, self.preemptor.usage)
        answer = fits(self.preemptor, borrow=True)
        add_usage(self.node, self.preemptor.usage)
        return answer


def _allows(
    strategy: Strategy,
    preemptor_new: PreemptorNewShare,
    target_old: TargetOldShare,
    target_new: TargetNewShare,
) -> bool:
    """KEP-1714: S2-a compares with the share the target keeps, S2-b with the share it had."""
    if strategy is Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE:
        return preemptor_new.rank <= target_new.rank
    return preemptor_new.rank < target_old.rank


def _almost_meeting(a: QuotaNode, b: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
    """Return the children, on either side, of the lowest cohort that holds both queues."""
    if a.parent is b.parent and a.parent is not None:
        return a, b
    above_a: dict[QuotaNode, QuotaNode] = {}
    child = a
    for cohort in a.ancestors():
        above_a[cohort] = child
        child = cohort
    child = b
    for cohort in b.ancestors():
        if cohort in above_a:
            return above_a[cohort], child
        child = cohort
    raise ValueError(f"{a.name} and {b.name} share no cohort")


class _TargetOrder:
    """Gives, again and again, the queue to take from next: down the tree, always to the child with the largest share.

    Shares are taken as they are at each step. What is dropped once never comes back. Only queues with candidates are
    looked at; those of a cohort stand in a heap, in which `changed` gives a queue its new place: a step costs the
    logarithm of their number.
    """

    def __init__(self, preemptor: QuotaNode, candidates: dict[QuotaNode, list[Record]]) -> None:
        self.preemptor = preemptor
        self.candidates = candidates
        self.ancestors = set(preemptor.ancestors())
        self.dropped: set[QuotaNode] = set()
        self.shares: dict[QuotaNode, Share] = {}
        self.lines: dict[QuotaNode, list[_Place]] = {}
        self.stands: dict[QuotaNode, int] = {}
        for node in candidates:
            self._stand(node)

    def __iter__(self) -> Iterator[tuple[QuotaNode, list[Record]]]:
        if self.preemptor.parent is None:
            while self.candidates.get(self.preemptor):
                yield self.preemptor, self.candidates[self.preemptor]
            return
        root = self.preemptor.root
        while root not in self.dropped:
            target = self._next(root)
            if target is not None:
                yield target, self.candidates[target]

    def changed(self, node: QuotaNode) -> None:
        """Take note that somebody left `node`: its share and those above it are others now."""
        self._stand(node)
        for cohort in node.ancestors():
            self.shares.pop(cohort, None)

    def drop(self, node: QuotaNode) -> None:
        """Leave `node` out from now on."""
        self.dropped.add(node)

    def _stand(self, node: QuotaNode) -> None:
        """Give a queue its place among those of its cohort; it has none without candidates, or if it borrows nothing.

        At equal shares the queue comes first whose first candidate is first.
        """
        number = self.stands[node] = self.stands.get(node, 0) + 1
        share = self.shares[node] = dominant_share(node)
        if node.parent is not None and self.candidates[node] and (share.borrowing or node is self.preemptor):
            infinite, amount = share.rank
            place = (not infinite, -amount, self._order(node), number, node)
            heappush(self.lines.setdefault(node.parent, []), place)

    def _next(self, cohort: QuotaNode) -> QuotaNode | None:
        queue = self._largest_queue(cohort)
        child, child_rank = self._largest_cohort(cohort)
        if child is not None and (queue is None or child_rank >= self.shares[queue].rank):
            return self._next(child)
        if queue is None:
            self.drop(cohort)
        return queue

    def _largest_queue(self, cohort: QuotaNode) -> QuotaNode | None:
        """Find the borrowing queue with the largest share."""
        line = self.lines.get(cohort)
        while line:
            *_, number, node = line[0]
            if number == self.stands[node] and node not in self.dropped:
                return node
            heappop(line)
        return None

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

    def _order(self, node: QuotaNode) -> tuple[int, bool, int, int, str, str]:
        """Candidates order across queues: those of other queues before the preemptor's own."""
        evicted, priority, since, uid, key, _ = self.candidates[node][0].running_key()
        return evicted, node is self.preemptor, priority, since, uid, key


_Place = tuple[bool, float, tuple[int, bool, int, int, str, str], int, QuotaNode]
"""What orders a queue, the number of the time that it was given a place, and the queue: its last place counts."""
