"""What does one cycle decide? One head of each queue of a tree, as in `taskgov.scheduling.cycle`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.futures.queues import NOBODY
from taskgov.futures.standing import Standing
from taskgov.futures.taking import Preemptor
from taskgov.scheduling.objects import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskgov.futures.queues import Amounts, Kind, Queue, Tree
    from taskgov.scheduling.instants import Instant

_NONE: Final[list[int]] = []


class _Entry(NamedTuple):
    """One head of a cycle that fits, or has somebody to preempt or room to keep."""

    rank: int
    kind: Kind
    asks: Amounts
    lacking: int
    """The places, as bits, of which there is too little for it."""
    victims: list[int]


class Cycles(Standing):
    """Runs cycles on what stands."""

    def cycle(self, tree: Tree, now: Instant) -> None:
        """Look at one head of each queue of a tree."""
        entries = [
            entry
            for queue in tree.queues
            if queue.active and queue.open and (entry := self._nominate(queue)) is not None
        ]
        if len(entries) == 1 and (not entries[0].lacking or entries[0].victims):
            self._do(entries[0], now)
        elif entries:
            self._process_all(entries, now)

    def _nominate(self, queue: Queue) -> _Entry | None:
        """Judge one head; one that nothing can be done for joins the inadmissible."""
        rank = queue.pop(self.kind_of)
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
            return _Entry(rank, kind, asks, 0, _NONE)
        if not lacking & ~kind.may_preempt:
            victims = self.taking.victims(self._preemptor(queue, rank, asks, lacking))
            if victims or queue.spec.preemption.reclaim_within_cohort != ANY:
                return _Entry(rank, kind, asks, lacking, victims)
        queue.mark(rank, kind)
        return None

    def _preemptor(self, queue: Queue, rank: int, asks: Amounts, lacking: int) -> Preemptor:
        turn = self.jobs.turn[rank]
        return Preemptor(queue, -turn[0], turn[1], asks, lacking)

    def _do(self, entry: _Entry, now: Instant) -> None:
        """Admit or preempt for the only one of a cycle: nothing came before it."""
        rank, kind = entry.rank, entry.kind
        if not entry.lacking:
            self._admit(rank, kind.queue, entry.asks, now)
            return
        kind.queue.sticky = rank
        kind.queue.push(rank, kind)
        for victim in entry.victims:
            self.preempt(victim, now)

    def _process_all(self, entries: list[_Entry], now: Instant) -> None:
        """Decide on all entries in order, each seeing what the earlier ones changed."""
        in_order = sorted((self._order(entry), entry) for entry in entries)
        held: list[tuple[Queue, Amounts]] = []
        gone: dict[int, None] = {}
        for _, entry in in_order:
            self._process(entry, held, gone, now)
        for queue, amounts in reversed(held):
            queue.let_go(amounts)
        for rank in gone:
            self.preempt(rank, now)

    def _order(self, entry: _Entry) -> tuple[float, float, tuple[int, int, str]]:
        """Return what orders the heads of a cycle: borrowing, under fair sharing share, then priority, age and key."""
        queue, asks, turn = entry.kind.queue, entry.asks, self.jobs.turn[entry.rank]
        if not self.fair:
            return self._borrows(entry), 0.0, turn
        queue.add(asks)
        would = any(amount > 0 and queue.used[place] > queue.nominal[place] for place, amount in asks)
        share = queue.share()
        queue.remove(asks)
        return would, share, turn

    def _borrows(self, entry: _Entry) -> bool:
        """Say whether the queue would borrow, once those have left whom each lacking resource alone would take."""
        queue = entry.kind.queue
        if queue.alone:
            return False
        for ask in entry.asks:
            victims: list[int] = []
            if entry.lacking >> ask[0] & 1:
                victims = self.taking.victims(self._preemptor(queue, entry.rank, (ask,), 1 << ask[0]))
            if self._after(victims, partial(queue.would_borrow, (ask,))):
                return True
        return False

    def _process(self, entry: _Entry, held: list[tuple[Queue, Amounts]], gone: dict[int, None], now: Instant) -> None:
        """Decide on one entry."""
        rank, kind, asks, lacking, victims = entry
        queue = kind.queue
        if lacking and not victims:
            self._reserve(entry, held)
            queue.mark(rank, kind)
        elif any(victim in gone for victim in victims) or not self._after((*gone, *victims), partial(queue.fits, asks)):
            queue.push(rank, kind)
        elif not lacking:
            self._admit(rank, queue, asks, now)
        else:
            gone.update(dict.fromkeys(victims))
            queue.hold(asks)
            held.append((queue, asks))
            queue.sticky = rank
            queue.push(rank, kind)

    def _admit(self, rank: int, queue: Queue, asks: Amounts, now: Instant) -> None:
        queue.add(asks)
        if queue.sticky == rank:
            queue.sticky = NOBODY
        self.hold(rank, queue, asks, now)
        self.begin(rank, now, self.jobs.run_time[rank])

    def _after(self, leaving: Iterable[int], question: Callable[[], bool]) -> bool:
        """Ask a question as if some had left."""
        for rank in leaving:
            self.queue_of[rank].remove(self.holds[rank])
        answer = question()
        for rank in leaving:
            self.queue_of[rank].add(self.holds[rank])
        return answer

    def _reserve(self, entry: _Entry, held: list[tuple[Queue, Amounts]]) -> None:
        """Keep room for one that may preempt nobody; its queue cannot reclaim whatever it needs."""
        queue = entry.kind.queue
        kept = []
        borrows = self._borrows(entry)
        for place, amount in entry.asks:
            most = queue.nominal[place] + (queue.limit[place] if borrows else 0) - queue.used[place]
            keep = min(amount, most) if borrows else max(0, min(amount, most))
            kept.append((place, keep))
        queue.hold(tuple(kept))
        held.append((queue, tuple(kept)))
