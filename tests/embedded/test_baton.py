from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from taskgov_embedded.virtual_time.clock import VirtualClock
from taskgov_embedded.virtual_time.cooperative import LONGEST_WAIT, Baton, CooperativeEvent, CooperativeThread

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def baton() -> Baton:
    return Baton(VirtualClock(START))


def test_threads_run_one_at_a_time_in_the_order_of_their_start(baton: Baton) -> None:
    done: list[str] = []

    def work(name: str) -> None:
        for step in range(3):
            done.append(f"{name}{step}")
            baton.sleep(1)

    for name in "ab":
        baton.spawn(lambda name=name: work(name), name)  # type: ignore[misc]
    baton.run(10, recurring=False)
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_day_of_waiting_takes_no_time(baton: Baton) -> None:
    started = time.perf_counter()
    baton.spawn(lambda: baton.sleep(86400), "sleeper")
    baton.run(2 * 86400, recurring=False)
    assert baton.clock.now == START + timedelta(days=1)
    assert time.perf_counter() - started < 1


def test_an_event_wakes_who_waits_and_a_time_out_is_told_apart(baton: Baton) -> None:
    event, seen = CooperativeEvent(baton), []
    baton.spawn(lambda: seen.append(event.wait(10)), "patient")
    baton.spawn(lambda: seen.append(event.wait(1)), "impatient")
    baton.clock.after(5, event.set)
    baton.run(60, recurring=False)
    assert seen == [False, True]
    assert baton.clock.now == START + timedelta(seconds=5)


def test_a_join_ends_with_the_thread_or_with_its_time_out(baton: Baton) -> None:
    seen: list[bool] = []

    def parent() -> None:
        child = CooperativeThread(baton, target=baton.sleep, args=(10,))
        child.start()
        child.join(timeout=4)
        seen.append(child.is_alive())
        child.join()
        seen.append(child.is_alive())

    baton.spawn(parent, "parent")
    baton.run(60, recurring=False)
    assert seen == [True, False]


def test_a_wait_without_end_is_no_moment_to_jump_to(baton: Baton) -> None:
    event = CooperativeEvent(baton)
    baton.spawn(lambda: event.wait(LONGEST_WAIT), "for ever")
    baton.run(10 * LONGEST_WAIT, recurring=False)
    assert baton.clock.now == START


def test_an_error_of_a_thread_reaches_the_driver(baton: Baton) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    baton.spawn(fail, "fails")
    with pytest.raises(ZeroDivisionError):
        baton.run(1, recurring=False)


def test_closing_ends_every_thread_that_waits(baton: Baton) -> None:
    before = threading.active_count()
    for _ in range(5):
        baton.spawn(lambda: baton.sleep(1000), "sleeper")
    baton.run_ready()
    assert threading.active_count() == before + 5
    baton.close()
    assert threading.active_count() == before


def test_running_until_an_event_stops_there(baton: Baton) -> None:
    task = baton.spawn(lambda: baton.sleep(3), "sleeper")
    baton.spawn(lambda: baton.sleep(1000), "other")
    assert baton.run_until(task.done, max_seconds=900)
    assert baton.clock.now == START + timedelta(seconds=3)
    baton.close()
