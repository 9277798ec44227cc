"""Simulate how long jobs wait in many futures of flat queues, and whose end lets them start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.enough import CHECKS, FEWEST, is_enough
from taskgov.estimates.flat import playing
from taskgov.estimates.flat.luck import FIRST, SECOND
from taskgov.estimates.flat.tables import Play
from taskgov.estimates.flat.tabling import came_of, flat, lasting_of
from taskgov.scheduling import instants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskgov.estimates.arrivals import Past
    from taskgov.estimates.flat.tables import Came, Here, Lasting
    from taskgov.estimates.flat.tabling import Flat
    from taskgov.estimates.queue_now import Scene
    from taskgov.estimates.requests import Chance
    from taskgov.estimates.run_times import RunTimes

CHUNK: Final = 4
"""Number of futures between two checks of the time."""
SOME: Final = 4
"""A future in which jobs may preempt one another without end is left out, if it is at most one of so many."""


@dataclass(frozen=True, slots=True)
class Futures:
    """How futures are drawn: number, length in seconds, and correlation of the run times of a batch."""

    count: int
    horizon: float
    together: float


class Waits(NamedTuple):
    """The results of many futures, by index in the scene."""

    of_job: dict[int, list[float]]
    """The waits of each job, one for each future that watched it, in seconds, sorted; infinite if it does not start."""
    after: dict[int, Counter[int]]
    """The present job that had ended last before its start, and in how many futures."""
    futures: int


def flat_waits(
    scene: Scene,
    watched: Sequence[int],
    past: Past,
    chance: Chance,
    futures: Futures,
    run_times: RunTimes,
    goes_on: Callable[[], bool],
) -> Waits | None:
    """Return the waits of each watched job of the scene (its index); None if only `taskgov.futures` can simulate it.

    Draws up to `count` futures, while `goes_on` returns true.
    """
    found = flat(scene, watched, past.requests)
    if found is None:
        return None
    trees = [_Tree(tree, scene, past, run_times, futures) for tree in found]
    done = 0
    while done < futures.count and goes_on() and any(tree.asked for tree in trees):
        count = min(CHUNK, futures.count - done, *(check - done for check in CHECKS if done < check))
        for tree in trees:
            if tree.asked and not tree.play(count, chance):
                return None
        done += count
        if done in CHECKS:
            for tree in trees:
                tree.leave_out()
    of_job: dict[int, list[float]] = {}
    after: dict[int, Counter[int]] = {}
    for tree in trees:
        for place, waits in tree.waits.items():
            of_job[tree.index[place]] = sorted(waits)
            after[tree.index[place]] = tree.after[place]
    return Waits({job: of_job[job] for job in watched}, {job: after[job] for job in watched}, done)


def seeds_of(count: int, chance: Chance) -> list[float]:
    """Return two seeds for each future. Every second future mirrors the one before (antithetic variates).

    Where one draws a long run time, the other draws a short one, so their median varies less from one set of futures to
    the next. The generators multiply: from the negative of a seed come the negatives of all its numbers.
    """
    seeds: list[float] = []
    for number in range(count):
        if number % 2:
            seeds += [FIRST - seeds[-2], SECOND - seeds[-1]]
        else:
            seeds += [1.0 + int(chance.random() * (most - 1)) for most in (FIRST, SECOND)]
    return seeds


class _Tree:
    """The futures of one tree so far."""

    def __init__(self, tree: Flat, scene: Scene, past: Past, run_times: RunTimes, futures: Futures) -> None:
        self.terms, self.index, self.now = tree.terms, tree.jobs, scene.now
        self.lasting: Lasting
        self.lasting, prospect, of_request = lasting_of(tree, scene, run_times, past.requests, futures.together)
        self.came: Came = came_of(tree, past, futures.horizon, of_request)
        self.until = Play(scene.now, scene.now + round(futures.horizon * instants.SECOND))
        self.here: Here = replace(tree.here, prospect=prospect)
        self.asked = [place for place, watched in enumerate(self.here.watched) if watched]
        self.waits: dict[int, list[float]] = {place: [] for place in self.asked}
        self.after: dict[int, Counter[int]] = {place: Counter() for place in self.asked}
        self.played = self.left_out = 0

    def play(self, count: int, chance: Chance) -> bool:
        """Simulate futures. Returns False if jobs may preempt one another without end in more than one of `SOME`."""
        seeds = seeds_of(count, chance)
        first, cause = [0] * (count * len(self.asked)), [0] * (count * len(self.asked))
        playing.many(self.terms, self.here, self.lasting, self.came, self.until, seeds, self.asked, first, cause)
        self.played += count
        self.left_out += first[:: len(self.asked)].count(playing.ENDLESS)
        for number, start in enumerate(first):
            if start != playing.ENDLESS:
                place = self.asked[number % len(self.asked)]
                self.waits[place].append(inf if start < 0 else (start - self.now) / instants.SECOND)
                if start >= 0 and cause[number] >= 0:
                    self.after[place][self.index[cause[number]]] += 1
        return self.left_out * SOME <= max(self.played, FEWEST)

    def leave_out(self) -> None:
        """Watch only the jobs that need more futures."""
        self.asked = [place for place in self.asked if not is_enough(self.waits[place])]
        watched = [0] * len(self.here.kind)
        for place in self.asked:
            watched[place] = 1
        self.here = replace(self.here, watched=watched)
