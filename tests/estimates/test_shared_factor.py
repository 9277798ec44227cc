"""The number that a team's run times share: what the latest jobs show of it."""

from __future__ import annotations

import random
from math import sqrt
from statistics import NormalDist, fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.flat.tabling import Lasted
from taskgov.estimates.requests import Ran, Request
from taskgov.estimates.run_times import RunTimes
from taskgov.estimates.shared_factor import LATEST, WEIGHT, Shared, shared_of
from taskgov.estimates.survival import Law

NORMAL = NormalDist()
LAW = Law((float(seconds), True) for seconds in range(1, 100))
JOBS = st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=LATEST)
PARTS = st.floats(0, 0.95)


@given(JOBS)
def test_without_correlation_jobs_show_nothing(jobs: list[tuple[float, bool]]) -> None:
    assert shared_of(LAW, jobs, 0.0) == Shared(0.0, 1.0)


@given(PARTS)
def test_without_jobs_it_is_the_standard_normal_distribution(correlation: float) -> None:
    found = shared_of(LAW, [], correlation)
    assert found.mean == pytest.approx(0.0, abs=1e-9)
    assert found.deviation == pytest.approx(1.0, abs=0.02)  # the grid ends at 3


@given(st.lists(st.integers(10, 90), min_size=1, max_size=LATEST), st.floats(0.05, 0.7))
def test_jobs_that_ended_give_the_posterior_of_normal_numbers(ends: list[int], correlation: float) -> None:
    scores = [NORMAL.inv_cdf((end - 0.5) / 100) for end in ends]
    of_one = WEIGHT * correlation / (1 - correlation)
    precision = 1 + len(ends) * of_one
    mean = sum(of_one * score / sqrt(correlation) for score in scores) / precision
    found = shared_of(LAW, [(float(end), True) for end in ends], correlation)
    assert found.mean == pytest.approx(mean, abs=0.03)
    assert found.deviation == pytest.approx(1 / sqrt(precision), abs=0.03)


@given(JOBS, PARTS)
def test_it_is_never_wider_than_before_and_never_certain(jobs: list[tuple[float, bool]], correlation: float) -> None:
    found = shared_of(LAW, jobs, correlation)
    least = 1 / sqrt(1 + LATEST * WEIGHT * correlation / (1 - correlation))
    assert 0.9 * least <= found.deviation <= 1.0


@given(JOBS, st.floats(0, 200), st.floats(0, 200), st.booleans(), PARTS)
def test_longer_jobs_never_make_it_smaller(
    jobs: list[tuple[float, bool]], first: float, second: float, ended: bool, correlation: float
) -> None:
    shorter, longer = sorted((first, second))
    means = [shared_of(LAW, [*jobs, (seconds, ended)], correlation).mean for seconds in (shorter, longer)]
    assert means[0] <= means[1] + 1e-9


@given(JOBS, st.floats(0, 200), PARTS)
def test_a_job_that_still_runs_never_makes_it_smaller(
    jobs: list[tuple[float, bool]], age: float, correlation: float
) -> None:
    alone = shared_of(LAW, jobs, correlation).mean
    assert shared_of(LAW, [*jobs, (age, False)], correlation).mean >= alone - 1e-9


@pytest.mark.parametrize("running", [0.0, 0.5])
def test_numbers_of_known_teams_are_not_further_away_than_it_says(running: float) -> None:
    chance, off = random.Random(1), list[float]()  # noqa: S311 -- the same each time, no secret
    for _ in range(2000):
        number = chance.gauss(0, 1)
        jobs = []
        for _ in range(LATEST):
            seconds = 100 * NORMAL.cdf(sqrt(0.5) * number + sqrt(0.5) * chance.gauss(0, 1))
            age = 100 * chance.random()
            censored = chance.random() < running and age < seconds
            jobs.append((age, False) if censored else (seconds, True))
        found = shared_of(LAW, jobs, 0.5)
        off.append((number - found.mean) / found.deviation)
    assert abs(fmean(off)) < 0.1
    assert fmean(one * one for one in off) < 1.0


def test_the_jobs_that_a_team_started_last_count() -> None:
    def history(last: float) -> RunTimes:
        times = [*range(100, 1100, 10), *[last] * LATEST]
        return RunTimes(Ran(Request("a", 1), float(start), float(seconds), True) for start, seconds in enumerate(times))

    assert history(105.0).shared("a", 0.5).mean < 0 < history(1095.0).shared("a", 0.5).mean
    assert history(1095.0).shared("b", 0.5).mean == pytest.approx(0.0, abs=1e-9)


def test_the_tables_of_fast_futures_have_it() -> None:
    run_times = RunTimes(Ran(Request(team, 1), at, 60.0 + at, True) for at in range(50) for team in ("a", "b"))
    table = Lasted(run_times, 0.5)
    for team in ("b", "a"):
        table.row(Request(team, 1), 0.0, None)
    lasting = table.lasting()
    assert [lasting.mean[place] for place in range(2)] == [run_times.shared(team, 0.5).mean for team in ("b", "a")]
    assert [lasting.deviation[place] for place in range(2)] == [
        run_times.shared(team, 0.5).deviation for team in ("b", "a")
    ]
