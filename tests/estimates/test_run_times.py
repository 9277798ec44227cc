"""Run times: the estimator of Kaplan and Meier, narrow groups and wide ones, ages and limits."""

from __future__ import annotations

import random
from collections import Counter
from math import inf
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.batches import GAP, size_class, sized
from taskgov.estimates.little_known import doubt, vague_law
from taskgov.estimates.requests import Ran, Request, sound
from taskgov.estimates.run_law import POINTS, TOP, RunLaw, combined
from taskgov.estimates.run_times import LAST, LONGEST, WIDER, RunTimes
from taskgov.estimates.survival import Law

if TYPE_CHECKING:
    from collections.abc import Callable

NORMAL = NormalDist()
SEEN = st.lists(st.tuples(st.integers(0, 1000), st.booleans()), max_size=30)
SCORES = st.floats(-5, 5)
A = Request("a", 1)
VAGUE_LAW = vague_law()
# Kaplan and Meier 1958, section 2: deaths at 0.8, 3.1, 5.4, 9.2; losses at 1.0, 2.7, 7.0, 12.1.
TEXTBOOK = [(0.8, True), (1, False), (2.7, False), (3.1, True), (5.4, True), (7, False), (9.2, True), (12.1, False)]


def always(strength: float) -> Callable[[float], float]:
    return lambda _: strength


def ran(seconds: float, request: Request = A, started: float = 0.0, *, ended: bool = True) -> Ran:
    return Ran(request, started, seconds, ended)


def draws(run_times: RunTimes, request: Request, age: float = 0.0, count: int = 300) -> list[float]:
    chance = random.Random(1)  # noqa: S311 -- the same each time, no secret
    prospect = run_times.prospect(request, age)
    return sorted(prospect.seconds(chance.gauss(0, 1)) for _ in range(count))


@given(SEEN, st.floats(0, 10))
def test_a_law_is_a_distribution(seen: list[tuple[float, bool]], strength: float) -> None:
    law = combined(seen, VAGUE_LAW, always(strength))
    parts = [law.below(seconds) for seconds in range(-1, 1002, 13)]
    assert parts == sorted(parts)
    assert parts[0] == 0.0
    assert all(0 <= part <= 1 for part in parts)
    assert len(law.times) == POINTS
    assert list(law.times) == sorted(law.times)
    assert law.below(law.times[-1]) == 1.0


@given(SEEN, st.floats(0.1, 10), st.floats(-TOP, TOP))
def test_the_score_of_a_time_is_the_one_that_gives_it(
    seen: list[tuple[float, bool]], strength: float, score: float
) -> None:
    law = combined(seen, VAGUE_LAW, always(strength))
    seconds = law.seconds(score)
    assert law.shorter(seconds) - 0.02 <= NORMAL.cdf(score) <= law.below(seconds) + 0.02


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_without_jobs_that_still_run_the_law_is_the_share_of_jobs(times: list[int]) -> None:
    law = combined([(seconds, True) for seconds in times], VAGUE_LAW, always(0.0))
    for seconds in times:
        assert law.below(seconds) == pytest.approx(sum(other <= seconds for other in times) / len(times), abs=0.02)


def test_the_textbook_example_of_kaplan_and_meier() -> None:
    law = combined(TEXTBOOK, RunLaw([1000.0] * POINTS), always(0.0))
    assert [1 - law.below(at) for at in (0.8, 3.1, 5.4, 9.2)] == pytest.approx([0.875, 0.7, 0.525, 0.2625], abs=0.02)
    found = Law(TEXTBOOK)
    assert [found.quantile(part) for part in (0.12, 0.2, 0.31, 0.47, 0.73, 0.74)] == [0.8, 3.1, 5.4, 5.4, 9.2, None]


@given(SEEN, st.floats(0.01, 0.99))
def test_a_quantile_is_the_first_time_by_which_so_many_ended(seen: list[tuple[float, bool]], part: float) -> None:
    ended = [(seconds, True) for seconds, _ in seen]
    found = Law(ended).quantile(part)
    if found is not None:
        assert sum(seconds <= found for seconds, _ in ended) >= part * len(ended) - 1e-9
        assert sum(seconds < found for seconds, _ in ended) < part * len(ended) + 1e-9


