"""Whom to preempt under fair sharing? Take from the queue that borrows most, while the preemptor stays behind it.

`fair_victims` is used when the manager has fair sharing on. Rules: `pkg/scheduler/preemption/preemption.go` and
`.../fairsharing` of Kueue (KEP-1714).
"""

from __future__ import annotations

from heapq import heapify, heappop
from typing import TYPE_CHECKING, Final, NewType

from taskgov.scheduling.candidates import Candidates, Preemptor, Victim, allows, asked_of, put_back, take_out
from taskgov.scheduling.config import ManagerConfig, Strategy
from taskgov.scheduling.fair_places import Place, almost_meeting, queue_place
from taskgov.scheduling.fair_targets import Line, TargetOrder
from taskgov.scheduling.objects import NEVER
from taskgov.scheduling.preemption import fill_back, fits
from taskgov.scheduling.quota import QuotaNode, add_usage, available, remove_usage, within_nominal
from taskgov.scheduling.reasons import IN_CLUSTER_QUEUE, IN_COHORT_FAIR_SHARING, IN_COHORT_RECLAMATION
from taskgov.scheduling.shares import Rank, Share, SharesOfQueues, dominant_share

if TYPE_CHECKING:
    from taskgov.scheduling.state import Record

PreemptorNewShare = NewType("PreemptorNewShare", Share)
TargetOldShare = NewType("TargetOldShare", Share)


def fair_victims(preemptor: Preemptor, candidates: Candidates, config: ManagerConfig) -> list[Victim]:
    """Return the victims that make room for the preemptor, none when the strategies allow no sufficient set."""
    own, others = candidates.own(preemptor), _others(preemptor, candidates)
    if not own and not others.candidates:
        return []
    return _FairSearch(preemptor, others, config).run(own)


def _others(preemptor: Preemptor, candidates: Candidates) -> Line:
    """Return every borrowing queue of the tree; the preemptor's own may be among them."""
    queue = preemptor.queue
    policy = queue.spec.preemption.reclaim_within_cohort
    if queue.node.parent is None or policy in {NEVER, ""}:
        return _NOBODY
    question = queue.node.root, preemptor.frs, policy, asked_of(policy, preemptor)
    known: Line | None = candidates.known.get(question)
    if known is None:
        by_queue = candidates.borrowers_by_queue(queue.node.root, preemptor.frs)
        may = {node: [r for r in records if allows(policy, preemptor, r)] for node, records in by_queue.items()}
        known = candidates.known[question] = Line({node: records for node, records in may.items() if records})
    return known


