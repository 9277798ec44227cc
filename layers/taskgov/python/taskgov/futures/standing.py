"""The state of a replay: who runs and until when, who waits, and the results so far."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.futures.counting import Count
from taskgov.futures.fair_taking import FairTaking
from taskgov.futures.queues import NOBODY
from taskgov.futures.taking import ClassicalTaking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.futures.asks import Amounts
    from taskgov.futures.choosing import Tried
    from taskgov.futures.jobs import Jobs
    from taskgov.futures.queues import Queue, Running, Tree
    from taskgov.futures.setting import Setting
    from taskgov.scheduling.instants import Instant

SUSPICIOUS: Final = 8
"""At each so many preemptions of one job, with nothing new in between, whole states are compared."""
NOT_RUNNING: Final = (0, 0, 0, NOBODY)


Ended = tuple[int, "Instant", "Instant", bool]
"""The fields of a `Stay` that is over, with the job's rank."""


class Scan(NamedTuple):
    """How far a search for flavors came, and in which cycle, at which generation of the queue."""

    tried: Tried
    cycle: int
    generation: int


class Standing:
    """The state of one replay; jobs are ranks."""

    def __init__(self, setting: Setting, jobs: Jobs) -> None:
        self.jobs = jobs
        self.batch = setting.batch
        self.fair = setting.config.fair_sharing
        count = Count(setting, jobs)
        self.kind_of = count.kind_of
        self.trees = list(count.trees.values())
        everybody = len(jobs)
        self.holds: list[Amounts] = [()] * everybody
        self.masks = [0] * everybody
        self.entry_of: list[Running] = [NOT_RUNNING] * everybody
        self.queue_of: list[Queue] = [count.nowhere] * everybody
        self.started: list[Instant] = [0] * everybody
        self.number_of = [0] * everybody
        self.number = 0
        self.ends: list[tuple[Instant, int, int]] = []
        self.looks: list[tuple[Instant, int, Tree]] = []
        self.watched: set[int] | None = None
        """The jobs that have not started yet and end the replay when they have, by rank."""
        self.stays: list[Ended] = []
        self.preemptions: dict[int, int] = {}
        self.scans: dict[int, Scan] = {}
        """How far the search for flavors of a job came, by rank."""
        self.number_of_cycle = 0
        self.idle = self.all_stay = True
        """Whether nobody came or left in the last cycle; whether all of its heads stay in line."""
        self.chooses = any(kind.searches for kind in self.kind_of)
        self.suspicious = False
        self.loop: tuple[int, ...] = ()
        search = FairTaking if self.fair else ClassicalTaking
        self.taking = search(setting.config, self.holds, self.masks, [turn[1] for turn in jobs.turn])
        self.seen: set[object] = set()
        self.count = count
        self._take_running(count)

    def _take_running(self, count: Count) -> None:
        """Count those who run already."""
        for rank, index in enumerate(self.jobs.index):
            held = self.jobs.jobs[index].held
            if held is not None:
                queue = count.queues[held.admission.cluster_queue]
                usage = tuple((count.places[fr], amount) for fr, amount in held.usage().items())
                self.hold(rank, queue, usage, held.since)
                queue.add(usage)

    def hold(self, rank: int, queue: Queue, usage: Amounts, now: Instant) -> None:
        """Count a job among the running of a queue; its usage is the caller's to count."""
        self.holds[rank] = usage
        if not queue.plain:
            mask = 0
            for place, _ in usage:
                mask |= 1 << place
            self.masks[rank] = mask
        entry = -self.jobs.turn[rank][0], -now, self.jobs.uid_place[rank], rank
        self.entry_of[rank] = entry
        self.queue_of[rank] = queue
        insort(queue.running, entry)
        self.idle = False
        queue.generation += 1
        self.taking.forget(queue)

    def begin(self, rank: int, now: Instant, run_time: int) -> None:
        """Note that a job starts, and when it will end."""
        self.number += 1
        self.number_of[rank] = self.number
        self.started[rank] = now
        heappush(self.ends, (now + run_time, self.number, rank))
        if self.watched:
            self.watched.discard(rank)

    def leave(self, rank: int) -> Tree:
        """Free what a job holds; its tree is reconsidered."""
        queue, entry = self.queue_of[rank], self.entry_of[rank]
        del queue.running[bisect_left(queue.running, entry)]
        queue.remove(self.holds[rank])
        self.entry_of[rank] = NOT_RUNNING
        self.number_of[rank] = 0
        queue.tree.notified = True
        queue.generation += 1
        self.idle = False
        self.scans.pop(rank, None)
        self.taking.forget(queue)
        return queue.tree

    def preempt(self, rank: int, now: Instant) -> None:
        """Send a job away; it joins its queue again, as old as it is, and starts again."""
        kind = self.kind_of[rank]
        self.leave(rank)
        self.stays.append((rank, self.started[rank], now, True))
        times = self.preemptions[rank] = self.preemptions.get(rank, 0) + 1
        self.suspicious = self.suspicious or times % SUSPICIOUS == 0
        kind.queue.push(rank, kind)

    def news(self) -> None:
        """Forget earlier states: something happened that they could not know."""
        if self.preemptions:
            self.preemptions.clear()
            self.seen.clear()

    def signature(self) -> tuple[object, ...]:
        """Return everything that the next decisions depend on except time."""
        queues = tuple(queue.signature() for tree in self.trees for queue in tree.queues)
        return queues, tuple(sorted((rank, scan.tried) for rank, scan in self.scans.items()))

    def look_for_loop(self, coming: Iterable[Instant], now: Instant) -> None:
        """Compare states once somebody is preempted again and again: the same state twice comes forever.

        `coming` are the moments at which something else will happen.
        """
        self.suspicious = False
        ends = sorted(end - now for end, number, rank in self.ends if self.number_of[rank] == number)
        looks = sorted((look - now, number) for look, number, _ in self.looks)
        state = (*self.signature(), tuple(ends), tuple(look for look, _ in looks), tuple(at - now for at in coming))
        if state in self.seen:
            self.loop = tuple(rank for rank, times in self.preemptions.items() if times >= SUSPICIOUS)
        self.seen.add(state)
