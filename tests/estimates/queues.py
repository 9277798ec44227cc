"""Made-up queues: one team, Poisson arrivals, run times of a known law, and what a record has of them."""

from __future__ import annotations

import random
from bisect import bisect_right
from enum import StrEnum
from math import exp, sqrt
from typing import TYPE_CHECKING

from taskgov.advice.candidates import TeamTerms, Terms
from taskgov.advice.playing import FLAVOR, setting_of
from taskgov.estimates.arrivals import Past
from taskgov.estimates.batches import BETWEEN, BETWEEN_ADDS, TOGETHER
from taskgov.estimates.queue_now import Present, Scene
from taskgov.estimates.requests import Arrival, Ran, Request
from taskgov.estimates.run_times import RunTimes
from taskgov.futures import Held, Job, Jobs, Setting, replay
from taskgov.hyperpod.names import cluster_queue_of, local_queue_of, namespace_of
from taskgov.quantities import GPU
from taskgov.scheduling.instants import SECOND, Instant
from taskgov.scheduling.objects import Admission, PodSet, PodSetAdmission, Workload

if TYPE_CHECKING:
    from taskgov.estimates.arrivals import Coming

TEAM = "team-a"
GPUS = 6
MEAN = 3600.0
SPAN = 3 * 86400.0


def setting(gpus: int = GPUS, team: str = TEAM) -> Setting:
    return setting_of(Terms(((team, TeamTerms(gpus, None, 1, never=True)),), fair=False), 0)


def workload(name: str, at: float, gpus: int = 1, team: str = TEAM) -> Workload:
    pods = PodSet("main", 1, ((GPU, gpus),))
    moment = round(at * SECOND)
    return Workload(namespace_of(team), name, local_queue_of(team), (pods,), created=moment, uid=name)


def held(since: float, gpus: int = 1, team: str = TEAM) -> Held:
    usage = PodSetAdmission("main", 1, {GPU: FLAVOR}, {GPU: gpus})
    return Held(Admission(cluster_queue_of(team), (usage,)), round(since * SECOND))


def newcomer(coming: Coming, number: int, at: Instant) -> Workload:
    return workload(f"n{number:06}", at / SECOND, coming.request.gpus, coming.request.team)


class Kind(StrEnum):
    """What run times are: independent of one another, or those of batches that are correlated."""

    EXPONENTIAL = "exponential run times"
    LOGNORMAL = "lognormal run times"
    BATCHES = "batches"


def rows_of(kind: Kind, chance: random.Random) -> list[tuple[float, float]]:
    """Return arrivals and run times in seconds. Load is 0.97 of the GPUs (0.85 with batches, of 4 jobs on average)."""
    at, shared, rows = 0.0, chance.gauss(0, 1), list[tuple[float, float]]()
    while at < SPAN:
        if kind is Kind.BATCHES:
            at += chance.expovariate(0.85 * GPUS / MEAN / 4)
            shared, size = BETWEEN * shared + BETWEEN_ADDS * chance.gauss(0, 1), 1
            while chance.random() < 0.75:
                size += 1
            for number in range(size):
                score = sqrt(TOGETHER) * shared + sqrt(1 - TOGETHER) * chance.gauss(0, 1)
                rows.append((at + 5.0 * number, max(1.0, MEAN * exp(score - 0.5))))
        else:
            at += chance.expovariate(0.97 * GPUS / MEAN)
            lognormal = kind is Kind.LOGNORMAL
            seconds = MEAN * chance.lognormvariate(-0.5, 1.0) if lognormal else chance.expovariate(1 / MEAN)
            rows.append((at, max(1.0, seconds)))
    return sorted(rows)


class Queue:
    """A queue that was played."""

    def __init__(self, seed: int, kind: Kind = Kind.EXPONENTIAL) -> None:
        rows = rows_of(kind, random.Random(seed))  # noqa: S311 -- the same each time, no secret
        self.rows = rows
        jobs = Jobs(
            Job(workload(f"j{place:06}", came), round(came * SECOND), round(seconds * SECOND))
            for place, (came, seconds) in enumerate(rows)
        )
        starts = replay(setting(), jobs).first()
        self.start = [starts[place] / SECOND for place in range(len(rows))]

    def waiting_after(self, moment: float) -> int | None:
        """Return the first job from a moment on that does not start at once."""
        for place in range(bisect_right(self.rows, (moment, 0.0)), len(self.rows)):
            if self.start[place] > self.rows[place][0] + 1:
                return place
        return None

    def scene(self, at: float) -> tuple[list[int], Scene]:
        places, present = [], []
        for place, ((came, seconds), start) in enumerate(zip(self.rows, self.start, strict=True)):
            if came > at or start + seconds <= at:
                continue
            runs = start <= at
            places.append(place)
            present.append(
                Present(
                    workload(f"j{place:06}", came),
                    Request(TEAM, 1),
                    held(start) if runs else None,
                    at - start if runs else 0,
                )
            )
        return places, Scene(round(at * SECOND), setting(), present, newcomer)

    def run_times(self, at: float) -> RunTimes:
        return RunTimes(
            Ran(Request(TEAM, 1), start, min(seconds, at - start), ended=start + seconds <= at)
            for (_, seconds), start in zip(self.rows, self.start, strict=True)
            if start <= at
        )

    def past(self, at: float) -> Past:
        return Past([Arrival(Request(TEAM, 1), came) for came, _ in self.rows if came <= at], at)