def test_the_next_time_may_be_longer_than_all_that_are_known() -> None:
    law = Law([(10, True), (20, True), (30, True)], next_one=1)
    assert [law.quantile(part) for part in (0.25, 0.5, 0.75, 0.8)] == [10, 20, 30, None]


@given(st.lists(st.tuples(st.integers(1, 1000), st.booleans()), min_size=1, max_size=30))
def test_a_wider_law_counts_as_so_many_more_jobs(seen: list[tuple[float, bool]]) -> None:
    much = combined(seen, VAGUE_LAW, always(1e6))
    for seconds in (50, 200, 700):
        assert much.below(seconds) == pytest.approx(VAGUE_LAW.below(seconds), abs=0.02)


@pytest.mark.parametrize("strength", [0.0, 6.0, 54.0])
def test_a_wider_law_is_weighed_by_the_jobs_that_reached_an_age(strength: float) -> None:
    wider = RunLaw([200.0] * POINTS)
    law = combined([(100.0, True), (100.0, True), *[(300.0, False)] * 4], wider, always(strength))
    assert law.below(100) == pytest.approx(2 / (6 + strength), abs=0.01)
    assert law.below(200) == pytest.approx(1 - (1 - 2 / (6 + strength)) * 4 / (4 + strength), abs=0.02)


def test_few_jobs_that_reached_an_age_show_little_however_many_younger_ones_run() -> None:
    young = [(100.0, False)] * 60
    wider = combined([(float(seconds), True) for seconds in range(100, 10_000, 50)], VAGUE_LAW, always(0.1))
    law = combined([*young, (200.0, True)], wider, always(2.0))
    assert law.below(200) < 0.4
    assert law.seconds(1.0) > 5000


@given(SEEN, st.floats(0, 5000), SCORES)
def test_a_run_time_is_longer_than_the_age_and_within_bounds(
    seen: list[tuple[float, bool]], age: float, score: float
) -> None:
    run_times = RunTimes(ran(seconds, ended=ended) for seconds, ended in seen)
    assert age < run_times.prospect(A, age).seconds(score) <= LONGEST
    limited = run_times.prospect(A._replace(limit=600.0), age).seconds(score)
    assert age < limited <= max(600.0, age + 1)


@given(SEEN, st.floats(0, 2000), SCORES, SCORES)
def test_a_higher_score_never_gives_a_shorter_run_time(
    seen: list[tuple[float, bool]], age: float, first: float, second: float
) -> None:
    prospect = RunTimes(ran(seconds, ended=ended) for seconds, ended in seen).prospect(A, age)
    assert prospect.seconds(min(first, second)) <= prospect.seconds(max(first, second)) + 1e-6


@given(st.floats(0, 900))
def test_a_longer_age_never_gives_an_earlier_end(age: float) -> None:
    run_times = RunTimes(ran(seconds) for seconds in range(0, 1000, 10))
    ends = [run_times.prospect(A, old).seconds(0.0) for old in (age, age + 50)]
    assert ends[0] <= ends[1]


def test_run_times_of_a_job_that_runs_are_those_that_exceed_its_age() -> None:
    run_times = RunTimes(ran(float(seconds)) for seconds in range(100, 1600, 10))
    whole, left = draws(run_times, A, count=40_000), draws(run_times, A, 1000.0, count=20_000)
    longer = [seconds for seconds in whole if seconds > 1000.0]
    for part in (0.1, 0.5, 0.9):
        assert left[round(20_000 * part)] == pytest.approx(longer[round(len(longer) * part)], rel=0.05)


def test_a_team_with_history_runs_as_it_did_and_one_without_as_everybody() -> None:
    history = [ran(100, Request("a", 8)) for _ in range(60)] + [ran(9000, Request("b", 8)) for _ in range(60)]
    run_times = RunTimes(history)
    own, new = draws(run_times, Request("a", 8)), draws(run_times, Request("c", 8))
    assert sum(99 < seconds <= 100 for seconds in own) > 270
    assert 75 < sum(99 < seconds <= 100 for seconds in new) < 225


def test_an_owner_counts_before_the_team() -> None:
    mine, others = Request("a", 1, "kim"), Request("a", 1, "lee")
    run_times = RunTimes([*(ran(50, mine) for _ in range(40)), *(ran(5000, others) for _ in range(40))])
    assert sum(49 < seconds <= 50 for seconds in draws(run_times, mine, count=200)) > 160


