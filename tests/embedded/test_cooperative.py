from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from taskgov_embedded.virtual_time.clock import VirtualClock
from taskgov_embedded.virtual_time.cooperative import LONGEST_WAIT, CooperativeEvent, Turns

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def turns() -> Turns:
    return Turns(VirtualClock(START))


def test_threads_run_one_at_a_time_in_the_order_of_their_start(turns: Turns) -> None:
    done: list[str] = []

    def work(name: str) -> None:
        for step in range(3):
            done.append(f"{name}{step}")
            turns.sleep(1)

    for name in "ab":
        turns.spawn(lambda name=name: work(name), name)  # type: ignore[misc]
    turns.run(10, recurring=False)
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_day_of_waiting_takes_no_time(turns: Turns) -> None:
    started = time.perf_counter()
    turns.spawn(lambda: turns.sleep(86400), "sleeper")
    turns.run(2 * 86400, recurring=False)
    assert turns.clock.now == START + timedelta(days=1)
    assert time.perf_counter() - started < 1


def test_an_event_wakes_who_waits_and_a_time_out_is_distinguished(turns: Turns) -> None:
    event, seen = CooperativeEvent(turns), []
    turns.spawn(lambda: seen.append(event.wait(10)), "patient")
    turns.spawn(lambda: seen.append(event.wait(1)), "impatient")
    turns.clock.after(5, event.set)
    turns.run(60, recurring=False)
    assert seen == [False, True]
    assert turns.clock.now == START + timedelta(seconds=5)


def test_a_wait_without_end_is_no_moment_to_jump_to(turns: Turns) -> None:
    event = CooperativeEvent(turns)
    turns.spawn(lambda: event.wait(LONGEST_WAIT), "forever")
    turns.run(10 * LONGEST_WAIT, recurring=False)
    assert turns.clock.now == START


def test_an_error_of_a_thread_reaches_the_driver(turns: Turns) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    turns.spawn(fail, "fails")
    with pytest.raises(ZeroDivisionError):
        turns.run(1, recurring=False)


def test_closing_ends_every_thread_that_waits(turns: Turns) -> None:
    before = threading.active_count()
    for _ in range(5):
        turns.spawn(lambda: turns.sleep(1000), "sleeper")
    turns.run_ready()
    assert threading.active_count() == before + 5
    turns.close()
    assert threading.active_count() == before


def test_running_until_an_event_stops_there(turns: Turns) -> None:
    task = turns.spawn(lambda: turns.sleep(3), "sleeper")
    turns.spawn(lambda: turns.sleep(1000), "other")
    assert turns.run_until(task.done, max_seconds=900)
    assert turns.clock.now == START + timedelta(seconds=3)
    turns.close()
