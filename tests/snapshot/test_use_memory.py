"""What is remembered of use: exact over gaps, restarts, midnights and clocks that differ."""

import gzip
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.snapshot.use_memory import (
    DAYS_KEPT,
    LONGEST_PAUSE,
    MOST_PEAKS,
    Peak,
    Period,
    Place,
    UseMemory,
    UseNow,
    Watched,
    budget_use,
    observed_use,
    period_start,
    remember_use,
)

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
A: Place = ("team-a", "ml.g5.8xlarge")
NOTHING: frozenset[Place] = frozenset()


def using(instances: Fraction | int, gpus: int | None = None, place: Place = A) -> UseNow:
    held = int(instances) if gpus is None else gpus
    return UseNow({place: Fraction(instances)}, {place[0]: 7 * held} if held else {})


def looked(*looks: tuple[timedelta, UseNow], start: datetime = NOON, memory: UseMemory | None = None) -> UseMemory:
    memory = memory or UseMemory()
    for after, use in looks:
        memory = remember_use(memory, use, start + after)
    return memory


def every_minute(
    minutes: int, use: UseNow, start: datetime = NOON, memory: UseMemory | None = None, first: int = 0
) -> UseMemory:
    return looked(*((timedelta(minutes=n), use) for n in range(first, minutes + 1)), start=start, memory=memory)


def hours_of(memory: UseMemory, now: datetime, period: Period = "month", team: str = "team-a") -> float:
    use = budget_use(memory, team, period, now)
    assert use is not None
    return use.gpu_hours


def peak_of(memory: UseMemory, now: datetime, window: int = 168, use: UseNow | None = None) -> float:
    (seen,) = observed_use(memory, use or using(0), NOTHING, now, window)
    return seen.peak_instances


def test_a_document_that_is_read_again_is_parsed_once() -> None:
    stored = looked((timedelta(), using(2))).to_bytes()
    assert UseMemory.from_bytes(stored) is UseMemory.from_bytes(bytes(bytearray(stored)))


def test_an_hour_of_two_gpus_is_two_gpu_hours_however_often_somebody_looked() -> None:
    end = NOON + timedelta(hours=1)
    often = every_minute(60, using(2))
    seldom = looked(*((timedelta(minutes=n), using(2)) for n in range(0, 61, 10)))
    assert (hours_of(often, end), hours_of(seldom, end)) == (2, 2)


def test_a_second_look_in_the_same_minute_adds_no_time() -> None:
    once = every_minute(10, using(3))
    assert remember_use(once, using(3), NOON + timedelta(minutes=10)) == once
    assert remember_use(once, using(3), NOON + timedelta(minutes=10, microseconds=9)) == once


def test_a_clock_a_little_behind_adds_no_time_and_the_next_look_none_twice() -> None:
    memory = every_minute(10, using(6))
    late = remember_use(memory, using(6), NOON + timedelta(minutes=9, seconds=58))
    assert late == memory
    assert hours_of(remember_use(late, using(6), NOON + timedelta(minutes=20)), NOON) == 2


def test_what_nobody_saw_is_not_counted_and_the_window_begins_anew() -> None:
    memory = every_minute(60, using(1))
    back = NOON + timedelta(hours=5)
    after = remember_use(memory, using(1), back)
    assert hours_of(after, back) == 1
    (seen,) = observed_use(after, using(1), NOTHING, back, 168)
    assert (seen.hours, seen.peak_instances) == (0, 1)


def test_a_pause_as_long_as_the_alarm_allows_is_no_gap() -> None:
    memory = looked((timedelta(), using(4)), (LONGEST_PAUSE, using(4)))
    (seen,) = observed_use(memory, using(4), NOTHING, NOON + LONGEST_PAUSE, 168)
    assert (hours_of(memory, NOON), seen.hours) == (1, 0.25)


def test_nothing_is_said_to_be_observed_when_the_last_look_is_too_long_ago() -> None:
    memory = every_minute(60, using(1))
    assert observed_use(memory, using(1), NOTHING, NOON + timedelta(hours=2), 1) == ()


def test_a_clock_that_was_set_back_forgets_what_lies_ahead_and_begins_anew() -> None:
    tomorrow = NOON + timedelta(days=1)
    memory = every_minute(60, using(5), start=tomorrow, memory=every_minute(30, using(2)))
    after = remember_use(memory, using(1), NOON + timedelta(hours=1))
    assert hours_of(after, NOON) == 1
    (seen,) = observed_use(after, using(1), NOTHING, NOON + timedelta(hours=1), 168)
    assert (seen.hours, seen.peak_instances) == (0, 1)


