"""Run times: the law of Kaplan and Meier, narrow groups and wide ones, ages and limits."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.requests import Ran, Request, sound
from taskgov.estimates.run_times import LAST, LONGEST, RunTimes
from taskgov.estimates.survival import Law

SEEN = st.lists(st.tuples(st.integers(0, 1000), st.booleans()), max_size=30)
A = Request("a", 1)


def ran(seconds: float, request: Request = A, started: float = 0.0, *, ended: bool = True) -> Ran:
    return Ran(request, started, seconds, ended)


def chance(seed: int = 1) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- the same each time, no secret


@given(SEEN)
def test_the_chance_to_run_longer_never_rises(seen: list[tuple[float, bool]]) -> None:
    law = Law(seen)
    left = [law.longer_than(seconds) for seconds in range(-1, 1002, 13)]
    assert left == sorted(left, reverse=True)
    assert left[0] == 1.0
    assert all(0 <= part <= 1 for part in left)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_without_jobs_that_still_run_the_law_is_the_share_of_jobs(times: list[int]) -> None:
    law = Law((seconds, True) for seconds in times)
    for seconds in times:
        assert law.longer_than(seconds) == pytest.approx(sum(other > seconds for other in times) / len(times))


@given(SEEN, st.floats(0.01, 0.99))
def test_a_quantile_is_the_first_time_by_which_so_many_ended(seen: list[tuple[float, bool]], part: float) -> None:
    law, found = Law(seen), Law(seen).quantile(part)
    if found is None:
        assert law.longer_than(law.last) > 1 - part - 1e-9
    else:
        assert law.longer_than(found) <= 1 - part + 1e-9
        assert law.longer_than(found - 1) > 1 - part - 1e-9


@given(SEEN, st.floats(0.01, 0.99))
def test_a_draw_is_within_the_step_of_its_quantile(seen: list[tuple[float, bool]], part: float) -> None:
    law = Law(seen)
    step, drawn = law.quantile(part), law.between(part, 0.0)
    assert (step is None) == (drawn is None)
    if step is not None and drawn is not None:
        assert max((seconds for seconds, ended in seen if ended and seconds < step), default=0) <= drawn <= step


def test_the_next_job_may_run_longer_than_all_that_are_known() -> None:
    law = Law([(10, True), (20, True), (30, True)], next_one=1)
    assert [law.longer_than(at) for at in (10, 20, 30)] == pytest.approx([0.75, 0.5, 0.25])
    assert law.quantile(0.8) is None


def test_the_textbook_example_of_kaplan_and_meier() -> None:
    # Kaplan and Meier 1958, section 2: deaths at 0.8, 3.1, 5.4, 9.2; losses at 1.0, 2.7, 7.0, 12.1.
    law = Law(
        [(0.8, True), (1.0, False), (2.7, False), (3.1, True), (5.4, True), (7.0, False), (9.2, True), (12.1, False)]
    )
    assert [round(law.longer_than(at), 3) for at in (0.8, 3.1, 5.4, 9.2)] == [0.875, 0.7, 0.525, 0.262]


@given(SEEN, st.floats(0, 5000), st.floats(0, 0.999), st.floats(0, 0.999999))
def test_a_drawn_run_time_is_longer_than_the_age_and_within_bounds(
    seen: list[tuple[float, bool]], age: float, which: float, part: float
) -> None:
    run_times = RunTimes(ran(seconds, ended=ended) for seconds, ended in seen)
    assert age < run_times.prospect(A, age).draw(which, part) <= LONGEST
    limited = run_times.prospect(A._replace(limit=600.0), age).draw(which, part)
    assert age < limited <= max(600.0, age + 1)


@given(st.floats(0, 900))
def test_a_longer_age_never_gives_an_earlier_end(age: float) -> None:
    run_times = RunTimes(ran(seconds) for seconds in range(0, 1000, 10))
    draws = [run_times.prospect(A, old).draw(0.0, 0.5) for old in (age, age + 50)]
    assert draws[0] <= draws[1]


def test_a_team_with_history_runs_as_it_did_and_one_without_as_everybody() -> None:
    history = [ran(100, Request("a", 8)) for _ in range(60)] + [ran(9000, Request("b", 8)) for _ in range(60)]
    run_times, draws = RunTimes(history), chance()
    own = [run_times.prospect(Request("a", 8)).draw(draws.random(), draws.random()) for _ in range(300)]
    new = [run_times.prospect(Request("c", 8)).draw(draws.random(), draws.random()) for _ in range(300)]
    assert sum(seconds == 100 for seconds in own) > 270
    assert 0 < sum(seconds == 100 for seconds in new) < 300


def test_an_owner_counts_before_the_team() -> None:
    mine, others = Request("a", 1, "kim"), Request("a", 1, "lee")
    run_times = RunTimes([*(ran(50, mine) for _ in range(40)), *(ran(5000, others) for _ in range(40))])
    draws = chance()
    found = [run_times.prospect(mine).draw(draws.random(), draws.random()) for _ in range(200)]
    assert sum(seconds == 50 for seconds in found) > 160


def test_only_the_last_jobs_of_a_group_count() -> None:
    old, new = [ran(10, started=0.0)] * 200, [ran(1000, started=1.0)] * LAST
    law = RunTimes([*old, *new]).law(("team", "a", "1"))
    assert (law.count, law.longer_than(999)) == (LAST, 1.0)  # none of 10 seconds


def test_a_job_older_than_all_that_are_known_runs_on_for_long() -> None:
    run_times, draws = RunTimes([ran(100)] * 60), chance()
    left = [run_times.prospect(A, 5000).draw(draws.random(), draws.random()) - 5000 for _ in range(200)]
    assert sorted(left)[100] > 1500


@pytest.mark.parametrize(
    "odd", [ran(5, started=200), ran(-1), ran(500)], ids=["begins later", "ran backwards", "ended later"]
)
def test_runs_that_a_wrong_clock_wrote_are_not_sound(odd: Ran) -> None:
    assert not sound(odd, 100.0)
    assert sound(ran(100), 100.0)
    assert RunTimes([odd, ran(100)], 100.0).known("a") == 1
