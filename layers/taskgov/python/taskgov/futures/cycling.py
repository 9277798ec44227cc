"""What does one cycle decide? One head of each queue of a tree, as in `taskgov.scheduling.cycle`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.futures.choosing import Chooser
from taskgov.futures.queues import NOBODY
from taskgov.futures.standing import Scan, Standing
from taskgov.futures.taking import Preemptor
from taskgov.scheduling.assignment import FIT, NO_FIT
from taskgov.scheduling.objects import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskgov.futures.asks import Amounts
    from taskgov.futures.queues import Kind, Queue, Tree
    from taskgov.scheduling.instants import Instant

_NOTHING_TO_CHOOSE: Final = Scan((), 0, 0)
_NONE: Final[list[int]] = []
_new: Final = tuple.__new__
"""Makes a named tuple in a third of the time of its own constructor."""


class _Entry(NamedTuple):
    """One head of a cycle that fits, or has somebody to preempt or room to keep."""

    rank: int
    kind: Kind
    asks: Amounts
    lacking: int
    """The places, as bits, that have too little for it."""
    victims: list[int]
    borrows: bool | None = None
    """Whether its queue would borrow; `None` where nobody has asked yet."""


class Cycles(Standing):
    """Runs cycles on what stands."""

    def cycle(self, tree: Tree, now: Instant) -> None:
        """Consider one head of each queue of a tree."""
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
            return self._choose(rank, kind)
        lacking = 0
        if self.chooses:
            self.scans[rank] = _NOTHING_TO_CHOOSE
        for place, amount in asks:
            if amount and amount > queue.available(place):
                lacking |= 1 << place
        if not lacking:
            return _new(_Entry, (rank, kind, asks, 0, _NONE, None))
        if not lacking & ~kind.may_preempt:
            victims = _NONE
            if not self.taking.is_hopeless(kind, asks):
                victims = self.taking.victims(self._preemptor(queue, rank, asks, lacking))
            if victims or queue.spec.preemption.reclaim_within_cohort != ANY:
                return _new(_Entry, (rank, kind, asks, lacking, victims, None))
        self._refuse(rank, kind)
        return None

    def _choose(self, rank: int, kind: Kind) -> _Entry | None:
        """Judge one head that may have several flavors, or none at all."""
        queue = kind.queue
        if not kind.searches:
            self._refuse(rank, kind)
            return None
        known: dict[tuple[int, int], list[int]] = {}

        def oracle(place: int, amount: int) -> list[int]:
            if (place, amount) not in known:
                asks = ((place, amount),)
                known[place, amount] = self.taking.victims(self._preemptor(queue, rank, asks, 1 << place))
            return known[place, amount]

        scan = self.scans.get(rank)
        valid = scan is not None and (self.number_of_cycle - scan.cycle <= 1 or queue.generation <= scan.generation)
        choice = Chooser(kind, oracle, self._own_and_borrows).choose(scan.tried if scan is not None and valid else ())
        self.scans[rank] = Scan(choice.tried, self.number_of_cycle, queue.generation)
        if choice.mode == FIT:
            return _Entry(rank, kind, choice.asks, 0, _NONE, choice.borrows)
        if choice.mode != NO_FIT:
            victims = self.taking.victims(self._preemptor(queue, rank, choice.asks, choice.lacking))
            if victims or queue.spec.preemption.reclaim_within_cohort != ANY:
                return _Entry(rank, kind, choice.asks, choice.lacking, victims, choice.borrows)
        self._refuse(rank, kind)
        return None

    def _own_and_borrows(self, queue: Queue, victims: Sequence[int], asks: Amounts) -> tuple[bool, bool]:
        own = any(self.queue_of[victim] is queue for victim in victims)
        return own, self._after(victims, partial(queue.would_borrow, asks))

    def _refuse(self, rank: int, kind: Kind) -> None:
        """Requeue one that gets nothing now; while flavors are left to search, it stays in line."""
        if self.scans and (scan := self.scans.get(rank)) and any(stopped != -1 for stopped in scan.tried):
            kind.queue.push(rank, kind)
        else:
            kind.queue.mark(rank, kind)
            self.all_stay = False

    def _preemptor(self, queue: Queue, rank: int, asks: Amounts, lacking: int) -> Preemptor:
        turn = self.jobs.turn[rank]
        return _new(Preemptor, (queue, -turn[0], turn[1], asks, lacking))

    def _do(self, entry: _Entry, now: Instant) -> None:
        """Admit or preempt for the only one of a cycle: nothing came before it."""
        rank, kind = entry.rank, entry.kind
        if not entry.lacking:
            self._admit(rank, kind.queue, entry.asks, now)
            return
        self._wait_for_victims(rank, kind)
        for victim in entry.victims:
            self.preempt(victim, now)

    def _process_all(self, entries: list[_Entry], now: Instant) -> None:
        """Decide on all entries in order, each seeing what the earlier ones changed."""
        in_order = sorted([(self._order(entry), entry) for entry in entries])
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
        return queue.would_borrow_for(asks), queue.share_with(asks), turn

    def _borrows(self, entry: _Entry) -> bool:
        """Return whether the queue would borrow, once those have left whom each lacking resource alone would take."""
        queue = entry.kind.queue
        if entry.borrows is not None or queue.alone:
            return bool(entry.borrows)
        for ask in entry.asks:
            victims: list[int] = []
            if entry.lacking >> ask[0] & 1:
                victims = self.taking.victims(self._preemptor(queue, entry.rank, (ask,), 1 << ask[0]))
            if self._after(victims, partial(queue.would_borrow, (ask,))):
                return True
        return False

    def _process(self, entry: _Entry, held: list[tuple[Queue, Amounts]], gone: dict[int, None], now: Instant) -> None:
        """Decide on one entry."""
        rank, kind, asks, lacking, victims, _ = entry
        queue = kind.queue
        if lacking and not victims:
            self._reserve(entry, held)
            self._refuse(rank, kind)
        elif not self._still_fits(entry, gone):
            queue.push(rank, kind)
        elif not lacking:
            self._admit(rank, queue, asks, now)
        else:
            gone.update(dict.fromkeys(victims))
            queue.hold(asks)
            held.append((queue, asks))
            self._wait_for_victims(rank, kind)

    def _still_fits(self, entry: _Entry, gone: dict[int, None]) -> bool:
        """Return whether an entry still fits, without its victims and those of earlier entries; none is in both."""
        queue, victims = entry.kind.queue, entry.victims
        if not gone and not victims:
            return queue.fits(entry.asks)
        if not gone.keys().isdisjoint(victims):
            return False
        return self._after((*gone, *victims), partial(queue.fits, entry.asks))

    def _wait_for_victims(self, rank: int, kind: Kind) -> None:
        kind.queue.sticky = rank
        kind.queue.push(rank, kind)
        self.scans.pop(rank, None)

    def _admit(self, rank: int, queue: Queue, asks: Amounts, now: Instant) -> None:
        queue.add(asks)
        if queue.sticky == rank:
            queue.sticky = NOBODY
        self.scans.pop(rank, None)
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
