"""Which flavors does a job get, where it may have several? The search of `taskgov.scheduling.flavor_search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from taskgov.scheduling.assignment import FIT, NO_CANDIDATES, NO_FIT, PREEMPT, RECLAIM, Mode
from taskgov.scheduling.grades import is_preferred, tries_next

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskgov.futures.asks import Amounts, Search
    from taskgov.futures.queues import Kind, Queue

    After = Callable[[Queue, Sequence[int], Amounts], tuple[bool, bool]]
    """Says of victims whether one is of the queue itself, and whether it would borrow once they have left."""

Grade = tuple[Mode, int]
"""How an amount could be had, and whether by borrowing (1)."""
Tried = tuple[int, ...]
"""Where each search of a kind stopped: the number of a flavor, -1 when all were seen."""


class Choice(NamedTuple):
    """What a job would get."""

    mode: Mode
    asks: Amounts
    lacking: int
    """The places, as bits, that only preemption can free."""
    borrows: bool
    tried: Tried


class Chooser:
    """The circumstances of one job: its queue as it stands, and what preemption could free (`oracle`)."""

    def __init__(self, kind: Kind, oracle: Callable[[int, int], Sequence[int]], after: After) -> None:
        self.queue: Queue = kind.queue
        self.fungibility = kind.queue.spec.fungibility
        self.kind = kind
        self.oracle = oracle
        self.after = after
        self.used: dict[int, int] = {}
        """What the job would use by the choices so far."""

    def choose(self, before: Tried) -> Choice:
        """Search the flavors of each group, from where the last search stopped (`before`)."""
        tried: list[int] = []
        of_pods: list[tuple[Mode, dict[int, Grade], int]] = []
        mode, lacking, borrows, pods = FIT, 0, 0, 0
        for number, search in enumerate(self.kind.searches):
            if search.pods != pods:
                mode = min(mode, _mode(of_pods))
                tried += [stopped for _, _, stopped in of_pods]
                of_pods, pods = [], search.pods
            found = self._search(search, _start(search, number, before))
            if found is None:
                return Choice(NO_FIT, (), 0, borrows=False, tried=tuple(tried))
            of_pods.append(found)
            for place, (of_place, borrow) in found[1].items():
                borrows = max(borrows, borrow)
                if NO_FIT < of_place < FIT:
                    lacking |= 1 << place
        tried += [stopped for _, _, stopped in of_pods]
        return Choice(min(mode, _mode(of_pods)), tuple(self.used.items()), lacking, borrows > 0, tuple(tried))

    def _search(self, search: Search, start: int) -> tuple[Mode, dict[int, Grade], int] | None:
        """Return the best flavor's mode, the grades of its places, and where the search stopped."""
        best: dict[int, Grade] | None = None
        best_grade: Grade = (NO_FIT, 0)
        chosen: Amounts = ()
        last = -1
        for last in range(start, len(search.options)):
            option = search.options[last]
            if option is None:
                continue
            grades = {place: self._grade(place, self.used.get(place, 0) + amount) for place, amount in option}
            worst: Grade = (FIT, 0)
            for grade in grades.values():
                if is_preferred(worst, grade, self.fungibility):
                    worst = grade
            if not tries_next(worst, self.fungibility):
                best, best_grade, chosen = grades, worst, option
                break
            if is_preferred(worst, best_grade, self.fungibility):
                best, best_grade, chosen = grades, worst, option
        if best is None:
            return None
        for place, amount in chosen:
            self.used[place] = self.used.get(place, 0) + amount
        return best_grade[0], best, -1 if last == len(search.options) - 1 else last

    def _grade(self, place: int, amount: int) -> Grade:
        """Say how an amount of a place could be had now."""
        queue = self.queue
        if amount > queue.potential[place]:
            return NO_FIT, 0
        asks = ((place, amount),)
        borrow = int(not queue.alone and queue.would_borrow(asks))
        if queue.fits(asks):
            return FIT, borrow
        if not (self.kind.anyhow or queue.nominal[place] >= amount):
            return NO_FIT, borrow
        victims = self.oracle(place, amount)
        if not victims:
            return NO_CANDIDATES, borrow
        own, would = self.after(queue, victims, asks)
        return PREEMPT if own else RECLAIM, int(not queue.alone and would)


def _start(search: Search, number: int, before: Tried) -> int:
    return before[number] + 1 if search.resumes and number < len(before) else 0


def _mode(of_pods: Sequence[tuple[Mode, dict[int, Grade], int]]) -> Mode:
    """Return the mode of pod sets: the worst of their places, unless each search found what fits."""
    if all(best == FIT for best, _, _ in of_pods):
        return FIT
    return min(mode for _, grades, _ in of_pods for mode, _ in grades.values())
