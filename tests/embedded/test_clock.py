from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from taskgov_embedded.virtual_time.clock import VirtualClock

START = datetime(2026, 1, 1, tzinfo=UTC)


def every_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0) + timedelta(minutes=1)


def test_the_process_reads_the_clock_while_it_is_installed() -> None:
    clock = VirtualClock(START)
    before = time.time()
    clock.install()
    try:
        assert datetime.now(UTC) == START
        clock.move_to(START + timedelta(hours=1))
        assert datetime.now(UTC) == START + timedelta(hours=1)
        assert time.time() == (START + timedelta(hours=1)).timestamp()
    finally:
        clock.uninstall()
    assert abs(time.time() - before) < 60


def test_a_start_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        VirtualClock(datetime(2026, 1, 1))  # noqa: DTZ001 that is the point


def test_timers_of_one_moment_keep_the_order_of_their_making() -> None:
    clock, done = VirtualClock(START), []
    for name in "abc":
        clock.after(5, lambda name=name: done.append(name))  # type: ignore[misc]
    clock.after(1, lambda: done.append("first"))
    while (timer := clock.next_once()) is not None:
        clock.fire(timer)
    assert done == ["first", "a", "b", "c"]
    assert clock.now == START + timedelta(seconds=5)


def test_a_cancelled_timer_is_passed_over() -> None:
    clock = VirtualClock(START)
    clock.after(1, lambda: None).cancel()
    assert clock.next_once() is None


def test_a_moment_that_has_passed_is_due_now_and_time_never_goes_back() -> None:
    clock = VirtualClock(START)
    assert clock.at(START - timedelta(days=1), lambda: None).due == START
    clock.move_to(START - timedelta(days=1))
    assert clock.now == START


def test_a_fraction_of_a_millisecond_is_rounded_up() -> None:
    clock = VirtualClock(START)
    assert clock.after(0.0001, lambda: None).due == START + timedelta(milliseconds=1)
    assert clock.after(60.0, lambda: None).due == START + timedelta(seconds=60)


def test_recurring_moments_that_were_jumped_over_are_not_made_up_for() -> None:
    clock, done = VirtualClock(START), []
    clock.every(every_minute, lambda: done.append(clock.now))
    clock.move_to(START + timedelta(minutes=10, seconds=30))
    clock.pass_over_missed()
    timer = clock.next_of_all()
    assert timer is not None
    clock.fire(timer)
    assert done == [START + timedelta(minutes=11)]


def test_only_the_named_recurring_moments_are_done() -> None:
    clock, done = VirtualClock(START), []
    clock.every(every_minute, lambda: done.append("a"), "a")
    clock.every(every_minute, lambda: done.append("b"), "b")
    for _ in range(2):
        timer = clock.next_of_all()
        assert timer is not None
        clock.fire(timer, only=["b"])
    assert done == ["b"]
