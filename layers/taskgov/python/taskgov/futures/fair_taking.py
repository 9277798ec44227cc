"""Whom to preempt under fair sharing? The search of `taskgov.scheduling.fair_preemption` on queues in numbers."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from taskgov.futures.taking import Line, Place, Preemptor, Removed, Taking, place_of
from taskgov.scheduling.config import Strategy

if TYPE_CHECKING:
    from taskgov.futures.queues import Queue, Running


class FairTaking(Taking):
    """Takes from the queue that borrows most, while the preemptor stays behind it (KEP-1714)."""

    def victims(self, preemptor: Preemptor) -> list[int]:
        """Return the ranks of those that make room for the preemptor, or none."""
        own, others = self.own(preemptor), self.others(preemptor)
        if not own and not others:
            return []
        queue = preemptor.queue
        queue.add(preemptor.asks)
        removed: Removed = []
        retry: dict[Queue, list[Running]] = {}
        done = self._first_pass(preemptor, own, others, removed, retry) or (
            len(self.strategies) > 1 and self._second_pass(preemptor, retry, removed)
        )
        queue.remove(preemptor.asks)
        if done:
            return self.fill_back(preemptor, removed, borrow=True)
        self.put_back(removed)
        return []

    def _first_pass(
        self,
        preemptor: Preemptor,
        own: list[Running],
        others: Line,
        removed: Removed,
        retry: dict[Queue, list[Running]],
    ) -> bool:
        """Apply the first strategy until the preemptor fits; who fails it is kept for the second."""
        queue = preemptor.queue
        within = not queue.exceeds(preemptor.mask)
        line: list[tuple[Place, Queue]] = []
        if own:
            line.append((place_of(queue, own[0], own=True), queue))
        left: dict[Queue, list[Running]] = {queue: own}
        found = {other: candidates for _, other, candidates in others}
        line += [(place, other) for place, other, _ in others if other is not queue]
        heapify(line)
        while line:
            place, target = heappop(line)
            if target is queue:
                waiting = own
                taken = self._take(target, waiting, removed)
            else:
                waiting = left.get(target) or left.setdefault(target, list(found[target]))
                if within:
                    taken = self._take(target, waiting, removed)
                elif -place[0] < queue.share():
                    return False
                else:
                    taken = self._take_first_allowed(queue, target, waiting, removed, retry)
            if waiting and (target is queue or target.borrows()):
                heappush(line, (place_of(target, waiting[0], own=target is queue), target))
            if taken and self._fits_without(preemptor):
                return True
        return False

    def _take(self, target: Queue, waiting: list[Running], removed: Removed) -> bool:
        rank = waiting.pop(0)[3]
        target.remove(self.holds[rank])
        removed.append((target, rank))
        return True

    def _take_first_allowed(
        self,
        queue: Queue,
        target: Queue,
        waiting: list[Running],
        removed: Removed,
        retry: dict[Queue, list[Running]],
    ) -> bool:
        """Take the first of a queue's candidates that the first strategy allows."""
        mine, before = queue.share(), target.share()
        final = self.strategies[0] is Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE
        while waiting:
            held = self.holds[waiting[0][3]]
            target.remove(held)
            after = target.share()
            target.add(held)
            if mine <= after if final else mine < before:
                return self._take(target, waiting, removed)
            retry.setdefault(target, []).append(waiting.pop(0))
        return False

    def _second_pass(self, preemptor: Preemptor, retry: dict[Queue, list[Running]], removed: Removed) -> bool:
        """Try the first candidate of each queue once more, against the share its queue has now."""
        line = sorted(
            (place_of(target, waiting[0], own=False), target) for target, waiting in retry.items() if target.borrows()
        )
        mine = preemptor.queue.share()
        for place, target in line:
            if mine < -place[0]:
                self._take(target, retry[target], removed)
                if self._fits_without(preemptor):
                    return True
        return False

    def _fits_without(self, preemptor: Preemptor) -> bool:
        """Whether the preemptor fits now; its own usage, counted for the shares, is left out."""
        queue = preemptor.queue
        queue.remove(preemptor.asks)
        answer = queue.fits(preemptor.asks)
        queue.add(preemptor.asks)
        return answer
