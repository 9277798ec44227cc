"""Simulate when a job starts in many futures of the queue. Each future has its own run times and arrivals.

Within a future the run times of jobs that are submitted together are correlated (`taskgov.estimates.batches`),
because a team runs one experiment many times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from taskgov.estimates.batches import TOGETHER
from taskgov.estimates.enough import CHECKS, is_enough
from taskgov.estimates.flat.waiting import Futures, flat_waits
from taskgov.estimates.random_run_times import RandomRunTimes
from taskgov.futures import Job, Jobs, replay
from taskgov.scheduling.instants import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskgov.estimates.arrivals import Coming, Past
    from taskgov.estimates.queue_now import Present, Scene
    from taskgov.estimates.requests import Chance
    from taskgov.estimates.run_times import RunTimes
    from taskgov.futures import Setting, Starts
    from taskgov.scheduling.instants import Instant

HORIZON: Final = 7 * 86400.0
"""Length of a future, in seconds. A start beyond it counts as infinite."""
STAGES: Final = (1 / 56, 1 / 14, 1 / 4, 1.0)
"""Parts of the horizon up to which a future is replayed, one after the other, until the job has started."""


class Player(Protocol):
    """Replays jobs under a setting until the watched jobs (indexes) have started, or `goes_on` returns false."""

    def __call__(
        self, setting: Setting, jobs: Jobs, until: Instant, watched: tuple[int, ...], goes_on: Callable[[], bool]
    ) -> Starts:
        """Return the start of each job."""
        ...


def fast(setting: Setting, jobs: Jobs, until: Instant, watched: tuple[int, ...], goes_on: Callable[[], bool]) -> Starts:
    """Replay with `taskgov.futures`, which supports only what its `accepts` allows."""
    return replay(setting, jobs, until, watched=watched, goes_on=goes_on)


@dataclass(frozen=True, slots=True)
class Drawing:
    """How futures are drawn: number, length in seconds, correlation of a batch's run times, and replay function."""

    count: int = 100
    horizon: float = HORIZON
    together: float = TOGETHER
    player: Player = fast


_USUAL: Final = Drawing()


def waits_of(
    scene: Scene, watched: int, run_times: RunTimes, past: Past, chance: Chance, drawing: Drawing = _USUAL
) -> list[float]:
    """Return the waits of a job of the scene (its index), one for each future, in seconds from now, sorted.

    A wait is infinite where the job does not start within the horizon.
    """
    return waits_of_each(scene, (watched,), run_times, past, chance, drawing)[0]


def waits_of_each(
    scene: Scene, watched: Sequence[int], run_times: RunTimes, past: Past, chance: Chance, drawing: Drawing = _USUAL
) -> list[list[float]]:
    """Return the waits of several jobs of the scene (indexes), as `waits_of` does, all from the same futures."""
    found = waits_together(scene, watched, run_times, past, chance, drawing)
    return [found.waits[job] for job in watched]


class Together(NamedTuple):
    """The results of one set of futures for many jobs of a scene, by index."""

    waits: dict[int, list[float]]
    """The waits of each job, one for each future that watched it, in seconds from now, sorted; infinite beyond the
    horizon."""
    after: dict[int, Counter[int]]
    """For each job, the present job of its cohort that ends last before its start, and in how many futures."""
    futures: int


