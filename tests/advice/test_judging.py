"""What a replay came to: waits, lost work, who is worse off; the cuts of the past; and shaken arrivals."""

from taskgov.advice.judging import NEVER, Result, TeamResult, judge
from taskgov.advice.noise import SHIFT, jittered
from taskgov.advice.past import DAY, HOUR, WEEK, Past, Piece
from taskgov.advice.splits import Split, splits

MINUTE = 60.0


def result(**waits: float) -> Result:
    return Result(1, 0, 0, 0, 0, 0, 0, {team: TeamResult(1, wait) for team, wait in waits.items()})


def test_a_job_waits_again_after_a_preemption_and_its_work_is_lost() -> None:
    work = [Piece("a", 0, 2 * HOUR, 4)]
    found = judge(work, [(0, HOUR, 2 * HOUR, True), (0, 3 * HOUR, 5 * HOUR, False)])
    assert (found.mean_wait, found.lost_gpu_hours, found.work_gpu_hours) == (2 * HOUR, 4, 8)
    assert (found.lost, found.preemptions, found.never_started) == (0.5, 1, 0)


def test_a_job_that_never_starts_counts_two_weeks_and_none_counts_more() -> None:
    work = [Piece("a", 0, HOUR, 1), Piece("b", 0, HOUR, 1)]
    found = judge(work, [(0, 20 * DAY, 20 * DAY + HOUR, False)])
    assert found.teams == {"a": TeamResult(1, NEVER), "b": TeamResult(1, NEVER)}
    assert found.never_started == 1


def test_a_job_that_does_not_start_again_after_a_preemption_counts_two_weeks() -> None:
    work = [Piece("a", 0, 2 * HOUR, 4), Piece("b", 0, HOUR, 4)]
    found = judge(work, [(0, 0, HOUR, True), (1, HOUR, 2 * HOUR, False)])
    assert found.teams == {"a": TeamResult(1, NEVER), "b": TeamResult(1, HOUR)}
    assert (found.never_started, found.preemptions) == (0, 1)


def test_the_95_percent_wait_is_one_that_95_percent_do_not_exceed() -> None:
    work = [Piece("a", 0, 1, 1)] * 20
    assert judge(work, [(n, n * MINUTE, n * MINUTE + 1, False) for n in range(20)]).p95_wait == 18 * MINUTE


def test_nothing_comes_to_nothing() -> None:
    found = judge([], [])
    assert (found.mean_wait, found.p95_wait, found.lost, found.teams) == (0, 0, 0, {})


def test_worse_is_five_percent_and_three_minutes_more() -> None:
    before = result(a=HOUR, b=MINUTE, c=HOUR)
    after = result(a=HOUR + 5 * MINUTE, b=3.5 * MINUTE, c=HOUR + 7 * MINUTE)
    assert after.worse_than(before) == ("c",)


def test_splits_lie_on_weeks_end_in_time_and_hold_jobs_on_both_sides() -> None:
    past = Past.of([Piece("a", week * WEEK + 1, HOUR, 1) for week in range(6) if week != 1], 6 * WEEK)
    assert splits(past, 1, 10) == tuple(Split(w * WEEK, (w + 1) * WEEK, (w + 2) * WEEK) for w in (2, 3, 4))
    assert splits(past, 1, 10, until=4 * WEEK) == (Split(2 * WEEK, 3 * WEEK, 4 * WEEK),)
    assert splits(past, 2, 1) == (Split(2 * WEEK, 4 * WEEK, 6 * WEEK),)
    assert splits(Past((), 0), 1, 10) == ()


def test_shaken_arrivals_stay_within_an_hour_and_the_window_and_are_the_same_each_time() -> None:
    work = tuple(Piece("a", 100 * MINUTE * n, HOUR, 1) for n in range(50))
    last = work[-1].arrival
    moved = jittered(work, 1, 0, last)
    assert moved == jittered(work, 1, 0, last)
    assert moved != jittered(work, 2, 0, last)
    assert all(abs(a.arrival - b.arrival) <= SHIFT and 0 <= a.arrival <= last for a, b in zip(moved, work, strict=True))
    assert sum(a.arrival < b.arrival for a, b in zip(moved, work, strict=True)) in range(15, 36)
