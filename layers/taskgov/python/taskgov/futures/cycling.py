"""What does one cycle decide? One head of each queue of a tree, as in `taskgov.scheduling.cycle`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from taskgov.futures.fair_taking import FairTaking
from taskgov.futures.queues import NOBODY
from taskgov.futures.standing import Standing
from taskgov.futures.taking import ClassicalTaking, Preemptor
from taskgov.scheduling.objects import ANY

if TYPE_CHECKING:
    from taskgov.futures.jobs import Jobs
    from taskgov.futures.queues import Amounts, Kind, Queue, Tree
    from taskgov.futures.setting import Setting
    from taskgov.scheduling.instants import Instant


class _Entry(NamedTuple):
    """One head of a cycle that can be admitted, or has somebody to preempt or room to keep."""

    order: tuple[object, ...]
    rank: int
    kind: Kind
    victims: list[int]
    fits: bool
    borrows: bool


class Cycles(Standing):
    """Runs cycles on what stands."""

    def __init__(self, setting: Setting, jobs: Jobs) -> None:
        super().__init__(setting, jobs)
        search = FairTaking if self.fair else ClassicalTaking
        self.taking = search(setting.config, self.holds, self.masks, [turn[1] for turn in jobs.turn])

    def cycle(self, tree: Tree, now: Instant) -> None:
        """Look at one head of each queue of a tree."""
        self.taking.forget()
        entries = []
        for queue in tree.queues:
            if queue.active and queue.open:
                rank = queue.pop(self.kind_of)
                entry = self._nominate(queue, rank)
                if entry is not None:
                    entries.append(entry)
        entries.sort()
        held: list[tuple[Queue, Amounts]] = []
        gone: dict[int, None] = {}
        for entry in entries:
            self._process(entry, held, gone, now)
        for queue, amounts in reversed(held):
            queue.let_go(amounts)
        for rank in gone:
            self.preempt(rank, now)

    def _nominate(self, queue: Queue, rank: int) -> _Entry | None:
        """Judge one head; one that nothing can be done for joins the inadmissible."""
        kind = self.kind_of[rank]
        asks = kind.asks
        if asks is None:
            queue.mark(rank, kind)
            return None
        lacking = 0
        for place, amount in asks:
            if amount and amount > queue.available(place):
                lacking |= 1 << place
        if not lacking:
            borrows = queue.would_borrow(asks) and not queue.alone
            return _Entry(self._order(queue, rank, asks, borrows=borrows), rank, kind, [], fits=True, borrows=borrows)
        if lacking & ~kind.may_preempt:
            queue.mark(rank, kind)
            return None
        turn = self.jobs.turn[rank]
        victims = self.taking.victims(Preemptor(queue, -turn[0], turn[1], asks, lacking))
        if not victims and queue.spec.preemption.reclaim_within_cohort == ANY:
            queue.mark(rank, kind)
            return None
        borrows = self._borrows_after(queue, rank, asks, lacking)
        return _Entry(self._order(queue, rank, asks, borrows=borrows), rank, kind, victims, fits=False, borrows=borrows)

    def _order(self, queue: Queue, rank: int, asks: Amounts, *, borrows: bool) -> tuple[object, ...]:
        """Return what orders the heads of a cycle: borrowing or share, then priority, age and key."""
        if not self.fair:
            return borrows, self.jobs.turn[rank]
        queue.add(asks)
        would = any(amount > 0 and queue.used[place] > queue.nominal[place] for place, amount in asks)
        share = queue.share()
        queue.remove(asks)
        return would, share, self.jobs.turn[rank]

    def _borrows_after(self, queue: Queue, rank: int, asks: Amounts, lacking: int) -> bool:
        """Say whether the queue would borrow once those have left whom each lacking resource alone would take."""
        if queue.alone:
            return False
        turn = self.jobs.turn[rank]
        for place, amount in asks:
            alone = ((place, amount),)
            if not lacking >> place & 1:
                if queue.would_borrow(alone):
                    return True
                continue
            victims = self.taking.victims(Preemptor(queue, -turn[0], turn[1], alone, 1 << place))
            for victim in victims:
                self.queue_of[victim].remove(self.holds[victim])
            answer = queue.would_borrow(alone)
            for victim in victims:
                self.queue_of[victim].add(self.holds[victim])
            if answer:
                return True
        return False

    def _process(self, entry: _Entry, held: list[tuple[Queue, Amounts]], gone: dict[int, None], now: Instant) -> None:
        """Decide on one entry, seeing what the earlier ones changed."""
        kind, rank = entry.kind, entry.rank
        queue, asks = kind.queue, kind.asks
        if asks is None:
            return
        if not entry.fits and not entry.victims:
            self._reserve(entry, held)
            queue.mark(rank, kind)
            return
        if any(victim in gone for victim in entry.victims) or not self._fits(queue, asks, entry.victims, gone):
            queue.push(rank, kind)
            return
        if entry.fits:
            queue.add(asks)
            if queue.sticky == rank:
                queue.sticky = NOBODY
            self.hold(rank, queue, asks, now)
            self.begin(rank, now, self.jobs.run_time[rank])
            return
        gone.update(dict.fromkeys(entry.victims))
        queue.hold(asks)
        held.append((queue, asks))
        queue.sticky = rank
        queue.push(rank, kind)

    def _fits(self, queue: Queue, asks: Amounts, victims: list[int], gone: dict[int, None]) -> bool:
        """Whether the amounts fit once all victims so far and these have left."""
        leaving = [*gone, *victims]
        for rank in leaving:
            self.queue_of[rank].remove(self.holds[rank])
        answer = queue.fits(asks)
        for rank in leaving:
            self.queue_of[rank].add(self.holds[rank])
        return answer

    def _reserve(self, entry: _Entry, held: list[tuple[Queue, Amounts]]) -> None:
        """Keep room for one that may preempt nobody; its queue cannot reclaim whatever it needs."""
        queue = entry.kind.queue
        kept = []
        for place, amount in entry.kind.asks or ():
            most = queue.nominal[place] + (queue.limit[place] if entry.borrows else 0) - queue.used[place]
            keep = min(amount, most) if entry.borrows else max(0, min(amount, most))
            kept.append((place, keep))
        queue.hold(tuple(kept))
        held.append((queue, tuple(kept)))
