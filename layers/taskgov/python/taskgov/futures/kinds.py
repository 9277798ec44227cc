"""Who is alike, and who lends to one another: kinds of jobs, and trees of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from taskgov.futures.asks import Amounts, Search
    from taskgov.futures.queues import Queue

NOBODY: Final = -1


class Kind:
    """Jobs of one queue of equal shape and priority. While it is `marked`, none of them is in line."""

    __slots__ = ("anyhow", "asks", "heap", "marked", "may_preempt", "offered", "priority", "queue", "searches", "size")

    def __init__(self, queue: Queue, priority: int) -> None:
        self.queue = queue
        self.priority = priority
        self.asks: Amounts | None = None
        """What one of them requests, where there is nothing to choose."""
        self.searches: tuple[Search, ...] = ()
        """The searches that choose flavors; with neither, it can never have what it requests."""
        self.anyhow = False
        """Whether the queue's rules may free anything by preemption."""
        self.may_preempt = 0
        """The places that preemption could free, as bits."""
        self.heap: list[int] = []
        self.offered = NOBODY
        """Who of them stands in the queue's line."""
        self.size = 0
        self.marked = False


class Tree:
    """A cohort with its queues, or a queue on its own: those who lend to one another."""

    __slots__ = ("active", "changed", "due", "lendable", "marked", "notified", "queues", "subtree", "used")

    def __init__(self, places: int) -> None:
        self.queues: list[Queue] = []
        self.subtree = [0] * places
        self.used = [0] * places
        self.lendable = [0] * places
        """What the whole tree has of a place's resource, over all flavors."""
        self.active = 0
        """How many jobs are in line in open queues."""
        self.changed: dict[Queue, None] = {}
        """The queues whose usage has changed since `Taking.borrowing` was last asked."""
        self.marked: dict[Queue, None] = {}
        """The queues in which somebody is inadmissible."""
        self.notified = False
        """Whether room was freed since its inadmissible jobs were last reconsidered."""
        self.due = False
        """Whether they will be reconsidered at a planned time."""
