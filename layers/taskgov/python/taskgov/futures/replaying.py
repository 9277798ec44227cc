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
    from collections.abc import Callable, Collection, Iterator, Sequence

    from taskgov.futures.jobs import Jobs
    from taskgov.futures.queues import Tree
    from taskgov.futures.setting import Change, Setting
    from taskgov.scheduling.instants import Instant

_NEVER: Final = 2**63 - 1


def replay(
    setting: Setting,
    jobs: Jobs,
    until: Instant | None = None,
    changes: Sequence[Change] = (),
    watched: Collection[int] = (),
    goes_on: Callable[[], bool] | None = None,
) -> Starts:
    """Return who starts, is preempted and ends when, until nothing more can happen, or after all moments to `until`.

    With `watched` (indexes of jobs that wait) it is over after the moment at which the last of them started for the
    first time; with `goes_on`, before the first moment at which that returns false. For what `accepts` has reasons
    against the answer means nothing.
    """
    return _Replay(setting, jobs, changes, watched).run(_NEVER if until is None else until, goes_on)


class _Replay(Cycles):
    """Lets time pass."""

    def __init__(self, setting: Setting, jobs: Jobs, changes: Sequence[Change], watched: Collection[int]) -> None:
        super().__init__(setting, jobs)
        wanted = frozenset(watched)
        self.watched = {rank for rank, index in enumerate(jobs.index) if index in wanted} if wanted else None
        self.changes = sorted(changes, key=lambda change: change.at)
        self.arrived = 0
        self.circling: list[Tree] = []
        """Trees in which searches of flavors go round until something changes."""
        self.changes.reverse()  # the next is the last; of one moment they come in the order in which they were given

    def run(self, until: Instant, goes_on: Callable[[], bool] | None = None) -> Starts:
        """Let time pass."""
        arrivals, ends, looks, now = self.jobs.arrivals, self.ends, self.looks, 0
        while not self.loop and (goes_on is None or goes_on()):
            while ends and self.number_of[ends[0][2]] != ends[0][1]:
                heappop(ends)  # preempted meanwhile
            due = arrivals[self.arrived][0] if self.arrived < len(arrivals) else _NEVER
            if self.changes:
                due = min(due, self.changes[-1].at)
            if ends and ends[0][0] < due:
                due = ends[0][0]
            if looks and looks[0][0] < due:
                due = looks[0][0]
            if due > until or due == _NEVER:
                break
            now = due
            self._moment(self._due(now), now)
            if self.watched is not None and not self.watched:
                break
        return self._starts(now)

    def _due(self, now: Instant) -> dict[Tree, None]:
        """Do what is due: arrivals, ends, changes, then checks of the inadmissible; return whom it concerns.

        A running job that has no time left ends as it arrives. Ends of jobs that were preempted meanwhile may be left
        among them.
        """
        arrivals, ends, looks = self.jobs.arrivals, self.ends, self.looks
        touched: dict[Tree, None] = {}
        while self.arrived < len(arrivals) and arrivals[self.arrived][0] == now:
            touched[self._arrive(arrivals[self.arrived][1], now)] = None
            self.arrived += 1
        while ends and ends[0][0] == now:
            _, number, rank = heappop(ends)
            if self.number_of[rank] == number:
                touched[self._end(rank, now)] = None
        while self.changes and self.changes[-1].at == now:
            self.news()
            self.taking.forget()
            self.count.change(self.changes.pop().queues)
            touched.update(dict.fromkeys(self.trees))
        while looks and looks[0][0] == now:
            tree = heappop(looks)[2]
            tree.due = False
            self._look_again(tree)
            touched[tree] = None
        return touched

    def _starts(self, now: Instant) -> Starts:
        index = self.jobs.index
        new = tuple.__new__  # a third of the time of the constructor
        stays = [new(Stay, (index[rank], start, end, preempted)) for rank, start, end, preempted in self.stays]
        stays += [
            Stay(index[rank], self.started[rank], None, preempted=False)
            for rank, entry in enumerate(self.entry_of)
            if entry is not NOT_RUNNING
        ]
        return Starts(stays, now, tuple(sorted(index[rank] for rank in self.loop)))

    def _arrive(self, rank: int, now: Instant) -> Tree:
        self.news()
        entry, kind = self.entry_of[rank], self.kind_of[rank]
        if entry is not NOT_RUNNING:
            self.begin(rank, now, self.jobs.remaining[rank])
        else:
            kind.queue.push(rank, kind)
        return kind.queue.tree

    def _end(self, rank: int, now: Instant) -> Tree:
        self.news()
        self.stays.append((rank, self.started[rank], now, False))
        return self.leave(rank)

    def _moment(self, touched: dict[Tree, None], now: Instant) -> None:
        """Run cycles until nobody is in line, or only those for whom no search of flavors leads anywhere."""
        if self.circling:
            touched.update(dict.fromkeys(self.circling))
            self.circling = []
        for tree in touched:
            if tree.notified:
                self._notice(tree, now)
        active = [tree for tree in touched if tree.active]
        idle_states: set[object] = set()
        while active:
            self.number_of_cycle += 1
            self.idle = self.all_stay = True
            for tree in active:
                self.cycle(tree, now)
                if tree.notified:
                    self._notice(tree, now)
            if self.suspicious:
                self.look_for_loop(self._coming(), now)
                if self.loop:
                    return
            active = [tree for tree in active if tree.active]
            if active and self.idle and self.all_stay:
                state = self.signature()
                if state in idle_states:
                    self.circling = active
                    return
                idle_states.add(state)
            elif idle_states:
                idle_states = set()

    def _coming(self) -> Iterator[Instant]:
        yield from (at for at, _ in self.jobs.arrivals[self.arrived :])
        yield from (change.at for change in self.changes)

    def _notice(self, tree: Tree, now: Instant) -> None:
        """Reconsider a tree with new room: at once, or when its batch is due."""
        if not self.batch:
            self._look_again(tree)
        elif not tree.due:
            tree.due = True
            self.number += 1
            heappush(self.looks, (now + self.batch, self.number, tree))

    def _look_again(self, tree: Tree) -> None:
        tree.notified = False
        for queue in tree.marked:
            queue.release()
        tree.marked.clear()