def test_the_peak_of_a_window_is_the_most_at_any_moment_of_it() -> None:
    memory = every_minute(59, using(Fraction(7, 2)))
    memory = every_minute(59 + 180, using(1), memory=memory, first=60)
    end = NOON + timedelta(hours=3, minutes=59)
    assert (peak_of(memory, end, 168), peak_of(memory, end, 1)) == (3.5, 1)


def test_the_first_hour_of_a_window_counts_as_a_whole() -> None:
    memory = every_minute(2, using(3))
    memory = every_minute(90, using(1), memory=memory, first=3)
    assert peak_of(memory, NOON + timedelta(minutes=90), 1) == 3  # 12:30 is in the hour of the peak at 12:02


def test_use_of_this_moment_shows_before_anybody_has_kept_it() -> None:
    assert peak_of(every_minute(60, using(1)), NOON + timedelta(hours=1), use=using(4)) == 4


def test_a_part_of_an_instance_is_rounded_up_and_a_whole_one_is_exact() -> None:
    assert peak_of(every_minute(1, using(Fraction(1, 3))), NOON) == 0.334
    assert peak_of(every_minute(1, using(Fraction(8, 4))), NOON) == 2


def test_no_more_is_said_to_be_observed_than_the_window() -> None:
    (seen,) = observed_use(every_minute(180, using(1)), using(1), NOTHING, NOON + timedelta(hours=3), 2)
    assert seen.hours == 2


def test_a_team_that_left_is_forgotten_and_what_it_spent_is_not() -> None:
    memory = remember_use(every_minute(60, using(1)), UseNow(), NOON + timedelta(minutes=61))
    assert (memory.watched, hours_of(memory, NOON)) == ({}, 1)


def test_where_work_waits_is_said() -> None:
    (seen,) = observed_use(every_minute(1, using(0)), using(0), frozenset({A}), NOON, 1)
    assert seen.pending


@pytest.mark.parametrize(
    ("start", "period", "spent"),
    [
        (datetime(2026, 11, 20, 23, 30, tzinfo=UTC), "day", 0.5),
        (datetime(2026, 11, 20, 23, 30, tzinfo=UTC), "week", 1),
        (datetime(2026, 11, 22, 23, 30, tzinfo=UTC), "week", 0.5),  # Sunday night
        (datetime(2026, 11, 30, 23, 30, tzinfo=UTC), "month", 0.5),
        (datetime(2026, 12, 31, 23, 30, tzinfo=UTC), "month", 0.5),
        (datetime(2028, 2, 28, 23, 30, tzinfo=UTC), "month", 1),  # the 29th follows
    ],
)
def test_an_hour_over_midnight_is_split_between_the_periods(start: datetime, period: Period, spent: float) -> None:
    assert hours_of(every_minute(60, using(1), start=start), start + timedelta(hours=1), period) == spent


def test_midnight_is_midnight_in_utc_whatever_zone_the_moment_is_given_in() -> None:
    tokyo = datetime.fromisoformat("2026-11-21T08:30:00+09:00")  # 23:30 of the 20th in UTC
    assert period_start("day", tokyo) == datetime(2026, 11, 20, tzinfo=UTC)
    assert every_minute(60, using(1), start=tokyo).spent["team-a"] == {
        date(2026, 11, 20): 7 * 1800,
        date(2026, 11, 21): 7 * 1800,
    }


def test_before_the_first_look_no_budget_is_measured_and_after_it_a_team_without_use_has_used_nothing() -> None:
    assert budget_use(UseMemory(), "team-a", "month", NOON) is None
    assert hours_of(looked((timedelta(), UseNow())), NOON) == 0


def test_a_whole_month_is_kept_and_what_no_budget_asks_for_is_not() -> None:
    memory = UseMemory(
        at=datetime(2026, 12, 31, 23, 59, tzinfo=UTC),
        spent={"team-a": {date(2026, 12, 1): 7 * 3600}, "team-b": {date(2026, 11, 29): 7}},
    )
    after = remember_use(memory, UseNow(), datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert (hours_of(after, NOON + timedelta(days=41)), set(after.spent)) == (1, {"team-a"})


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b'{"version": 2}',
        b"{",
        b"null",
        b"\x1f\x8b",
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b"{}", mtime=0)[:-4],
    ],
)
def test_what_is_no_memory_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        UseMemory.from_bytes(text)


