"""The history in a record of work: batches of jobs, and which runs count."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from taskgov.estimates.history import History, basis_of, of_record
from taskgov.estimates.requests import Ran, Request
from taskgov.estimates.scenes import Background, Queue, queue_of
from taskgov.work.attempt import Attempt, End
from taskgov.work.measured import Span
from tests.services.test_estimate_starts import DAY, HOUR, MINUTE, attempt, queue
from tests.support.memory import NOON

SECOND = timedelta(seconds=1)


def recorded(attempts: list[Attempt], still: list[Attempt] | None = None) -> History:
    return of_record(attempts, [Span(NOON - 28 * DAY, NOON)], NOON.timestamp(), still or [])


def of_batch(number: int, count: int, at: timedelta = timedelta()) -> list[Attempt]:
    """Return jobs that were submitted 30 seconds apart, began an hour later and ran for an hour."""
    begun = [NOON - 5 * DAY + at + place * 30 * SECOND for place in range(count)]
    return [
        replace(attempt(f"{number}-{place}", came + HOUR, came + 2 * HOUR), created=came)
        for place, came in enumerate(begun)
    ]


def test_runs_and_arrivals_know_how_many_jobs_their_batch_has() -> None:
    large, alone, two = of_batch(1, 12), of_batch(2, 1, HOUR), of_batch(3, 2, 2 * HOUR)
    history = recorded([*large, *alone, *two])
    assert sorted(run.request.size for run in history.runs) == [1] * 3 + [10] * 12
    assert sorted(arrival.request.size for arrival in history.arrivals) == [1] * 3 + [10] * 12


def test_a_job_that_lost_its_quota_is_one_job_of_its_batch() -> None:
    first = of_batch(1, 2)
    evicted = [replace(one, end=End.EVICTED, ended=one.ended and one.ended - MINUTE, number=1) for one in first]
    again = [replace(one, number=2, admitted=one.ended, ended=one.ended and one.ended + HOUR) for one in first]
    history = recorded([*evicted, *again])
    assert [run.request.size for run in history.runs] == [1] * 4
    assert len(history.arrivals) == 2


def test_a_present_job_is_of_the_batch_that_the_record_knows() -> None:
    ended, still = of_batch(1, 20)[:15], of_batch(1, 20)[15:]
    history = recorded(ended, [replace(one, ended=None, end=None) for one in still])
    assert {about.size for about in history.backgrounds.values()} == {10}
    assert len({run.request.batch for run in history.runs}) == 1
    assert {about.batch for about in history.backgrounds.values()} == {run.request.batch for run in history.runs}
    assert {arrival.request.batch for arrival in history.arrivals} == {0}, "what comes is not of this batch"
    present = queue_of(queue().snapshot(), {}, {"uid-waits": Background("", 0.0, 50, 7)}).scene.present
    assert {job.workload.uid: job.request.size for job in present} == {
        "uid-a-own": 1,
        "uid-b-own": 1,
        "uid-waits": 50,
    }
    assert {job.request.batch for job in present if job.workload.uid == "uid-waits"} == {7}


def test_jobs_that_were_submitted_together_are_a_batch_before_the_record_knows_them() -> None:
    found = queue_of(queue("one", "two", "three", "four").snapshot(), {}).scene.present
    assert [job.request.size for job in found if job.held is None] == [3] * 4


def test_runs_that_began_before_the_history_do_not_count_since_only_the_long_ones_are_in_it() -> None:
    now, start = NOON.timestamp(), (NOON - 2 * HOUR).timestamp()
    runs = tuple(Ran(Request("team-a", 4), start + 60.0 * place, 600.0, ended=True) for place in range(-30, 60))
    here: Queue = queue_of(queue().snapshot(), {})
    found = basis_of(History(runs, (), ((start, now),), "record"), here, now)
    assert found.run_times.count == 60 + sum(run.started >= start for run in here.runs)


def test_a_deleted_job_has_ended_and_one_that_lost_its_quota_has_not() -> None:
    ends = {end: recorded([attempt("a", NOON - 2 * HOUR, NOON - HOUR, end)]).runs for end in End}
    assert {end: [run.ended for run in runs] for end, runs in ends.items()} == {
        End.FINISHED: [True],
        End.GONE: [True],
        End.EVICTED: [False],
        End.UNSEEN: [],
    }


def test_a_job_that_was_deleted_in_a_gap_ran_at_least_until_the_gap() -> None:
    gap = [Span(NOON - 28 * DAY, NOON - 3 * DAY), Span(NOON - DAY, NOON)]
    rows = [
        attempt("in the gap", NOON - 4 * DAY, NOON - DAY, End.GONE),
        attempt("began in the gap", NOON - 2 * DAY, NOON - DAY, End.GONE),
        attempt("finished in the gap", NOON - 4 * DAY, NOON - 2 * DAY),
        attempt("after it", NOON - 4 * DAY, NOON - DAY + MINUTE, End.GONE),
    ]
    rows.append(attempt("not measured yet", NOON - 4 * DAY, NOON + HOUR, End.GONE))  # the first measurement after NOON
    found = [(run.seconds / DAY.total_seconds(), run.ended) for run in of_record(rows, gap, NOON.timestamp()).runs]
    assert found == [(1.0, False), (0.0, False), (2.0, True), (3.0 + 1 / 1440, True), (4.0, False)]
