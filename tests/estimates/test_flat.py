"""Futures on plain numbers: the same starts as `taskgov.futures`, in whatever it accepts."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from statistics import median, stdev
from typing import TYPE_CHECKING, NamedTuple

import pytest

from taskgov.estimates.arrivals import DAY, Coming, Past
from taskgov.estimates.flat import playing
from taskgov.estimates.flat.luck import FIRST, normal, seconds_of, uniform
from taskgov.estimates.flat.luck import SECOND as SECOND_SEED
from taskgov.estimates.flat.standing import SUSPICIOUS
from taskgov.estimates.flat.tables import Play
from taskgov.estimates.flat.tabling import Lasted, came_of, flat, lasting_of
from taskgov.estimates.flat.waiting import seeds_of
from taskgov.estimates.queue_now import Present, Scene
from taskgov.estimates.requests import Arrival, Ran, Request
from taskgov.estimates.run_times import RunTimes
from taskgov.futures import Job, Jobs, replay
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import PodSet, Quota, Workload
from tests.futures.worlds import Family, draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.estimates.flat.standing import State
    from taskgov.estimates.flat.tabling import Flat

NOW = 1_000_000.0
TEAMS = 5


class World(NamedTuple):
    scene: Scene
    run_times: RunTimes
    past: Past


def newcomer(coming: Coming, number: int, at: int) -> Workload:
    place = int(coming.request.team.removeprefix("t"))
    pods = PodSet("main", 1, (("gpu", coming.request.gpus),))
    priority = coming.request.gpus % 2
    return Workload(f"ns{place}", f"z{number:06}", "door", (pods,), priority, created=at, uid=f"z{number:06}")


def world(seed: int) -> World:
    """Return a drawn world an hour after its jobs came, with arrivals of three weeks."""
    setting, jobs = draw(seed, Family(hyperpod=True, running=0.5, jobs=40, queues=TEAMS))
    queues = tuple(replace(queue, quotas=_lent(queue.quotas)) for queue in setting.queues)
    setting = replace(setting, queues=queues, config=replace(setting.config, fair_sharing=True))
    chance = random.Random(seed)  # noqa: S311 -- the same each time, no secret
    now = round(NOW * SECOND)
    present = []
    for job in jobs.jobs:
        gpus = max(1, sum(amount for pod_set in job.workload.pod_sets for _, amount in pod_set.requests))
        team = f"t{job.workload.namespace.removeprefix('ns')}"
        held = None if job.held is None else job.held._replace(since=now - chance.randint(1, 40) * SECOND)
        present.append(Present(job.workload, Request(team, gpus), held, 1.0 if held else 0.0))
    requests = [Request(f"t{place}", gpus) for place in range(len(setting.queues)) for gpus in (1, 2)]
    runs = [Ran(chance.choice(requests), 0.0, chance.uniform(1, 3000), ended=True) for _ in range(200)]
    came = [Arrival(chance.choice(requests), NOW - chance.uniform(0, 21) * DAY) for _ in range(6000)]
    past = Past(came, NOW, ((NOW - 22 * DAY, NOW),))
    return World(Scene(now, setting, present, newcomer), RunTimes(runs), past)


def _lent(quotas: Mapping[str, Quota]) -> dict[str, Quota]:
    """Return quotas all of which may be lent."""
    return {place: replace(quota, lending_limit=None) for place, quota in quotas.items()}


def differing(found: World, seed: int) -> str:
    """Play a future of all trees and replay its jobs; return `same`, `loop` or `refused`, or fail."""
    scene, run_times, past = found
    waiting = [place for place, job in enumerate(scene.present) if job.held is None]
    trees = flat(scene, waiting, past.requests)
    if trees is None:
        return "refused"
    for tree in trees:
        lasting, prospect, of_request = lasting_of(tree, scene, run_times, past.requests, 0.15)
        came = came_of(tree, past, 3 * 3600.0, of_request)
        play = Play(scene.now, scene.now + 3 * 3600 * SECOND)
        waits = [int(since < 0) for since in tree.here.since]
        here = replace(tree.here, prospect=prospect, watched=waits)
        state = playing.future(tree.terms, here, lasting, came, play, [1.0 + seed, 2.0 + seed])
        if state.counts[SUSPICIOUS]:
            return "loop"
        jobs = [_job(found.scene, tree, state, place) for place in range(len(state.kind))]
        watched = [place for place, waiting in enumerate(waits) if waiting]
        starts = replay(scene.setting, Jobs(jobs), play.until, watched=watched)
        if starts.loop:
            return "loop"
        first = {job: at for job, at in starts.first().items() if jobs[job].held is None}
        assert {job: at for job, at in enumerate(state.first) if at >= 0 and jobs[job].held is None} == first
    return "same"


def _job(scene: Scene, tree: Flat, state: State, place: int) -> Job:
    """Return a job of a future as `taskgov.futures` takes it."""
    run = state.run[place] if state.run[place] >= 0 else SECOND
    if place < len(tree.jobs):
        job = scene.present[tree.jobs[place]]
        left = None if job.held is None else max(run - (scene.now - job.held.since), SECOND)
        return Job(job.workload, scene.now, run, job.held, left)
    request = next(request for request, kind in tree.kinds.items() if kind == state.kind[place])
    return Job(newcomer(Coming(request, 0.0), place, state.came[place]), state.came[place], run)


@pytest.mark.long
def test_starts_are_those_of_the_replay() -> None:
    found = Counter(differing(world(seed), seed) for seed in range(150))
    assert found["same"] > 60, found


@pytest.mark.estimates
def test_starts_are_those_of_the_replay_in_hundreds_of_worlds() -> None:
    found = Counter(differing(world(seed), seed) for seed in range(1000, 1600))
    assert found["same"] > 400, found


def test_numbers_by_chance_are_uniform_and_normal() -> None:
    luck = [12345.0, 67890.0]
    drawn = [uniform(luck) for _ in range(20_000)]
    assert 0 < min(drawn) < max(drawn) < 1
    assert all(abs(sum(value < part for value in drawn) / 20_000 - part) < 0.015 for part in (0.1, 0.5, 0.9))
    normals = sorted(normal(luck) for _ in range(20_000))
    assert abs(normals[10_000]) < 0.03
    assert 1.2 < normals[18_000] < 1.36


def test_each_second_future_mirrors_the_one_before() -> None:
    chance = random.Random(6)  # noqa: S311 -- the same each time, no secret
    seeds = seeds_of(101, chance)
    luck = [[seeds[place], seeds[place + 1]] for place in range(0, len(seeds), 2)]
    assert len(luck) == 101
    assert len(set(map(tuple, luck))) == 101
    assert all(0 < first < FIRST and 0 < second < SECOND_SEED for first, second in luck)
    for one, other in zip(luck[:-1:2], luck[1::2], strict=True):
        pairs = [(normal(one), normal(other)) for _ in range(200)]
        assert max(abs(a + b) for a, b in pairs) < 0.001
        assert max(a for a, _ in pairs) > 1 > -1 > min(a for a, _ in pairs)


def test_medians_of_two_sets_of_futures_differ_less_with_mirrors() -> None:
    """A job waits for the second of three running ones: the median of 24 futures is compared over 200 sets."""

    def spread(*, mirrored: bool) -> float:
        chance = random.Random(7)  # noqa: S311 -- the same each time, no secret
        medians = []
        for _ in range(200):
            seeds = seeds_of(24, chance) if mirrored else [part for _ in range(24) for part in seeds_of(1, chance)]
            futures = ([seeds[place], seeds[place + 1]] for place in range(0, len(seeds), 2))
            medians.append(median(median(normal(luck) for _ in range(3)) for luck in futures))
        return stdev(medians)

    assert spread(mirrored=True) < 0.5 * spread(mirrored=False)


def test_run_times_are_those_of_the_prospect() -> None:
    chance = random.Random(5)  # noqa: S311 -- the same each time, no secret
    request = Request("t0", 1)
    runs = RunTimes(Ran(request, 0.0, chance.expovariate(1 / 3000), ended=chance.random() < 0.8) for _ in range(60))
    for age in (0.0, 500.0, 20_000.0, 1e9):
        table = Lasted(runs, 0.0)
        row = table.row(request, age, None)
        lasting, luck, same = table.lasting(), [FIRST // 3, 77], [FIRST // 3, 77]
        prospect = runs.prospect(request, age)
        for _ in range(1000):
            assert seconds_of(lasting, row, 0.0, luck) == prospect.seconds(normal(same))