def waits_together(
    scene: Scene,
    watched: Sequence[int],
    run_times: RunTimes,
    past: Past,
    chance: Chance,
    drawing: Drawing = _USUAL,
    goes_on: Callable[[], bool] = lambda: True,
) -> Together:
    """Return the waits of many jobs from one set of futures: up to `count`, while `goes_on` returns true.

    One future of a long queue may take minutes, so the time ends a future too; one that is cut short is left out.
    Jobs that start late have fewer waits than there are futures (`taskgov.estimates.enough`).
    """
    if drawing.player is fast:
        futures = Futures(drawing.count, drawing.horizon, drawing.together)
        found_flat = flat_waits(scene, watched, past, chance, futures, run_times, goes_on)
        if found_flat is not None:
            return Together(found_flat.of_job, found_flat.after, found_flat.futures)
    luck = RandomRunTimes(chance, drawing.together, run_times, scene.present)
    waits: dict[int, list[float]] = {job: [] for job in watched}
    after: dict[int, Counter[int]] = {job: Counter() for job in watched}
    cohorts = _cohorts(scene)
    number, stage, active = 0, 0, tuple(watched)
    while number < drawing.count and goes_on():
        if number in CHECKS:
            active = tuple(job for job in active if not is_enough(waits[job]))
        if not active:
            break
        coming = past.again(drawing.horizon, chance)
        future = _Future(scene, coming, luck)
        while True:
            until = scene.now + round(STAGES[stage] * drawing.horizon * SECOND)
            found = drawing.player(scene.setting, Jobs(future.until(until)), until, active, goes_on)
            if not goes_on():
                break
            first = found.first()
            if stage == len(STAGES) - 1 or all(job in first for job in active):
                break
            stage += 1
        if not goes_on():
            break
        for job in active:
            waits[job].append((first[job] - scene.now) / SECOND if job in first else inf)
        _count_ends(found, {job: first[job] for job in active if job in first}, cohorts, after)
        number += 1
    return Together({job: sorted(seen) for job, seen in waits.items()}, after, number)


def _cohorts(scene: Scene) -> list[str]:
    """Return the cohort of each job. A queue without a cohort counts as its own."""
    queues = {queue.name: queue.cohort or f"queue {queue.name}" for queue in scene.setting.queues}
    doors = {(door.namespace, door.name): queues.get(door.cluster_queue, "") for door in scene.setting.doors}
    return [doors.get((job.workload.namespace, job.workload.queue), "") for job in scene.present]


def _count_ends(found: Starts, first: dict[int, Instant], cohorts: list[str], after: dict[int, Counter[int]]) -> None:
    """Count, for each job that started, the present job of its cohort that ended last before its start, if any."""
    ends: dict[str, list[tuple[Instant, int]]] = {}
    for stay in found.stays:
        if stay.end is not None and not stay.preempted and stay.job < len(cohorts):
            ends.setdefault(cohorts[stay.job], []).append((stay.end, stay.job))
    for rows in ends.values():
        rows.sort()
    for job, start in first.items():
        rows = ends.get(cohorts[job], [])
        place = bisect_right(rows, (start, len(cohorts)))
        if place:
            after[job][rows[place - 1][1]] += 1


class _Future:
    """One random future: the run times of all jobs, and the arrivals."""

    def __init__(self, scene: Scene, arrivals: Iterator[Coming], luck: RandomRunTimes) -> None:
        self._scene, self._arrivals, self._luck = scene, arrivals, luck
        self._jobs = [_job(*pair, scene.now) for pair in zip(scene.present, luck.begin(), strict=True)]
        self._next = next(arrivals, None)
        self._number = 0

    def until(self, moment: Instant) -> list[Job]:
        """Return the present jobs and those that arrive up to a moment. A later call returns the same jobs and more."""
        start, coming = self._scene.now, self._next
        while coming is not None and (at := start + round(coming.after * SECOND)) <= moment:
            workload = self._scene.newcomer(coming, self._number, at)
            if workload is not None:
                seconds = self._luck.seconds(coming.request, coming.batch)
                self._jobs.append(Job(workload, at, round(seconds * SECOND)))
            self._number += 1
            coming = self._next = next(self._arrivals, None)
        return self._jobs


def _job(job: Present, seconds: float, now: Instant) -> Job:
    """Return a present job as a future begins with it. `seconds` is its total run time."""
    whole = max(round(seconds * SECOND), SECOND)
    if job.held is None:
        return Job(job.workload, now, whole)
    left = max(whole - (now - job.held.since), SECOND)
    return Job(job.workload, now, whole, job.held, left)