def test_only_the_last_jobs_of_a_group_count() -> None:
    old, new = [ran(10, started=0.0)] * 200, [ran(1000, started=1.0)] * LAST
    law = RunTimes([*old, *new]).law(A)
    assert law.below(999) < 0.1  # almost none of 10 seconds


def test_a_single_end_says_little_however_many_jobs_run() -> None:
    young = [ran(100.0, started=1.0, ended=False) for _ in range(60)]
    found = draws(RunTimes([*young, ran(500_000.0)]), A)
    assert found[30] < 20_000
    assert found[270] > 100_000


@pytest.mark.parametrize("short", [5, 20, 60])
@pytest.mark.parametrize("age", [0.0, 300.0, 3600.0])
def test_a_single_old_end_says_little_about_jobs_that_have_outlived_the_others(short: int, age: float) -> None:
    young = [ran(100.0, started=1.0, ended=False) for _ in range(60)]
    history = [*young, *(ran(10.0 + place) for place in range(short)), ran(500_000.0)]
    found = [seconds - max(age, 200.0) for seconds in draws(RunTimes(history), A, max(age, 200.0))]
    assert 30 * found[30] < found[270]
    assert 3 * found[150] < found[270]


def test_a_job_that_outlived_the_latest_jobs_runs_on_as_older_ones_did() -> None:
    long = [ran(36_000.0 + place, started=float(place)) for place in range(11)]
    latest = [ran(3600.0, started=1000.0 + place) for place in range(300)]
    prospect = RunTimes([*long, *latest]).prospect(A, 3700.0)
    assert prospect.seconds(0.0) == pytest.approx(36_000, rel=0.02)


def test_a_job_that_is_a_second_older_does_not_run_on_for_much_longer() -> None:
    run_times = RunTimes([ran(60.0 * 1.4**place) for place in range(30)])
    longest = 60.0 * 1.4**29
    left = [run_times.prospect(A, longest + more).seconds(0.0) - longest for more in (-1.0, 1.0)]
    assert left[0] / 2 < left[1] < 2 * left[0]


GROUPS = [Request(team, gpus) for team in "abc" for gpus in (1, 8)]


@given(st.integers(0, 10**6), st.sampled_from([5, 20, 100, 400]), st.integers(0, 2), st.floats(1, 100), st.booleans())
def test_an_estimate_is_never_sharp_for_a_job_that_has_outlived_all_but_two(
    seed: int, short: int, longer: int, age: float, known: bool
) -> None:
    chance = random.Random(seed)  # noqa: S311 -- the same each time, no secret
    history = [
        ran(chance.uniform(1, 1000), chance.choice(GROUPS), -chance.random(), ended=chance.random() < 0.8)
        for _ in range(short)
    ]
    longest = 1000 * age * 10 ** chance.uniform(0, 2)
    history += [ran(longest * chance.uniform(0.9, 1), chance.choice(GROUPS), -chance.random()) for _ in range(longer)]
    old = chance.choice(GROUPS)
    if known:
        history.append(ran(1000 * age, old, -2.0, ended=False))
    prospect = RunTimes(history).prospect(old, 1000 * age)
    low, high = (prospect.seconds(score) - 1000 * age for score in (-1.2816, 1.2816))
    assert high > 2 * low
    assert high > 300 * age or high > LONGEST / 10


