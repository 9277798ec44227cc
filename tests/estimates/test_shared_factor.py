"""The number that a team's run times share: how it drifts, and what the latest jobs show of it."""

from __future__ import annotations

import random
from math import sqrt
from statistics import NormalDist, correlation, fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.drawing import RandomRunTimes
from taskgov.estimates.flat.luck import seconds_of
from taskgov.estimates.flat.tabling import Lasted
from taskgov.estimates.requests import Ran, Request
from taskgov.estimates.run_times import RunTimes
from taskgov.estimates.shared_factor import KEEPS, LATEST, Shared, shared_of
from taskgov.estimates.survival import Law

if TYPE_CHECKING:
    from collections.abc import Callable

NORMAL = NormalDist()
LAW = Law((float(seconds), True) for seconds in range(1, 100))
JOBS = st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=LATEST)
PARTS = st.floats(0, 0.95)
JOB = Request("a", 1)


@given(JOBS)
def test_without_correlation_jobs_show_nothing(jobs: list[tuple[float, bool]]) -> None:
    assert shared_of(LAW, jobs, 0.0) == Shared(0.0, 1.0)


@given(PARTS)
def test_without_jobs_it_is_the_standard_normal_distribution(part: float) -> None:
    assert shared_of(LAW, [], part) == Shared(0.0, 1.0)


@given(st.lists(st.integers(10, 90), min_size=1, max_size=LATEST), st.floats(0.05, 0.7))
def test_jobs_that_ended_are_filtered_as_kalman_does(ends: list[int], part: float) -> None:
    mean, square = 0.0, 1.0
    for end in reversed(ends):
        score = NORMAL.inv_cdf((end - 0.5) / 99)
        gain = sqrt(part) * square / (part * square + 1 - part)
        mean, square = mean + gain * (score - sqrt(part) * mean), (1 - gain * sqrt(part)) * square
        mean, square = KEEPS * mean, KEEPS**2 * square + 1 - KEEPS**2
    found = shared_of(LAW, [(float(end), True) for end in ends], part)
    assert found.mean == pytest.approx(mean, abs=1e-6)
    assert found.deviation == pytest.approx(sqrt(square), abs=1e-6)


@given(JOBS, PARTS)
def test_it_is_never_wider_than_before_and_never_certain(jobs: list[tuple[float, bool]], part: float) -> None:
    assert sqrt(1 - KEEPS**2) <= shared_of(LAW, jobs, part).deviation <= 1.0 + 1e-9


@pytest.mark.parametrize("part", [0.5, 0.9, 0.99])
def test_a_long_job_after_many_short_ones_makes_it_greater(part: float) -> None:
    short = [(0.5, True)] * (LATEST - 1)
    before, found = shared_of(LAW, short, part), shared_of(LAW, [(200.0, False), *short], part)
    assert before.mean < -1
    assert found.mean > before.mean
    assert 0 < found.deviation < 1


@given(JOBS, st.floats(0, 200), st.floats(0, 200), st.booleans(), PARTS)
def test_a_longer_latest_job_never_makes_it_smaller(
    jobs: list[tuple[float, bool]], first: float, second: float, ended: bool, part: float
) -> None:
    shorter, longer = sorted((first, second))
    means = [shared_of(LAW, [(seconds, ended), *jobs], part).mean for seconds in (shorter, longer)]
    assert means[0] <= means[1] + 1e-9


@given(st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=LATEST - 1), st.floats(0, 200), PARTS)
def test_a_job_that_still_runs_makes_it_no_smaller_than_the_drift(
    jobs: list[tuple[float, bool]], age: float, part: float
) -> None:
    alone = shared_of(LAW, jobs, part).mean
    assert shared_of(LAW, [(age, False), *jobs], part).mean >= KEEPS * alone - 1e-9


@pytest.mark.parametrize("running", [0.0, 0.5])
def test_the_number_of_a_known_team_is_as_far_away_as_it_says(running: float) -> None:
    chance, off = random.Random(1), list[float]()  # noqa: S311 -- the same each time, no secret
    for _ in range(600):
        number, jobs = chance.gauss(0, 1), list[tuple[float, bool]]()
        for _ in range(LATEST):
            seconds = 100 * NORMAL.cdf(sqrt(0.5) * number + sqrt(0.5) * chance.gauss(0, 1))
            age = 100 * chance.random()
            still = chance.random() < running and age < seconds
            jobs.insert(0, (age, False) if still else (seconds, True))
            number = KEEPS * number + sqrt(1 - KEEPS**2) * chance.gauss(0, 1)
        found = shared_of(LAW, jobs, 0.5)
        off.append((number - found.mean) / found.deviation)
    assert abs(fmean(off)) < 0.15
    assert 0.8 < fmean(one * one for one in off) < 1.2


@pytest.mark.parametrize("times", [[1000.0], [50.0, 150.0, 300.0], [300.0, 150.0, 50.0]])
def test_jobs_that_run_equally_long_show_nothing_by_that(times: list[float]) -> None:
    runs = RunTimes(Ran(JOB, float(place), times[place % len(times)], True) for place in range(60))
    assert abs(runs.shared("a", 0.5).mean) < 0.3


def test_the_jobs_that_a_team_started_last_count() -> None:
    def history(last: float) -> RunTimes:
        times = [*range(100, 1100, 10), *[last] * 5]
        return RunTimes(Ran(JOB, float(start), float(seconds), True) for start, seconds in enumerate(times))

    assert history(105.0).shared("a", 0.5).mean < 0 < history(1095.0).shared("a", 0.5).mean
    assert history(1095.0).shared("b", 0.5) == Shared(0.0, 1.0)


def flat_draws(run_times: RunTimes, part: float) -> Callable[[], float]:
    table = Lasted(run_times, part)
    place = table.row(JOB, 0.0, None)
    lasting, luck = table.lasting(), [12345, 67890]
    shared = list(lasting.mean)
    return lambda: seconds_of(lasting, place, shared, luck)


def plain_draws(run_times: RunTimes, part: float) -> Callable[[], float]:
    luck = RandomRunTimes(random.Random(1), part, run_times)  # noqa: S311 -- the same each time, no secret
    return lambda: luck.seconds("a", run_times.prospect(JOB))


@pytest.mark.parametrize("draws", [flat_draws, plain_draws])
@pytest.mark.parametrize("part", [0.0, 0.5])
def test_run_times_of_a_team_resemble_those_that_start_near(
    draws: Callable[[RunTimes, float], Callable[[], float]], part: float
) -> None:
    run_times = RunTimes(Ran(JOB, float(place), float(1000 + 10 * place), True) for place in range(60))
    draw = draws(run_times, part)
    times = [draw() for _ in range(4000)]
    rank = {place: number for number, place in enumerate(sorted(range(len(times)), key=times.__getitem__))}
    scores = [NORMAL.inv_cdf((rank[place] + 0.5) / len(times)) for place in range(len(times))]
    for lag in (1, 20, 100):
        assert correlation(scores[:-lag], scores[lag:]) == pytest.approx(part * KEEPS**lag, abs=0.1)


def test_futures_begin_with_what_the_latest_jobs_show() -> None:
    run_times = RunTimes(Ran(Request(team, 1), at, 60.0 + at, True) for at in range(50) for team in ("a", "b"))
    table = Lasted(run_times, 0.5)
    for team in ("b", "a"):
        table.row(Request(team, 1), 0.0, None)
    lasting = table.lasting()
    known = [run_times.shared(team, 0.5) for team in ("b", "a")]
    assert list(zip(lasting.mean, lasting.deviation, strict=True)) == known
