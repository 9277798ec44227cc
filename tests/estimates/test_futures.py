"""Futures: the same seed gives the same, what is fixed is exact, and a bad history gives wider estimates."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.arrivals import BLOCK, DAY, Past
from taskgov.estimates.drawing import Drawing, fast, waits_of, waits_together
from taskgov.estimates.enough import FEW, FEWEST, LATE, is_enough
from taskgov.estimates.flat import playing
from taskgov.estimates.quantiles import estimate_of
from taskgov.estimates.queue_now import Present, Scene
from taskgov.estimates.requests import Arrival, Ran, Request
from taskgov.estimates.run_times import RunTimes
from taskgov.futures import Job, Jobs, replay
from taskgov.scheduling.instants import SECOND
from tests.estimates.queues import TEAM, Queue, held, newcomer, setting, workload

NOBODY = Past([], 0.0)


def chance(seed: int = 1) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- the same each time, no secret


def one_ahead(ran: float = 100.0, *, fixed: float | None = None) -> Scene:
    """Return a queue of one GPU: a job that has run so long, and one that waits."""
    now = 10_000.0
    runs = Present(workload("runs", 0.0), Request(TEAM, 1), held(now - ran), ran, fixed)
    waits = Present(workload("waits", now), Request(TEAM, 1))
    return Scene(round(now * SECOND), setting(1), (runs, waits), newcomer)


def flat(scene: Scene) -> Scene:
    """Return the same queue with fair sharing, so that its futures are played on plain numbers."""
    config = replace(scene.setting.config, fair_sharing=True)
    return replace(scene, setting=replace(scene.setting, config=config))


def history(seconds: list[float], team: str = TEAM) -> RunTimes:
    return RunTimes(Ran(Request(team, 1), 0.0, length, ended=True) for length in seconds)


def test_a_job_whose_run_time_somebody_said_ends_then_in_all_futures() -> None:
    assert waits_of(one_ahead(fixed=400.0), 1, history([9.0] * 60), NOBODY, chance(), Drawing(10)) == [300.0] * 10


def test_a_future_that_time_cuts_short_is_left_out() -> None:
    replayed: Any = partial(fast)  # not the shortcut for flat queues
    played = set()
    for moments in range(1, 30):
        left = iter([True] * moments)
        run_times, drawing = history([9.0] * 60), Drawing(3, player=replayed)
        goes_on = partial(next, left, False)
        found = waits_together(one_ahead(fixed=400.0), [1], run_times, NOBODY, chance(), drawing, goes_on)
        assert found.waits == {1: [300.0] * found.futures}
        played.add(found.futures)
    assert played == {0, 1, 2, 3}


def test_the_wait_for_one_job_is_what_is_left_of_it() -> None:
    waits = waits_of(one_ahead(100.0), 1, history([50.0, 150.0, 300.0] * 10), NOBODY, chance(), Drawing(200))
    near = [round(wait) for wait in waits if wait < 1000]
    assert len(near) > 180
    assert 0.35 < sum(wait <= 50 for wait in near) / len(near) < 0.6
    assert sum(wait in {50, 200} for wait in near) / len(near) > 0.8  # what lasted 50 s is out: it has run for 100


def test_the_same_seed_gives_the_same_waits() -> None:
    queue = Queue(3)
    job = queue.waiting_after(DAY)
    assert job is not None
    at = queue.rows[job][0]
    jobs, scene = queue.scene(at)
    drawn = [
        waits_of(scene, jobs.index(job), queue.run_times(at), queue.past(at), chance(seed), Drawing(10))
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == sorted(drawn[0])


def test_who_cannot_start_within_the_horizon_is_given_no_moment_and_costs_few_futures() -> None:
    scene = one_ahead(fixed=9e6)
    assert waits_of(scene, 1, history([9.0]), NOBODY, chance(), Drawing(100)) == [inf] * FEWEST


@pytest.mark.parametrize("is_flat", [True, False])
@pytest.mark.parametrize(("ends_after", "futures"), [(600.0, 60), (LATE - 1.0, 60), (LATE + 1.0, FEW)])
def test_jobs_that_start_late_need_few_futures(ends_after: float, futures: int, *, is_flat: bool) -> None:
    scene = one_ahead(fixed=ends_after + 100.0)
    found = waits_together(flat(scene) if is_flat else scene, [1], history([9.0]), NOBODY, chance(), Drawing(60))
    assert found.waits == {1: [ends_after] * futures}
    assert found.after == {1: {0: futures}}


@pytest.mark.parametrize(("endless", "futures"), [(5, 32), (3, 40)])
def test_futures_in_which_jobs_may_preempt_one_another_without_end_are_left_out_if_they_are_few(
    endless: int, futures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, numbers = playing.many, count()

    def many(*tables: Any) -> None:
        played(*tables)
        *_, asked, first, _ = tables
        for place in range(0, len(first), len(asked)):
            if next(numbers) % endless == 0:
                first[place : place + len(asked)] = [playing.ENDLESS] * len(asked)

    monkeypatch.setattr(playing, "many", many)
    found = waits_together(flat(one_ahead(fixed=400.0)), [1], history([9.0]), NOBODY, chance(), Drawing(40))
    assert found.waits == {1: [300.0] * futures}


@given(st.lists(st.sampled_from([60.0, LATE, inf]), min_size=FEWEST, max_size=FEW + 3))
def test_a_job_needs_no_more_futures_once_its_median_is_late_or_it_never_starts(waits: list[float]) -> None:
    middle = sorted(waits)[len(waits) // 2]
    if len(waits) >= FEW and len(waits) % 2:
        assert is_enough(waits) == (middle >= LATE)
    if len(waits) < FEW:
        assert is_enough(waits) == (min(waits) == inf)
    assert not is_enough(waits[: FEWEST - 1])


@given(st.integers(0, 10**6))
def test_a_replay_that_is_watched_gives_the_start_of_the_whole_replay(seed: int) -> None:
    draws = chance(seed)
    jobs = Jobs(
        Job(workload(f"j{n:02}", n), n * SECOND, round(draws.uniform(1, 60)) * SECOND)
        for n in range(draws.randint(1, 30))
    )
    watched = draws.randrange(len(jobs))
    some = replay(setting(3), jobs, watched=(watched,))
    assert some.first()[watched] == replay(setting(3), jobs).first()[watched]
    assert some.end <= replay(setting(3), jobs).end


def test_arrivals_come_at_their_time_of_day_and_within_the_horizon() -> None:
    now = 20 * DAY
    mornings = [Arrival(Request(TEAM, 1), day * DAY + 100.0 * n) for day in range(20) for n in range(30)]
    coming = list(Past(mornings, now, ((0.0, now),)).again(3 * DAY, chance()))
    assert 40 < len(coming) < 200
    assert [come.after for come in coming] == sorted(come.after for come in coming)
    assert all(come.after % DAY < BLOCK for come in coming)


def test_futures_want_more_and_less_than_usual() -> None:
    now = 20 * DAY
    hourly = [Arrival(Request(TEAM, 1), hour * 3600.0) for hour in range(20 * 24)]
    past = Past(hourly, now, ((0.0, now),))
    numbers = [sum(1 for _ in past.again(DAY, chance(seed))) for seed in range(200)]
    assert min(numbers) < 18
    assert max(numbers) > 32
    assert 22 < sum(numbers) / len(numbers) < 29


def test_hours_in_which_nobody_measured_are_not_taken() -> None:
    now = 20 * DAY
    busy = [Arrival(Request(TEAM, 1), 600.0 * n) for n in range(10 * 144)]  # ten days of work, then nobody measured
    measured = Past(busy, now, ((0.0, 10 * DAY),))
    assert sum(1 for _ in measured.again(DAY, chance())) > 50
    assert list(Past(busy, now, ((now - 60, now),)).again(DAY, chance())) == []


def test_after_a_gap_other_measured_hours_take_the_place_of_the_same_hours() -> None:
    now = 20 * DAY
    hourly = [Arrival(Request(TEAM, 1), hour * 3600.0) for hour in range(20 * 24)]
    recent = Past(hourly, now, ((0.0, 2 * DAY), (now - 7 * 3600, now)))
    assert recent.sources(now) == [now - DAY / 4]
    numbers = [sum(1 for _ in recent.again(DAY, chance(seed))) for seed in range(200)]
    assert 20 < sum(numbers) / len(numbers) < 29
    assert not recent.is_representative
    assert Past(hourly, now, ((0.0, 2 * DAY), (now - DAY, now))).is_representative
    assert Past(hourly, now, ((0.0, now),)).sources(now) == [now - days * DAY for days in range(1, 15)]


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 8)), max_size=30), st.integers(0, 100))
def test_arrivals_later_than_now_are_never_taken(rows: list[tuple[float, int]], seed: int) -> None:
    past = Past([Arrival(Request(TEAM, gpus), at) for at, gpus in rows], 0.0, ((-30 * DAY, 0.0),))
    known = {gpus for at, gpus in rows if at <= 0}
    assert {come.request.gpus for come in past.again(DAY, chance(seed))} <= known


def spread(run_times: RunTimes) -> float:
    found = estimate_of(waits_of(one_ahead(100.0), 1, run_times, NOBODY, chance(), Drawing(200)))
    return found.nine / found.half


STEADY = [1000.0 + n for n in range(60)]


@pytest.mark.parametrize(
    "bad",
    [history(STEADY, "another"), history(STEADY[:3]), history([])],
    ids=["a new team", "most records deleted", "no history"],
)
def test_a_bad_history_gives_estimates_that_are_no_sharper(bad: RunTimes) -> None:
    assert spread(bad) - 1 >= 0.99 * (spread(history(STEADY)) - 1)


def test_jobs_that_cannot_come_are_left_out() -> None:
    scene = replace(one_ahead(fixed=400.0), newcomer=lambda coming, number, at: None)  # noqa: ARG005
    past = Past([Arrival(Request(TEAM, 1), -600.0 * n) for n in range(3000)], 0.0, ((-30 * DAY, 0.0),))
    assert waits_of(scene, 1, history([9.0] * 60), past, chance(), Drawing(5)) == [300.0] * 5
