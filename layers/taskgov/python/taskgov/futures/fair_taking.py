"""Whom to preempt under fair sharing? The search of `taskgov.scheduling.fair_preemption` on queues in numbers."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from taskgov.futures.taking import Line, Preemptor, Removed, Taking, place_of
from taskgov.scheduling.config import Strategy
from taskgov.scheduling.objects import ANY, LOWER_PRIORITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.futures.asks import Amounts
    from taskgov.futures.queues import Kind, Queue, Running


class FairTaking(Taking):
    """Takes from the queue that borrows most, while the preemptor stays behind it (KEP-1714)."""

    def is_hopeless(self, kind: Kind, asks: Amounts) -> bool:
        """Return whether it is known without a search that nobody makes room for a job that does not fit.

        Known where everybody holds of one place and anybody may be taken: `victims` would find the same.
        """
        queue = kind.queue
        rules = queue.spec.preemption
        if not queue.plain or rules.reclaim_within_cohort != ANY or queue.alone:
            return False
        if queue.running and (rules.within_cluster_queue != LOWER_PRIORITY or queue.running[0][0] < kind.priority):
            return False
        if not queue.may_ever_fit(asks):
            return True
        line = self.borrowing(queue.tree)
        return not line or _is_behind(queue, queue.share_with(asks), line)

    def victims(self, preemptor: Preemptor) -> list[int]:
        """Return the ranks of those that make room for the preemptor, or none."""
        queue, own = preemptor.queue, self.own(preemptor)
        if not own and not queue.may_ever_fit(preemptor.asks):
            return []
        others = self.others(preemptor)
        if not own and not others:
            return []
        within = queue.stays_within(preemptor.asks, preemptor.mask)
        if not within and not own and _is_behind(queue, queue.share_with(preemptor.asks), others):
            return []
        queue.add(preemptor.asks)
        search = _Search(self, preemptor, within=within)
        done = search.first_pass(own, others) or (len(self.strategies) > 1 and search.second_pass())
        queue.remove(preemptor.asks)
        if done:
            return self.fill_back(preemptor, search.removed, borrow=True)
        self.put_back(search.removed)
        return []


def _is_behind(queue: Queue, share: float, line: Line) -> bool:
    """Return whether the share of a queue is above that of all others: then none of the strategies takes from them."""
    first = line[0] if line[0][1] is not queue or len(line) == 1 else line[1]
    return first[1] is queue or -first[0][0] < share


class _Search:
    """One search, with the preemptor's own usage counted in its queue while shares are compared."""

    def __init__(self, taking: Taking, preemptor: Preemptor, *, within: bool) -> None:
        self.holds = taking.holds
        self.final = taking.strategies[0] is Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE
        self.preemptor = preemptor
        self.queue = preemptor.queue
        self.within = within
        self.removed: Removed = []
        self.at: dict[Queue, int] = {}
        """How many candidates of each queue are taken or refused."""
        self.refused: dict[Queue, Running] = {}
        """The first candidate of each queue that the first strategy refuses: the second considers no other."""

    def first_pass(self, own: list[Running], others: Line) -> bool:
        """Apply the first strategy until the preemptor fits."""
        queue, at = self.queue, self.at
        line = [entry for entry in others if entry[1] is not queue]
        if own:
            heappush(line, (place_of(queue, own[0], own=True), queue, own))
        mine = queue.share()
        while line:
            place, target, candidates = heappop(line)
            if target is queue or self.within:
                taken = self._take(target, candidates)
                mine = queue.share()
            elif -place[0] < mine:
                return False
            else:
                taken = self._take_first_allowed(mine, -place[0], target, candidates)
            number = at[target]
            if number < len(candidates) and (target is queue or target.borrows()):
                again = place_of(target, candidates[number], own=target is queue)
                heappush(line, (again, target, candidates))
            if taken and self._fits():
                return True
        return False

    def _take(self, target: Queue, candidates: Sequence[Running]) -> bool:
        number = self.at.get(target, 0)
        self.at[target] = number + 1
        rank = candidates[number][3]
        target.remove(self.holds[rank])
        self.removed.append((target, rank))
        return True

    def _take_first_allowed(self, mine: float, before: float, target: Queue, candidates: Sequence[Running]) -> bool:
        """Take the first of a queue's candidates that the first strategy allows; equal ones are judged once."""
        judged: dict[Amounts, bool] = {}
        holds, refused = self.holds, None
        for number in range(self.at.get(target, 0), len(candidates)):
            held = holds[candidates[number][3]]
            if held is refused:
                continue
            allowed = judged.get(held)
            if allowed is None:
                target.remove(held)
                allowed = judged[held] = mine <= target.share() if self.final else mine < before
                target.add(held)
            if allowed:
                self.at[target] = number
                return self._take(target, candidates)
            refused = held
            if target not in self.refused:
                self.refused[target] = candidates[number]
        self.at[target] = len(candidates)
        return False

    def second_pass(self) -> bool:
        """Try the first refused candidate of each queue once more, against the share its queue has now."""
        line = sorted(
            (place_of(target, entry, own=False), target) for target, entry in self.refused.items() if target.borrows()
        )
        mine = self.queue.share()
        for place, target in line:
            if mine >= -place[0]:
                break  # the others have no greater shares
            rank = self.refused[target][3]
            target.remove(self.holds[rank])
            self.removed.append((target, rank))
            if self._fits():
                return True
        return False

    def _fits(self) -> bool:
        """Whether the preemptor fits now; its own usage, counted for the shares, is left out."""
        queue, asks = self.queue, self.preemptor.asks
        queue.remove(asks)
        answer = queue.fits(asks)
        queue.add(asks)
        return answer
