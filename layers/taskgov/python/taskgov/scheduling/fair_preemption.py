"""Whom to preempt under fair sharing? Take from the queue that borrows most, while the preemptor stays behind it.

`fair_victims` is used when the manager has fair sharing on. Rules: `pkg/scheduler/preemption/preemption.go` and
`.../fairsharing` of Kueue (KEP-1714).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NewType

from taskgov.scheduling.candidates import Candidates, Preemptor, Victim, allows, asked_of, put_back, take_out
from taskgov.scheduling.config import ManagerConfig, Strategy
from taskgov.scheduling.fair_places import Place, almost_meeting, queue_place, rank_of
from taskgov.scheduling.objects import NEVER
from taskgov.scheduling.preemption import fill_back, fits
from taskgov.scheduling.quota import QuotaNode, add_usage, remove_usage, within_nominal
from taskgov.scheduling.reasons import IN_CLUSTER_QUEUE, IN_COHORT_FAIR_SHARING, IN_COHORT_RECLAMATION
from taskgov.scheduling.shares import Share, SharesOfQueues, dominant_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskgov.scheduling.state import Record

PreemptorNewShare = NewType("PreemptorNewShare", Share)
TargetOldShare = NewType("TargetOldShare", Share)
TargetNewShare = NewType("TargetNewShare", Share)


def fair_victims(preemptor: Preemptor, candidates: Candidates, config: ManagerConfig) -> list[Victim]:
    """Return the victims that make room for the preemptor, none when the strategies allow no sufficient set."""
    own, others = candidates.own(preemptor), _others(preemptor, candidates)
    if not own and not others.candidates:
        return []
    return _FairSearch(preemptor, config).run(own, others)


class _Line:
    """Queues to take from: the candidates of each, in order, and for each cohort its queues that borrow, by share.

    All heads of a cycle that ask for the same quota see the same, so that it is made once for them.
    """

    __slots__ = ("candidates", "places")

    def __init__(self, candidates: Mapping[QuotaNode, Sequence[Record]]) -> None:
        self.candidates = candidates
        self.places: dict[QuotaNode, list[Place]] = {}
        for node, waiting in candidates.items():
            share = dominant_share(node)
            if share.borrowing and node.parent is not None:
                self.places.setdefault(node.parent, []).append(queue_place(node, share, waiting[0], own=False))
        for places in self.places.values():
            places.sort()


def _others(preemptor: Preemptor, candidates: Candidates) -> _Line:
    """Return every borrowing queue of the tree; the preemptor's own may be among them."""
    queue = preemptor.queue
    policy = queue.spec.preemption.reclaim_within_cohort
    if queue.node.parent is None or policy in {NEVER, ""}:
        return _NOBODY
    question = queue.node.root, preemptor.frs, policy, asked_of(policy, preemptor)
    known: _Line | None = candidates.known.get(question)
    if known is None:
        by_queue: dict[QuotaNode, list[Record]] = {}
        for entry in candidates.borrowers(queue.node.root, preemptor.frs):
            record = entry[-1]
            if record.queue is not None and allows(policy, preemptor, record):
                by_queue.setdefault(record.queue.node, []).append(record)
        known = candidates.known[question] = _Line(by_queue)
    return known


