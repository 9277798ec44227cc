"""Whom to preempt? Candidates, and the search of `taskgov.scheduling.preemption` on queues in numbers.

A search leaves all usage as it found it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, NamedTuple

from taskgov.scheduling.objects import ANY, LOWER_OR_NEWER_EQUAL, LOWER_PRIORITY, NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskgov.futures.asks import Amounts
    from taskgov.futures.queues import Kind, Queue, Running, Tree
    from taskgov.scheduling.config import ManagerConfig

Place = tuple[float, bool, int, int, int, int]
"""A queue's place among those to take from: share (negative), whether it is the preemptor's own, its first candidate's
priority, reservation, UID and rank."""

Removed = list[tuple["Queue", int]]
"""Jobs that are counted as gone, by rank, with their queues."""


class Preemptor(NamedTuple):
    """Who needs room: its queue, priority, age, request, and the places (bits) of which it lacks quota."""

    queue: Queue
    priority: int
    since: int
    asks: Amounts
    mask: int


Line = list[tuple[Place, "Queue", list["Running"]]]
"""Queues to take from by share, with their candidates."""


class Taking:
    """Searches for victims while nothing changes: what was found out for one head holds for the others."""

    def __init__(self, config: ManagerConfig, holds: list[Amounts], masks: list[int], since: Sequence[int]) -> None:
        self.strategies = config.strategies
        self.holds = holds
        """What each job holds, by rank."""
        self.masks = masks
        """The places that each job holds, as bits, by rank."""
        self.since = since
        """When each job was created, by rank."""
        self.known: dict[object, Line] = {}
        self.borrowers: dict[Tree, Line] = {}
        """The answers to `borrowing`, which hold except for the queues that have changed since."""

    def forget(self, queue: Queue | None = None) -> None:
        """Somebody came to a queue or left it, or (without a queue) quotas changed: what depends on that is unknown."""
        self.known.clear()
        if queue is None:
            self.borrowers.clear()
        else:
            queue.tree.changed[queue] = None

    # Candidates

    def own(self, preemptor: Preemptor) -> list[Running]:
        """Return those of the preemptor's own queue that `withinClusterQueue` lets it take, in order."""
        queue = preemptor.queue
        policy = queue.spec.preemption.within_cluster_queue
        if not queue.running or policy in {NEVER, ""}:
            return []
        if policy == LOWER_PRIORITY and queue.running[0][0] >= preemptor.priority:
            return []  # the order is by priority: nobody has a lower one
        return self._candidates(queue, preemptor, policy)

    def others(self, preemptor: Preemptor) -> Line:
        """Return the borrowing queues of the tree by share, with their candidates; the own one may be among them."""
        queue = preemptor.queue
        policy = queue.spec.preemption.reclaim_within_cohort
        if queue.alone or policy in {NEVER, ""}:
            return []
        if queue.plain and policy == ANY:
            return self.borrowing(queue.tree)
        question = (queue.tree, preemptor.mask, policy, *_asked_of(policy, preemptor))
        line = self.known.get(question)
        if line is None:
            line = []
            for other in queue.tree.queues:
                if other.open and other.exceeds(preemptor.mask):
                    candidates = self._candidates(other, preemptor, policy)
                    if candidates and other.borrows():
                        line.append((place_of(other, candidates[0], own=False), other, candidates))
            line.sort(key=lambda entry: entry[0])
            self.known[question] = line
        return line

    def borrowing(self, tree: Tree) -> Line:
        """Return the borrowing queues of a tree where everybody holds of one place, and anybody may be taken."""
        line, changed = self.borrowers.get(tree), tree.changed
        if line is not None and not changed:
            return line
        if line is None:
            changed = dict.fromkeys(tree.queues)
            line = []
        line = [entry for entry in line if entry[1] not in changed]
        for queue in changed:
            if queue.open and queue.running and queue.borrows():
                insort(line, (place_of(queue, queue.running[0], own=False), queue, queue.running))
        self.borrowers[tree] = line
        tree.changed.clear()
        return line

    def _candidates(self, queue: Queue, preemptor: Preemptor, policy: str) -> list[Running]:
        """Return the jobs of a queue that hold what is lacking, as far as a policy allows to take from them."""
        running, mask, masks, priority = queue.running, preemptor.mask, self.masks, preemptor.priority
        if policy == LOWER_PRIORITY:
            running = running[: bisect_left(running, (priority,))]
        elif policy == LOWER_OR_NEWER_EQUAL:
            created, ages = preemptor.since, self.since
            running = running[: bisect_left(running, (priority + 1,))]
            running = [entry for entry in running if entry[0] < priority or created < ages[entry[3]]]
        elif policy != ANY:
            return []
        return running if queue.plain else [entry for entry in running if masks[entry[3]] & mask]

    def is_hopeless(self, kind: Kind, asks: Amounts) -> bool:  # noqa: ARG002
        """Return whether it is known without a search that nobody makes room for a job that does not fit."""
        return False

    def fill_back(self, preemptor: Preemptor, removed: Removed, *, borrow: bool) -> list[int]:
        """Give victims back, from the last but one to the first, wherever the preemptor still fits."""
        victims = list(removed)
        for index in range(len(victims) - 2, -1, -1):
            queue, rank = victims[index]
            queue.add(self.holds[rank])
            if _fits(preemptor, borrow=borrow):
                victims[index] = victims[-1]
                victims.pop()
            else:
                queue.remove(self.holds[rank])
        self.put_back(victims)
        return [rank for _, rank in victims]

    def put_back(self, victims: Removed) -> None:
        """Count them as there again."""
        for queue, rank in victims:
            queue.add(self.holds[rank])


