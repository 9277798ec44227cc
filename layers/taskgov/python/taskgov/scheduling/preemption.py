"""Whom to preempt, classically? Reclaim what is lent, then take from lower priorities; as few victims as possible.

`classical_victims` is used when fair sharing is off, for flat cohorts and trees alike. Rules:
`pkg/scheduler/preemption/preemption.go` and `.../classical` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.candidates import Candidates, Preemptor, Victim, allows, put_back, take_out
from taskgov.scheduling.objects import NEVER, FlavorResource
from taskgov.scheduling.quota import (
    QuotaNode,
    has_room,
    local_available,
    within_nominal,
    would_borrow,
)
from taskgov.scheduling.reasons import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov.scheduling.state import QueueState, Record


_Candidate = tuple[Victim, "QuotaNode | None"]
"""A victim, and the lowest cohort above both queues, `None` where it is of the own queue."""


def fits(preemptor: Preemptor, *, borrow: bool) -> bool:
    """Return whether the preemptor fits as things stand, with or without borrowing."""
    node, usage = preemptor.queue.node, preemptor.usage
    if not borrow and any(would_borrow(node, fr, amount) for fr, amount in usage.items()):
        return False
    return has_room(node, usage)


def fill_back(preemptor: Preemptor, removed: list[Victim], *, borrow: bool) -> list[Victim]:
    """Give victims back, from the last but one to the first, wherever the preemptor still fits.

    A victim given back is replaced by the last of the list, as Kueue does. Leaves all usage as it was before the
    search.
    """
    victims = list(removed)
    for index in range(len(victims) - 2, -1, -1):
        spared = victims[index]
        put_back([spared])
        if fits(preemptor, borrow=borrow):
            victims[index] = victims[-1]
            victims.pop()
        else:
            take_out(spared.record)
    put_back(victims)
    return victims


def classical_victims(preemptor: Preemptor, candidates: Candidates) -> list[Victim]:
    """Return the victims that make room for the preemptor, none when no set of candidates does."""
    search = _Search(preemptor, candidates)
    for borrow in search.attempts():
        victims = search.attempt(borrow=borrow)
        if victims:
            return victims
    return []


class _Search:
    """One search for victims: the standing of each cohort relative to the preemptor, computed once."""

    def __init__(self, preemptor: Preemptor, candidates: Candidates) -> None:
        self.preemptor = preemptor
        self.candidates = candidates
        rules = preemptor.queue.spec.preemption
        self.reclaims = rules.reclaim_within_cohort
        borrow = rules.borrow_within_cohort
        self.borrowing_forbidden = borrow is None or borrow.policy == NEVER
        self.threshold = None if borrow is None else borrow.max_priority_threshold
        self.advantage = self._advantages()
        self.own = candidates.own(preemptor)

    def _advantages(self) -> dict[QuotaNode, bool]:
        """Say for each cohort above the preemptor whether the request fits the quota of some node on the way up to it.

        What the local quota of a node covers is not asked of the next.
        """
        node = self.preemptor.queue.node
        request = dict(self.preemptor.usage)
        advantage: dict[QuotaNode, bool] = {}
        fitted = False
        for cohort in node.ancestors():
            fitted = fitted or not any(would_borrow(node, fr, amount) for fr, amount in request.items())
            advantage[cohort] = fitted
            request = {fr: max(0, amount - local_available(node, fr)) for fr, amount in request.items()}
            node = cohort
        return advantage

    def attempts(self) -> list[bool]:
        """Say in which order to try with borrowing allowed (True) and without (False)."""
        first = next(self._cohort(), None)
        if first is None or (self.borrowing_forbidden and not self._under_nominal()):
            return [True]
        if self.borrowing_forbidden and not any(self._cohort(advantage=True)):
            return [False, True]
        return [True, False]

    def attempt(self, *, borrow: bool) -> list[Victim]:
        """Take candidates in order until the preemptor fits, then give back those it can do without."""
        removed: list[Victim] = []
        for victim, meeting in self._in_order(borrow=borrow):
            if meeting is not None and not self._still_valid(victim.record, meeting):
                continue
            take_out(victim.record)
            removed.append(victim)
            if fits(self.preemptor, borrow=borrow):
                return fill_back(self.preemptor, removed, borrow=borrow)
        put_back(removed)
        return []

    def _in_order(self, *, borrow: bool) -> Iterator[_Candidate]:
        """Evicted ones first; among each: hierarchical reclaim, reclaim by priority, own queue."""
        by_priority = not (borrow and self.borrowing_forbidden)
        for evicted in (True, False):
            yield from self._cohort(evicted=evicted, advantage=True)
            if by_priority:
                for candidate in self._cohort(evicted=evicted, advantage=False):
                    if not borrow or candidate[0].reason == IN_COHORT_RECLAIM_WHILE_BORROWING:
                        yield candidate
            for record in self.own:
                if record.evicted == evicted:
                    yield Victim(record, IN_CLUSTER_QUEUE), None

    def _cohort(self, *, evicted: bool | None = None, advantage: bool | None = None) -> Iterator[_Candidate]:
        """Candidates of other queues, in order: those who are being evicted come first."""
        own = self.preemptor.queue
        if own.node.parent is None or self.reclaims in {NEVER, ""}:
            return
        if advantage is not None and advantage not in self.advantage.values():
            return
        standing: dict[QuotaNode, tuple[QuotaNode, bool] | None] = {}
        for entry in self.candidates.borrowers(own.node.root, self.preemptor.frs):
            if evicted is not None and (entry[0] == 0) != evicted:
                if evicted:
                    return
                continue
            record = entry[-1]
            queue = record.queue
            if queue is None or queue is own or not allows(self.reclaims, self.preemptor, record):
                continue
            node = queue.node
            if node not in standing:
                standing[node] = self._standing(queue)
            found = standing[node]
            if found is not None and (advantage is None or found[1] == advantage):
                yield Victim(record, IN_COHORT_RECLAMATION if found[1] else self._right(record)), found[0]

    def _standing(self, queue: QueueState) -> tuple[QuotaNode, bool] | None:
        """Find where the queue's path meets the preemptor's, and the advantage there.

        `None` for a queue below a cohort that is within its own quota: nothing is taken from there.
        """
        for cohort in queue.node.ancestors():
            if cohort in self.advantage:
                return cohort, self.advantage[cohort]
            if within_nominal(cohort, self.preemptor.frs):
                return None
        return None

    def _right(self, record: Record) -> str:
        """Say by which right a candidate of another queue may be taken (Kueue: classifyPreemptionVariant).

        By reclamation where the preemptor may not borrow meanwhile.
        """
        priority = record.workload.priority
        if (
            self.borrowing_forbidden
            or priority >= self.preemptor.priority
            or (self.threshold is not None and priority > self.threshold)
        ):
            return IN_COHORT_RECLAMATION
        return IN_COHORT_RECLAIM_WHILE_BORROWING

    def _still_valid(self, record: Record, meeting: QuotaNode) -> bool:
        """Return whether the queue of a candidate, and the cohorts below the meeting point, still exceed their quota.

        Nobody gives more than it borrows.
        """
        node = None if record.queue is None else record.queue.node
        while node is not None and node is not meeting:
            if within_nominal(node, self.preemptor.frs):
                return False
            node = node.parent
        return True

    def _under_nominal(self) -> bool:
        """Whether the queue uses strictly less than its nominal quota wherever it lacks room."""
        node = self.preemptor.queue.node
        return all(node.usage.get(fr, 0) < _nominal(node, fr) for fr in self.preemptor.frs)


def _nominal(node: QuotaNode, fr: FlavorResource) -> int:
    quota = node.quotas.get(fr)
    return 0 if quota is None else quota.nominal
