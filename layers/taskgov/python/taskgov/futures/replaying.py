"""Replay jobs under a setting: moment by moment, and in each moment cycle by cycle until nobody is in line.

Moments are those of `taskgov_explain.simulation.Simulation`.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from taskgov.futures.cycling import Cycles
from taskgov.futures.standing import NOT_RUNNING
from taskgov.futures.starts import Starts, Stay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.futures.jobs import Jobs
    from taskgov.futures.queues import Tree
    from taskgov.futures.setting import Change, Setting
    from taskgov.scheduling.instants import Instant

_NEVER: Final = 2**63 - 1


def replay(setting: Setting, jobs: Jobs, until: Instant | None = None, changes: Sequence[Change] = ()) -> Starts:
    """Return who starts, is preempted and ends when, until nothing more can happen, or after all moments to `until`.

    For what `accepts` has reasons against the answer means nothing.
    """
    return _Replay(setting, jobs, changes).run(_NEVER if until is None else until)


class _Replay(Cycles):
    """Lets time pass."""

    def __init__(self, setting: Setting, jobs: Jobs, changes: Sequence[Change]) -> None:
        super().__init__(setting, jobs)
        self.changes = sorted(changes, key=lambda change: change.at)
        self.changes.reverse()  # the next is the last; of one moment they come in the order in which they were given

    def run(self, until: Instant) -> Starts:
        """Let time pass."""
        arrivals, arrived, now = self.jobs.arrivals, 0, 0
        ends, looks = self.ends, self.looks
        while not self.loop:
            while ends and self.number_of[ends[0][2]] != ends[0][1]:
                heappop(ends)  # preempted meanwhile
            coming = arrivals[arrived][0] if arrived < len(arrivals) else _NEVER
            changing = self.changes[-1].at if self.changes else _NEVER
            due = min(coming, changing, ends[0][0] if ends else _NEVER, looks[0][0] if looks else _NEVER)
            if due > until or due == _NEVER:
                break
            now = due
            while ends and ends[0][0] == now:
                _, number, rank = heappop(ends)
                if self.number_of[rank] == number:
                    self._end(rank, now)
            while arrived < len(arrivals) and arrivals[arrived][0] == now:
                self._arrive(arrivals[arrived][1], now)
                arrived += 1
            while self.changes and self.changes[-1].at == now:
                self.preemptions.clear()
                self.count.change(self.changes.pop().queues)
            while looks and looks[0][0] == now:
                tree = heappop(looks)[2]
                tree.due = False
                self._look_again(tree)
            self._moment(now)
        return self._starts(now)

    def _starts(self, now: Instant) -> Starts:
        index = self.jobs.index
        stays = [stay._replace(job=index[stay.job]) for stay in self.stays]
        stays += [
            Stay(index[rank], self.started[rank], None, preempted=False)
            for rank, entry in enumerate(self.entry_of)
            if entry is not NOT_RUNNING
        ]
        return Starts(stays, now, tuple(sorted(index[rank] for rank in self.loop)))

    def _arrive(self, rank: int, now: Instant) -> None:
        self.preemptions.clear()
        entry, kind = self.entry_of[rank], self.kind_of[rank]
        if entry is not NOT_RUNNING:
            job = self.jobs.jobs[self.jobs.index[rank]]
            self.begin(rank, now, job.run_time if job.remaining is None else job.remaining)
        else:
            kind.queue.push(rank, kind)

    def _end(self, rank: int, now: Instant) -> None:
        self.preemptions.clear()
        self.leave(rank)
        self.stays.append(Stay(rank, self.started[rank], now, preempted=False))

    def _moment(self, now: Instant) -> None:
        for tree in self.trees:
            self._notice(tree, now)
            while not self.loop and any(queue.active and queue.open for queue in tree.queues):
                self.cycle(tree, now)
                self._notice(tree, now)

    def _notice(self, tree: Tree, now: Instant) -> None:
        """Give a tree with new room another look: at once, or when its batch is due."""
        if tree.notified and not self.batch:
            self._look_again(tree)
        elif tree.notified and not tree.due:
            tree.due = True
            self.number += 1
            heappush(self.looks, (now + self.batch, self.number, tree))

    def _look_again(self, tree: Tree) -> None:
        tree.notified = False
        for queue in tree.queues:
            queue.release()