class _FairSearch:
    """One search for victims, with the preemptor's own usage counted in its queue while shares are compared."""

    def __init__(self, preemptor: Preemptor, config: ManagerConfig) -> None:
        self.preemptor = preemptor
        self.strategies = config.strategies
        self.node = preemptor.queue.node
        self.removed: list[Victim] = []
        self.retry: dict[QuotaNode, list[Record]] = {}
        self.shares = SharesOfQueues()
        self.counted = True
        self.bypass = config.gate("FairSharingPreemptWithinNominal")
        self.flat = self.node.parent is self.node.root and not self.node.root.cohorts

    def run(self, own: list[Record], others: _Line) -> list[Victim]:
        usage = self.preemptor.usage
        add_usage(self.node, usage)
        within = self.bypass and within_nominal(self.node, self.preemptor.frs)
        if self.flat and not own and min(usage.values(), default=0) >= 0:
            self.shares.of(self.node)  # nobody leaves its queue: its share stays, and nothing else depends on its usage
            remove_usage(self.node, usage)
            self.counted = False
        done = self._first_pass(own, others, within=within) or (len(self.strategies) > 1 and self._second_pass())
        if self.counted:
            remove_usage(self.node, usage)
        if done:
            return fill_back(self.preemptor, self.removed, borrow=True)
        put_back(self.removed)
        return []

    def _first_pass(self, own: list[Record], others: _Line, *, within: bool) -> bool:
        """Apply the first strategy until the preemptor fits; who fails it is kept for the second."""
        order = _TargetOrder(self.node, others, self.shares, own)
        for target, waiting in order:
            if target is self.node:
                taken = self._take(waiting, IN_CLUSTER_QUEUE)
            elif within:
                taken = self._take(waiting, IN_COHORT_RECLAMATION)
            elif self._is_above(target):
                return False
            else:
                taken = self._take_first_allowed(target, waiting)
            order.changed(target)
            if taken and self._fits():
                return True
        return False

    def _is_above(self, target: QuotaNode) -> bool:
        """Return whether the preemptor's share is above that of `target`, and so of all queues that come after it.

        Then neither strategy allows to take from any of them: shares only fall as workloads leave. Only where queues
        are compared with one another, not with the cohorts above them.
        """
        return self.flat and self.shares.of(target).rank < self.shares.of(self.node).rank

    def _take(self, waiting: list[Record], reason: str) -> bool:
        record = waiting.pop(0)
        take_out(record)
        if record.queue is not None:
            self.shares.forget(record.queue.node)
        self.removed.append(Victim(record, reason))
        return True

    def _take_first_allowed(self, target: QuotaNode, waiting: list[Record]) -> bool:
        """Take the first of a queue's candidates that the first strategy allows."""
        mine, theirs = almost_meeting(self.node, target)
        new_share = PreemptorNewShare(self.shares.of(mine))
        old_share = TargetOldShare(self.shares.of(theirs))
        while waiting:
            record = waiting.pop(0)
            remove_usage(target, record.usage)
            after = TargetNewShare(dominant_share(theirs))
            if _allows(self.strategies[0], new_share, old_share, after):
                self.shares.forget(target)
                self.removed.append(Victim(record, IN_COHORT_FAIR_SHARING))
                return True
            add_usage(target, record.usage)
            self.retry.setdefault(target, []).append(record)
        return False

    def _second_pass(self) -> bool:
        """Try the first candidate of each queue once more, against the share its queue has now."""
        order = _TargetOrder(self.node, _Line(self.retry), self.shares)
        for target, waiting in order:
            mine, theirs = almost_meeting(self.node, target)
            new_share, old_share = self.shares.of(mine), self.shares.of(theirs)
            if new_share.rank < old_share.rank:
                self._take(waiting, IN_COHORT_FAIR_SHARING)
                if self._fits():
                    return True
                order.changed(target)
            order.drop(target)
        return False

    def _fits(self) -> bool:
        """Whether the preemptor fits now; its own usage, counted for the shares, is left out."""
        if not self.counted:
            return fits(self.preemptor, borrow=True)
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


class _TargetOrder:
    """Gives, again and again, the queue to take from next: down the tree, always to the child with the largest share.

    Shares are taken as they are at each step. What is dropped once never comes back. The queues of a cohort stand in
    line as all heads find them; the preemptor's own, and those that `changed`, have their places in a heap beside it.
    So a step costs the logarithm of the queues that it has touched, however many there are.
    """

    def __init__(
        self, preemptor: QuotaNode, others: _Line, queues: SharesOfQueues, own: list[Record] | None = None
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

    def __iter__(self) -> Iterator[tuple[QuotaNode, list[Record]]]:
        if self.preemptor.parent is None:
            while self.candidates[self.preemptor]:
                yield self.preemptor, self.candidates[self.preemptor]
            return
        root = self.preemptor.root
        while root not in self.dropped:
            target = self._next(root)
            if target is not None:
                yield target, self._waiting(target)

    def changed(self, node: QuotaNode) -> None:
        """Take note that somebody left `node`: its share and those above it are others now."""
        self._stand(node)
        for cohort in node.ancestors():
            self.shares.pop(cohort, None)

    def drop(self, node: QuotaNode) -> None:
        """Leave `node` out from now on."""
        self.dropped.add(node)

    def _waiting(self, node: QuotaNode) -> list[Record]:
        """Return the candidates of a queue that are left, as a list of this search's own."""
        if node not in self.candidates:
            self.candidates[node] = list(self.others.candidates[node])
        return self.candidates[node]

    def _stand(self, node: QuotaNode) -> None:
        """Give a queue its place among those of its cohort; it has none without candidates, or if it borrows nothing.

        At equal shares the queue comes first whose first candidate is first.
        """
        share, waiting, own = self.queues.of(node), self._waiting(node), node is self.preemptor
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
        moved = self.moved.get(cohort, [])
        while moved and (self.place_of[moved[0][-1]] is not moved[0] or moved[0][-1] in self.dropped):
            heappop(moved)
        return min((*line[at : at + 1], *moved[:1]), default=None)

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


_NOBODY: Final = _Line({})