@pytest.mark.parametrize("seed", range(20))
def test_the_law_of_jobs_that_reached_an_age_is_what_is_left_of_the_law_of_all(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- the same each time, no secret
    run_times = RunTimes([ran(chance.lognormvariate(8, 1.5), chance.choice(GROUPS)) for _ in range(600)])
    whole, old = run_times.law(A), run_times.law(A, 20_000.0)
    assert old.times[0] > whole.times[0]
    for seconds in (25_000.0, 30_000.0, 50_000.0):
        left, left_of_old = 1 - whole.below(20_000.0), 1 - old.below(20_000.0)
        assert (1 - old.below(seconds)) / left_of_old == pytest.approx((1 - whole.below(seconds)) / left, abs=0.1)


def test_a_job_of_a_narrow_group_does_not_count_again_in_the_wider_ones() -> None:
    mine = [(float(seconds), True) for seconds in (10, 20, 500)]
    others = [(float(seconds), seconds < 400) for seconds in range(100, 500, 10)]
    history = [ran(seconds, ended=ended) for seconds, ended in mine]
    alone = combined(mine, VAGUE_LAW, doubt(mine))
    assert RunTimes(history).law(A).times == alone.times
    history += [ran(seconds, Request("a", 8), ended=ended) for seconds, ended in others]
    wider = combined(others, VAGUE_LAW, doubt([*mine, *others]))
    assert RunTimes(history).law(A).times == combined(mine, wider, always(WIDER)).times


@pytest.mark.parametrize("age", [0.0, 500.0, 2000.0])
def test_those_that_reached_an_age_show_how_long_jobs_run_on_however_many_younger_ones_there_are(age: float) -> None:
    young = [ran(300.0 + place % 290, started=-600.0 - place, ended=place % 5 == 0) for place in range(2000)]
    old = [ran(7200.0 + place, started=-20_000.0 - place) for place in range(200)]
    law = RunTimes([*young, *old]).law(A, age)
    long = 1 - law.below(600.0)
    assert long > 0.1
    assert law.below(7000.0) - law.below(600.0) < 0.1 * long
    assert 1 - law.below(7500.0) < 0.1 * long


@pytest.mark.parametrize("owner", ["", "o"])
def test_jobs_of_large_batches_are_like_those_of_large_batches(owner: str) -> None:
    alone, many = A._replace(owner=owner, size=1), A._replace(owner=owner, size=50)
    history = [ran(9000.0 + place, alone, -place) for place in range(60)]
    history += [ran(100.0 + place, many, -place) for place in range(60)]
    run_times = RunTimes(history)
    assert draws(run_times, alone)[150] > 8000
    assert draws(run_times, many)[150] < 200
    assert 100 < draws(run_times, A._replace(owner=owner))[100] < 200, "of an unknown batch: like all"


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 300)), max_size=80))
def test_a_batch_has_the_jobs_that_are_submitted_one_right_after_the_other(jobs: list[tuple[str, int]]) -> None:
    found = sized([(Request(team, 1), float(at)) for team, at in jobs])
    for (team, at), request in zip(jobs, found, strict=True):
        near = sorted(other_at for other, other_at in jobs if other == team)
        first = last = near.index(at)
        while first > 0 and near[first] - near[first - 1] <= GAP:
            first -= 1
        while last + 1 < len(near) and near[last + 1] - near[last] <= GAP:
            last += 1
        assert request == Request(team, 1, size=size_class(last - first + 1), batch=max(near[first], 1))


def test_a_batch_is_never_smaller_or_younger_than_what_is_known_of_it() -> None:
    known = A._replace(size=10, batch=70)
    assert sized([(known, 100.0), (A, 100.0), (A, 130.9), (A, 200.0)]) == [
        known,
        *[A._replace(size=3, batch=70)] * 2,
        A._replace(size=1, batch=200),
    ]


OTHERS = {
    "nobody": [],
    "single jobs of the team": [ran(7200.0 + 60 * place, A._replace(size=1), -3600.0 * place) for place in range(60)],
    "another team": [ran(7200.0 + 60 * place, Request("b", 1, size=1), -3600.0 * place) for place in range(60)],
}


@pytest.mark.parametrize("others", OTHERS)
@given(jobs=st.integers(50, 400), seconds=st.integers(60, 400), ended=st.booleans())
def test_however_many_jobs_of_a_batch_ran_equally_long_they_say_as_much_about_another_batch_as_one(
    others: str, jobs: int, seconds: int, ended: bool
) -> None:
    batch, another = A._replace(size=50, batch=1), A._replace(size=50, batch=2)
    history = [ran(float(seconds), batch, 10.0, ended=ended)] * jobs + OTHERS[others]
    law, by_one = RunTimes(history).law(another), RunTimes(history[jobs - 1 :]).law(another)
    for time in (seconds + 1.0, 3600.0, 10_000.0, 100_000.0):
        assert law.below(time) == pytest.approx(by_one.below(time), abs=0.02)
    assert law.below(seconds + 1.0) < 0.5


def test_jobs_of_one_batch_decide_for_the_others_of_it() -> None:
    batch = A._replace(size=50, batch=1)
    history = [ran(150.0 + place, batch, 10.0) for place in range(30)] + OTHERS["single jobs of the team"]
    assert draws(RunTimes(history), batch)[250] < 200.0
    assert draws(RunTimes(history), batch._replace(batch=2))[250] > 7000.0


