"""Decide whose turn it is: many threads, one at a time, in the order in which they became ready.

Each execution of a state machine, branch, iteration, call of a task and delivery has a thread of its own, and they wait
on events with time-outs. They are cooperative: a thread runs until it waits, ends or sleeps; the driver (the
thread that opened the stack) then gives the turn to the next one that is ready, and when none is, jumps the clock to
the next moment that is due. The same input therefore gives the same order and the same timeline, without a real wait.

`CooperativeEvent` looks like `threading.Event`.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager

    from taskgov_embedded.virtual_time.clock import Timer, VirtualClock

LONGEST_WAIT = 99_999_999
"""Step Functions' own "no time-out" in seconds: waits this long have no end, so they are not a time to jump to."""


class TaskCancelledError(BaseException):
    """What the thread worked on was ended while it waited, or the stack was closed.

    Not an `Exception`, so that no handler of errors swallows it.
    """


class Task:
    """One cooperative thread."""

    def __init__(self, turns: Turns, target: Callable[[], object], name: str) -> None:
        self.name = name
        self.done = CooperativeEvent(turns)
        self._turns = turns
        self._target = target
        self._turn = threading.Semaphore(0)
        # An empty context: who starts a thread in the account does not lend it its environment or its identity.
        self._context = contextvars.Context()
        self._thread = threading.Thread(target=self._context.run, args=(self._run,), name=name, daemon=True)
        self._started = False
        self.failure: BaseException | None = None

    def run_until_it_waits(self) -> None:
        """Give it the turn and wait until it gives it back (called by the driver)."""
        if self._started:
            self._turn.release()
        else:
            self._started = True
            self._thread.start()
        self._turns.come_back.acquire()

    def give_back(self) -> None:
        """Give the turn back to the driver and wait for the next turn (called by the task itself)."""
        self._turns.come_back.release()
        self._turn.acquire()
        if self._turns.closed:
            raise TaskCancelledError(self.name)

    def cancel(self) -> None:
        """End the thread where it waits."""
        if self._started and self._thread.is_alive():
            self.run_until_it_waits()
            self._thread.join()

    def _run(self) -> None:
        self._turns.enter(self)
        try:
            self._target()
        except TaskCancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 the driver raises it in its own thread
            self.failure = error
        finally:
            self.done.set()
            self._turns.leave(self)


class Waiter:
    """One wait of one task: it ends once, by the event (True) or by the clock (False)."""

    def __init__(self, turns: Turns, task: Task) -> None:
        self.happened = False
        self.timer: Timer | None = None
        self._turns = turns
        self._task = task
        self._over = False

    def wake(self, *, happened: bool) -> None:
        """End the wait, if it has not ended yet."""
        if self._over:
            return
        self._over = True
        self.happened = happened
        if self.timer is not None:
            self.timer.cancel()
        self._turns.make_ready(self._task)


class Turns:
    """The driver of all cooperative threads of one stack."""

    def __init__(
        self, clock: VirtualClock, suspended: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    ) -> None:
        self.clock = clock
        self.suspended = suspended
        self.closed = False
        self.come_back = threading.Semaphore(0)
        self._ready: deque[Task] = deque()
        self._living: dict[Task, None] = {}
        self._here = threading.local()
        self._driver = threading.get_ident()

    def current(self) -> Task | None:
        """Return the task that runs in the calling thread, or None outside of one."""
        task: Task | None = getattr(self._here, "task", None)
        return task

    def is_driver(self) -> bool:
        """Return whether the calling thread is the one that drives: on a live clock, only the server does."""
        return not self.clock.is_live and threading.get_ident() == self._driver

    def spawn(self, target: Callable[[], object], name: str) -> Task:
        """Make a task that is ready to run; it starts when the driver comes to it."""
        task = Task(self, target, name)
        self._living[task] = None
        self.make_ready(task)
        return task

    def make_ready(self, task: Task) -> None:
        """Put a task at the end of the queue."""
        self._ready.append(task)

    def enter(self, task: Task) -> None:
        """Mark the calling thread as the task's."""
        self._here.task = task

    def leave(self, task: Task) -> None:
        """Forget a task that has ended and give the turn back."""
        self._living.pop(task, None)
        self.come_back.release()

    def wait(self, waiters: list[Waiter], timeout: float | None) -> bool:
        """Let the calling task wait until one of the waiters' events wakes it or `timeout` seconds have passed."""
        task = self.current()
        if task is None:
            raise RuntimeError("only a thread of the stack can wait for something in the stack")
        if self.closed:
            raise TaskCancelledError(task.name)
        waiter = Waiter(self, task)
        waiters.append(waiter)
        if timeout is not None and timeout < LONGEST_WAIT:
            waiter.timer = self.clock.after(max(timeout, 0), lambda: waiter.wake(happened=False))
        with self.suspended():
            task.give_back()
        return waiter.happened

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of the clock pass for the calling thread; outside of a task the whole stack runs meanwhile."""
        if self.current() is None:
            with self.suspended():
                self.run(seconds, recurring=True)
        else:
            self.wait([], seconds)

    def run_ready(self) -> None:
        """Run tasks until none is ready, and raise the first error that one of them did not handle."""
        while self._ready:
            task = self._ready.popleft()
            task.run_until_it_waits()
            if task.failure is not None:
                raise task.failure

    def run(self, seconds: float, *, recurring: bool, only: Collection[str] | None = None) -> None:
        """Run for `seconds`: all that is due in that time, recurring moments if asked for; the clock ends at the end.

        Without recurring moments the clock stops where the last thing happened. `only` names those that are done.
        """
        if recurring:
            self.clock.pass_over_missed()
        limit = self.clock.now.timestamp() + seconds
        self.run_ready()
        while (timer := self._next(recurring=recurring)) is not None and timer.due.timestamp() <= limit:
            self.clock.fire(timer, only)
            self.run_ready()
        if recurring:
            self.clock.move_to(self.clock.now.fromtimestamp(limit, self.clock.now.tzinfo))

    def run_until(self, event: CooperativeEvent, max_seconds: float) -> bool:
        """Run until `event` has happened or `max_seconds` have passed; True when it has."""
        limit = self.clock.now.timestamp() + max_seconds
        self.run_ready()
        while not event.is_set():
            timer = self.clock.next_once()
            if timer is None or timer.due.timestamp() > limit:
                return False
            self.clock.fire(timer)
            self.run_ready()
        return True

    def _next(self, *, recurring: bool) -> Any:
        return self.clock.next_of_all() if recurring else self.clock.next_once()

    def close(self) -> None:
        """End every thread that still waits, oldest first."""
        self.closed = True
        for task in list(self._living):
            task.cancel()
        self._ready.clear()


class CooperativeEvent:
    """`threading.Event`, on the clock of the account."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._flag = False
        self._waiters: list[Waiter] = []

    def is_set(self) -> bool:
        """Return whether it has happened."""
        return self._flag

    def set(self) -> None:
        """Let it have happened; everyone who waits becomes ready, first come first served."""
        self._flag = True
        waiting, self._waiters = self._waiters, []
        for waiter in waiting:
            waiter.wake(happened=True)

    def clear(self) -> None:
        """Let it not have happened yet."""
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it; False when `timeout` seconds have passed without it."""
        return True if self._flag else self._turns.wait(self._waiters, timeout)