class _FairSearch:
    """One search for victims, with the preemptor's own usage counted in its queue while shares are compared."""

    def __init__(self, preemptor: Preemptor, others: Line, config: ManagerConfig) -> None:
        self.preemptor = preemptor
        self.others = others
        self.strategies = config.strategies
        self.node = preemptor.queue.node
        self.removed: list[Victim] = []
        self.retry: dict[QuotaNode, list[Record]] = {}
        self.shares = SharesOfQueues(others.shares)
        self.shares.forget(self.node)
        self.counted = True
        self.bypass = config.gate("FairSharingPreemptWithinNominal")
        self.flat = self.node.parent is self.node.root and not self.node.root.cohorts

    def run(self, own: list[Record]) -> list[Victim]:
        usage = self.preemptor.usage
        add_usage(self.node, usage)
        within = self.bypass and within_nominal(self.node, self.preemptor.frs)
        if self.flat:
            mine = self.shares.of(self.node).rank
            remove_usage(self.node, usage)
            if self._is_hopeless(own, _LOWEST if own or within else mine):
                return []
            # Where nobody leaves its queue, its share stays, and nothing else depends on its usage.
            self.counted = bool(own) or min(usage.values(), default=0) < 0
            if self.counted:
                add_usage(self.node, usage)
        done = self._first_pass(own, within=within) or (len(self.strategies) > 1 and self._second_pass())
        if self.counted:
            remove_usage(self.node, usage)
        if done:
            return fill_back(self.preemptor, self.removed, borrow=True)
        put_back(self.removed)
        return []

    def _is_hopeless(self, own: list[Record], least: Rank) -> bool:
        """Return whether there is too little room even if everyone leaves whom the search may take.

        Those are its `own` and the candidates of queues with shares of `least` or more.
        """
        for fr in self.preemptor.frs:
            amount = self.preemptor.usage.get(fr, 0)
            if amount <= 0:
                continue
            given = sum(held for record in own if (held := record.usage.get(fr, 0)) > 0)
            returned = self.others.returned(self.node.root, fr, least)
            if amount > available(self.node, fr, returned) + given:
                return True
        return False

    def _first_pass(self, own: list[Record], *, within: bool) -> bool:
        """Apply the first strategy until the preemptor fits; who fails it is kept for the second."""
        order = TargetOrder(self.node, self.others, self.shares, own)
        for target in order:
            if target is self.node:
                taken = self._take(order.waiting(target), IN_CLUSTER_QUEUE)
            elif within:
                taken = self._take(order.waiting(target), IN_COHORT_RECLAMATION)
            elif self._is_above(target):
                return False
            elif self._allows_nobody(target):
                self.retry[target] = self.others.candidates[target]
                order.drop(target)
                if self.flat and self.strategies[0] is Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE:
                    mine = self.shares.of(self.node).rank
                    self.retry.update((node, self.others.candidates[node]) for node in order.pass_over(mine))
                continue
            else:
                taken = self._take_first_allowed(target, order.waiting(target))
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

    def _allows_nobody(self, target: QuotaNode) -> bool:
        """Return whether the first strategy allows none of a queue's candidates, where nobody has left the queue.

        Only where shares of queues are compared: that of `target` without a candidate is the same for all heads then.
        """
        if target.parent is not self.node.parent or self.shares.has_changed(target):
            return False
        mine, theirs = PreemptorNewShare(self.shares.of(self.node)), TargetOldShare(self.shares.of(target))
        return not _allows(self.strategies[0], mine, theirs, self.others.largest_without(target))

    def _take_first_allowed(self, target: QuotaNode, waiting: list[Record]) -> bool:
        """Take the first of a queue's candidates that the first strategy allows."""
        mine, theirs = almost_meeting(self.node, target)
        new_share = PreemptorNewShare(self.shares.of(mine))
        old_share = TargetOldShare(self.shares.of(theirs))
        while waiting:
            record = waiting.pop(0)
            remove_usage(target, record.usage)
            after = dominant_share(theirs).rank
            if _allows(self.strategies[0], new_share, old_share, after):
                self.shares.forget(target)
                self.removed.append(Victim(record, IN_COHORT_FAIR_SHARING))
                return True
            add_usage(target, record.usage)
            self.retry.setdefault(target, []).append(record)
        return False

    def _second_pass(self) -> bool:
        """Try the first candidate of each queue once more, against the share its queue has now."""
        if self.flat:
            return self._second_pass_in_one_cohort()
        order = TargetOrder(self.node, Line(self.retry), self.shares)
        for target in order:
            mine, theirs = almost_meeting(self.node, target)
            new_share, old_share = self.shares.of(mine), self.shares.of(theirs)
            if new_share.rank < old_share.rank:
                self._take(order.waiting(target), IN_COHORT_FAIR_SHARING)
                if self._fits():
                    return True
                order.changed(target)
            order.drop(target)
        return False

    def _second_pass_in_one_cohort(self) -> bool:
        """Do the same where no other shares than those of queues are compared: each queue has one place, by its share.

        Shares only fall as workloads leave, so that queues that are not above the preemptor are left out.
        """
        mine = self.shares.of(self.node).rank
        above = [self._place(node) for node in self.retry if mine < self.shares.of(node).rank]
        heapify(above)
        while above:
            *_, target = heappop(above)
            self._take(self.retry[target][:1], IN_COHORT_FAIR_SHARING)
            if self._fits():
                return True
        return False

    def _place(self, node: QuotaNode) -> Place:
        """Return the place that a queue has now: another one than at first only where somebody has left it."""
        if not self.shares.has_changed(node):
            return self.others.place_of[node]
        return queue_place(node, self.shares.of(node), self.retry[node][0], own=False)

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
    target_new: Rank,
) -> bool:
    """KEP-1714: S2-a compares with the rank of the share that the target keeps, S2-b with the share it had."""
    if strategy is Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE:
        return preemptor_new.rank <= target_new
    return preemptor_new.rank < target_old.rank


_NOBODY: Final = Line({})
_LOWEST: Final = Share().rank