def test_of_a_batch_the_latest_jobs_that_ended_decide() -> None:
    batch = A._replace(size=50, batch=1)
    history = [ran(150.0 + place % 30, batch, -place) for place in range(200)]
    history += [ran(9000.0 + place % 30, batch, -1000.0 - place) for place in range(400)]
    assert draws(RunTimes(history), batch)[270] < 200.0


def test_jobs_of_the_only_known_batch_decide_for_the_others_of_it() -> None:
    batch = A._replace(size=50, batch=1)
    assert draws(RunTimes([ran(150.0 + place, batch) for place in range(60)]), batch)[270] < 300.0


def test_jobs_of_its_own_batch_do_not_count_again() -> None:
    batch = A._replace(size=3, batch=1)
    mine = [(float(seconds), True) for seconds in (10, 20, 500)]
    others = [(float(seconds), True) for seconds in range(100, 500, 10)]
    history = [ran(seconds, batch) for seconds, _ in mine] + [ran(seconds, A) for seconds, _ in others]
    wider = combined(others, VAGUE_LAW, doubt([*mine, *others]))
    assert RunTimes(history).law(batch).times == combined(mine, wider, always(WIDER)).times


def test_many_small_batches_share_the_laws_of_their_wider_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [ran(100.0 + place, A._replace(size=1), -3600.0 - place) for place in range(300)]
    history += [ran(200.0, Request(team, gpus), -9000.0) for team in "ab" for gpus in (1, 8)]
    for batch in range(1, 61):
        history += [ran(100.0 + place, A._replace(size=3, batch=batch), -60.0 * batch) for place in range(2)]
    calls = Counter[str]()

    def counted(*words: Any) -> RunLaw:
        calls["combined"] += 1
        return combined(*words)

    monkeypatch.setattr("taskgov.estimates.run_times.combined", counted)
    run_times = RunTimes(history)
    for batch in range(1, 61):
        run_times.law(A._replace(size=3, batch=batch))
    assert 120 <= calls["combined"] < 200, "one for the batch, one for its size, and a few for the wider groups"


def test_several_batches_decide_for_the_next_one() -> None:
    history = [ran(150.0 + place % 30, A._replace(size=50, batch=1 + place % 5), 10.0 - place) for place in range(150)]
    history += OTHERS["single jobs of the team"]
    law = RunTimes(history).law(A._replace(size=50, batch=9))
    assert law.below(200.0) > 0.9


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1, 3, 50]), st.integers(1, 100_000)), max_size=40))
def test_laws_do_not_depend_on_which_is_asked_for_first(jobs: list[tuple[int, int, int]]) -> None:
    history = [
        ran(float(seconds), A._replace(size=size, batch=batch), -float(place))
        for place, (batch, size, seconds) in enumerate(jobs)
    ]
    asked = [
        (A._replace(size=size, batch=batch), age) for batch in (1, 0, 7) for size in (1, 3, 50) for age in (0.0, 900.0)
    ]
    first, second = RunTimes(history), RunTimes(history)
    laws = {question: first.law(*question).times for question in asked}
    assert all(second.law(*question).times == laws[question] for question in reversed(asked))


def test_a_job_older_than_all_that_are_known_runs_on_for_long() -> None:
    left = draws(RunTimes([ran(100)] * 60), A, 5000.0, count=200)
    assert left[100] - 5000 > 1500


@pytest.mark.parametrize("age", [1e6, 1e7])
def test_a_job_older_than_any_law_runs_on_for_long(age: float) -> None:
    prospect = RunTimes([ran(100)] * 60).prospect(A, age)
    assert prospect.below == 0.0
    assert prospect.seconds(0.0) == pytest.approx(max(min(age * 2**0.5, LONGEST), age + 1))


@pytest.mark.parametrize(
    "odd",
    [ran(5, started=200), ran(-1), ran(500), ran(inf)],
    ids=["begins later", "ran backwards", "ended later", "ran for ever"],
)
def test_runs_that_a_wrong_clock_wrote_are_not_sound(odd: Ran) -> None:
    assert not sound(odd, 100.0)
    assert sound(ran(100), 100.0)
    assert RunTimes([odd, ran(100)], 100.0).known("a") == 1


def test_without_history_the_law_is_vague() -> None:
    run_times = RunTimes((), inf)
    assert run_times.count == run_times.known("a") == 0
    assert run_times.law(A).times == VAGUE_LAW.times
