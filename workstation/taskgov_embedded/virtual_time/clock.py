"""The time in the stack, and what is due next.

The whole process reads this clock while a stack is open: `datetime.now()`, `time.time()`, moto, botocore and Powertools
are turned to it by time-machine, which stands still between two moves. Timers are kept in order of their moment, then
of their making. Recurring ones (rates and crons) are kept apart, because they never run out.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import time_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

DEFAULT_START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
"""A Friday morning: nothing special, but the same in every run."""


@dataclass(order=True, slots=True)
class Timer:
    """Something to do at a moment. A cancelled timer stays in the heap and is passed over."""

    due: datetime
    order: int
    action: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Make sure that it does not fire."""
        self.cancelled = True


@dataclass(order=True, slots=True)
class Recurring:
    """Something to do again and again: `next_after(moment)` gives the next one, or None when there is none left."""

    due: datetime
    order: int
    action: Callable[[], None] = field(compare=False)
    next_after: Callable[[datetime], datetime | None] = field(compare=False)
    name: str = field(default="", compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Make sure that it does not fire again."""
        self.cancelled = True


_T = TypeVar("_T", Timer, Recurring)


class VirtualClock:
    """The present moment (aware, UTC) and the heap of what is due."""

    is_live = False
    """Whether time passes by itself; nothing then moves the clock."""

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        if start.tzinfo is None:
            raise ValueError(f"the clock needs an aware start, got {start.isoformat()}")
        self._now = start.astimezone(UTC)
        self._millis = self._now.timestamp() * 1000
        self._travel = time_machine.travel(self._now, tick=False)
        self._traveller: time_machine.Traveller | None = None
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._once: list[Timer] = []
        self._recurring: list[Recurring] = []

    @property
    def now(self) -> datetime:
        """The present moment."""
        return self._now

    @property
    def millis(self) -> float:
        """The present moment in milliseconds since 1970, as services compare times."""
        return self._millis

    @property
    def iso(self) -> str:
        """The present moment as AWS writes it in events, e.g. `2026-11-20T09:00:00Z`."""
        return self._now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def install(self) -> None:
        """Turn the process to this clock."""
        self._travel = time_machine.travel(self._now, tick=False)
        self._traveller = self._travel.start()

    def uninstall(self) -> None:
        """Give the process its own time back."""
        self._travel.stop()
        self._traveller = None

    def move_to(self, moment: datetime) -> None:
        """Let it be `moment`; time never goes back."""
        if moment <= self._now:
            return
        self._now, self._millis = moment, moment.timestamp() * 1000
        if self._traveller is not None:
            self._traveller.move_to(moment)

    def at(self, moment: datetime, action: Callable[[], None]) -> Timer:
        """Do `action` at `moment`, or as soon as possible when that has passed."""
        with self._lock:
            timer = Timer(max(moment, self.now), next(self._order), action)
            heapq.heappush(self._once, timer)
        return timer

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Do `action` once `seconds` have passed."""
        # Whole milliseconds, rounded up: services compare times in milliseconds, and must not find them too early.
        return self.at(self.now + timedelta(milliseconds=math.ceil(round(seconds * 1000, 3))), action)

    def every(
        self, next_after: Callable[[datetime], datetime | None], action: Callable[[], None], name: str = ""
    ) -> Recurring | None:
        """Do `action` at each moment that `next_after` names, the first one after now."""
        first = next_after(self.now)
        if first is None:
            return None
        with self._lock:
            timer = Recurring(first, next(self._order), action, next_after, name)
            heapq.heappush(self._recurring, timer)
        return timer

    def next_once(self) -> Timer | None:
        """Return the timer that is due first, left in its place."""
        with self._lock:
            return _first_live(self._once)

    def next_of_all(self) -> Timer | Recurring | None:
        """Return the timer or recurring moment that is due first; of two at the same moment, the timer."""
        with self._lock:
            once, recurring = _first_live(self._once), _first_live(self._recurring)
        if once is None or recurring is None:
            return once or recurring
        return once if once.due <= recurring.due else recurring

    def fire(self, timer: Timer | Recurring, only: Collection[str] | None = None) -> None:
        """Move to its moment and do it; a recurring one is set for its next moment, and done if `only` names it."""
        self.move_to(timer.due)
        with self._lock:
            if isinstance(timer, Timer):
                timer.cancelled = True  # another thread may have put an earlier one before it
            else:
                heapq.heappop(self._recurring)
                self._set_again(timer, timer.due)
        if isinstance(timer, Timer) or only is None or timer.name in only:
            timer.action()

    def pass_over_missed(self) -> None:
        """Set recurring moments that have been jumped over to their next one, without doing them."""
        with self._lock:
            missed = [timer for timer in self._recurring if timer.due < self._now]
            self._recurring = [timer for timer in self._recurring if timer.due >= self._now]
            heapq.heapify(self._recurring)
            for timer in missed:
                self._set_again(timer, self._now)

    def _set_again(self, timer: Recurring, moment: datetime) -> None:
        following = timer.next_after(moment)
        if following is not None and not timer.cancelled:
            timer.due = following
            heapq.heappush(self._recurring, timer)


def _first_live(heap: list[_T]) -> _T | None:
    while heap and heap[0].cancelled:
        heapq.heappop(heap)
    return heap[0] if heap else None