Looks = list[tuple[int, int]]
looks = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 5)), min_size=1, max_size=40)
"""Seconds since the previous measurement, and instances in use."""


def played(steps: Looks) -> tuple[UseMemory, list[tuple[datetime, int]]]:
    memory, now, seen = UseMemory(), NOON, []
    for seconds, count in steps:
        now += timedelta(seconds=seconds)
        memory = remember_use(memory, using(count), now)
        seen.append((now, count))
    return memory, seen


@settings(deadline=None)  # the machine may be busy
@given(looks)
def test_a_memory_comes_back_from_its_document_as_it_was(steps: Looks) -> None:
    memory, _ = played(steps)
    assert UseMemory.from_bytes(memory.to_bytes()) == memory


@settings(deadline=None)  # the machine may be busy
@given(looks)
def test_gpu_time_is_the_sum_of_what_was_seen_over_the_times_without_a_gap(steps: Looks) -> None:
    memory, _ = played(steps)
    expected = sum(seconds * count for seconds, count in steps[1:] if seconds <= LONGEST_PAUSE.total_seconds())
    assert sum(memory.spent.get("team-a", {}).values()) == 7 * expected


@settings(deadline=None)  # the machine may be busy
@given(looks, st.integers(1, 200))
def test_the_peak_is_never_less_than_what_was_seen_in_the_window(steps: Looks, window: int) -> None:
    memory, seen = played(steps)
    now = seen[-1][0]
    within = [count for at, count in seen if at >= now - timedelta(hours=window)]
    within_and_an_hour = [count for at, count in seen if at >= now - timedelta(hours=window + 1)]
    assert max(within) <= peak_of(memory, now, window) <= max(within_and_an_hour)


@settings(deadline=None)  # the machine may be busy
@given(looks)
def test_no_more_peaks_are_kept_than_there_are_numbers_of_instances(steps: Looks) -> None:
    memory, _ = played(steps)
    peaks: tuple[Peak, ...] = memory.watched[A].peaks
    values = [value for _, value in peaks]
    assert values == sorted(set(values), reverse=True)
    assert len(peaks) <= 5


def test_of_a_use_that_falls_for_months_a_bounded_number_of_peaks_is_kept_and_none_is_too_low() -> None:
    """Every hour a little less, for 80 days: no peak is reached by a later one."""
    hours = 80 * 24
    memory, now = UseMemory(), NOON
    for number in range(hours):
        now = NOON + timedelta(hours=number)
        memory = remember_use(memory, using(Fraction(2 * hours - number, 1000)), now)
    peaks = memory.watched[A].peaks
    assert len(peaks) == MOST_PEAKS
    assert [value for _, value in peaks] == sorted({value for _, value in peaks}, reverse=True)
    for window in (1, 24, 168, 24 * 60, 24 * 80):
        true = (2 * hours - max(hours - 1 - window, 0)) / 1000
        assert true <= peak_of(memory, now, window) <= true * 1.1


@settings(deadline=None, max_examples=25)  # the machine may be busy
@given(st.lists(st.integers(0, 3000), min_size=60, max_size=200), st.integers(1, 200))
def test_a_peak_that_was_put_together_is_never_less_than_what_was_seen(values: list[int], window: int) -> None:
    falling = sorted(values, reverse=True)
    memory, now = UseMemory(), NOON
    for number, value in enumerate(falling):
        now = NOON + timedelta(hours=number)
        memory = remember_use(memory, using(Fraction(value, 1000)), now)
    assert len(memory.watched[A].peaks) <= MOST_PEAKS
    assert peak_of(memory, now, window) >= falling[max(len(falling) - 1 - window, 0)] / 1000


def test_a_thousand_teams_with_fifteen_types_have_a_bounded_document() -> None:
    """The peaks are the most that are kept, and every day of a month has its GPU time."""
    full = tuple((500_000 + number, 100_000 - number) for number in range(MOST_PEAKS))
    days = {date(2026, 11, 1) + timedelta(days=number): 7 * 99_999_999 for number in range(DAYS_KEPT + 1)}
    teams = [f"team-{number:04}" for number in range(100)]
    types = [f"ml.p5en.{number}xlarge" for number in range(15)]
    memory = UseMemory(
        NOON,
        {(team, one): Watched(NOON, full) for team in teams for one in types},
        dict.fromkeys(teams, days),
    )
    assert 10 * len(gzip.decompress(memory.to_bytes())) < 16_000_000
    assert 10 * len(memory.to_bytes()) < 5_000_000