class ClassicalTaking(Taking):
    """Reclaims what is lent, then takes from lower priorities; as few as possible."""

    def victims(self, preemptor: Preemptor) -> list[int]:
        """Return the ranks of those that make room for the preemptor, none when no set of candidates does."""
        own = self.own(preemptor)
        if not own and not preemptor.queue.may_ever_fit(preemptor.asks):
            return []
        others = self._in_cohort(preemptor)
        for borrow in self._attempts(preemptor, others):
            victims = self._attempt(preemptor, own, others, borrow=borrow)
            if victims:
                return victims
        return []

    def _in_cohort(self, preemptor: Preemptor) -> list[tuple[Queue, list[Running]]]:
        """Return the other queues that use more than their quota, with their candidates in order."""
        own = preemptor.queue
        policy = own.spec.preemption.reclaim_within_cohort
        if own.alone or policy in {NEVER, ""}:
            return []
        return [
            (other, candidates)
            for other in own.tree.queues
            if other is not own
            and other.open
            and other.exceeds(preemptor.mask)
            and (candidates := self._candidates(other, preemptor, policy))
        ]

    @staticmethod
    def _attempts(preemptor: Preemptor, others: Sequence[tuple[Queue, list[Running]]]) -> tuple[bool, ...]:
        """Say in which order to try with borrowing allowed (True) and without (False)."""
        queue, forbidden = preemptor.queue, _may_not_borrow(preemptor)
        if not others or (forbidden and not _under_nominal(preemptor)):
            return (True,)
        return (False, True) if forbidden and queue.would_borrow(preemptor.asks) else (True, False)

    def _attempt(
        self,
        preemptor: Preemptor,
        own: list[Running],
        others: Sequence[tuple[Queue, list[Running]]],
        *,
        borrow: bool,
    ) -> list[int]:
        """Take candidates in order until the preemptor fits, then give back those it can do without."""
        would_borrow = preemptor.queue.would_borrow(preemptor.asks)
        if would_borrow and not own and not borrow:
            return []  # what others leave does not change what its own queue uses
        removed: Removed = []
        # Whether it has a right to its request before anybody has left: later it always would.
        line = others if not (would_borrow and borrow) else _rightful(preemptor, others)
        in_order = sorted((entry, queue) for queue, candidates in line for entry in candidates)
        for entry, queue in (*in_order, *((entry, preemptor.queue) for entry in own)):
            if queue is not preemptor.queue and not queue.exceeds(preemptor.mask):
                continue
            queue.remove(self.holds[entry[3]])
            removed.append((queue, entry[3]))
            if _fits(preemptor, borrow=borrow):
                return self.fill_back(preemptor, removed, borrow=borrow)
        self.put_back(removed)
        return []


def _rightful(
    preemptor: Preemptor, others: Iterable[tuple[Queue, list[Running]]]
) -> Iterator[tuple[Queue, list[Running]]]:
    """Give the candidates that one may take that borrows even then (Kueue: classifyPreemptionVariant)."""
    rules = preemptor.queue.spec.preemption.borrow_within_cohort
    if rules is None or rules.policy == NEVER:
        return
    threshold = rules.max_priority_threshold
    below = preemptor.priority if threshold is None else min(preemptor.priority, threshold + 1)
    for queue, candidates in others:
        yield queue, candidates[: bisect_left(candidates, (below,))]


def _asked_of(policy: str, preemptor: Preemptor) -> tuple[int, ...]:
    if policy == ANY:
        return ()
    return (preemptor.priority,) if policy == LOWER_PRIORITY else (preemptor.priority, preemptor.since)


def place_of(queue: Queue, first: Running, *, own: bool) -> Place:
    """Return a queue's place by its share and then its `first` candidate: others come before the preemptor's own."""
    return -queue.share(), own, first[0], first[1], first[2], first[3]


def _fits(preemptor: Preemptor, *, borrow: bool) -> bool:
    queue = preemptor.queue
    return (borrow or not queue.would_borrow(preemptor.asks)) and queue.fits(preemptor.asks)


def _may_not_borrow(preemptor: Preemptor) -> bool:
    rules = preemptor.queue.spec.preemption.borrow_within_cohort
    return rules is None or rules.policy == NEVER


def _under_nominal(preemptor: Preemptor) -> bool:
    """Whether the queue uses strictly less than its nominal quota wherever it lacks room."""
    queue = preemptor.queue
    return all(used < queue.nominal[place] for place, used in enumerate(queue.used) if preemptor.mask >> place & 1)
