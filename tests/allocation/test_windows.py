from datetime import UTC, datetime, timedelta

import pytest

from taskgov.allocation.windows import Opening, opening
from taskgov.policy.document import ChangeWindow

FRIDAY = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def window(cron: str, minutes: int = 60, zone: str = "UTC") -> ChangeWindow:
    return ChangeWindow(cron=cron, minutes=minutes, time_zone=zone)


def test_a_window_is_open_from_its_minute_until_its_end() -> None:
    at = window("0 12 * * *")
    assert opening([at], FRIDAY) == Opening(is_open=True)
    assert opening([at], FRIDAY + timedelta(minutes=59, seconds=59)).is_open
    assert opening([at], FRIDAY + timedelta(minutes=60)) == Opening(False, FRIDAY + timedelta(days=1))
    assert opening([at], FRIDAY - timedelta(seconds=1)) == Opening(False, FRIDAY)


def test_a_window_goes_by_the_clock_of_its_zone_in_winter_and_summer() -> None:
    at = window("0 3 * * *", zone="Europe/Berlin")
    assert opening([at], datetime(2026, 1, 10, tzinfo=UTC)).next_at == datetime(2026, 1, 10, 2, tzinfo=UTC)
    assert opening([at], datetime(2026, 7, 10, tzinfo=UTC)).next_at == datetime(2026, 7, 10, 1, tzinfo=UTC)


def test_the_first_window_to_open_counts() -> None:
    at = opening([window("0 3 * * *"), window("0 20 * * *")], FRIDAY)
    assert at == Opening(is_open=False, next_at=FRIDAY + timedelta(hours=8))


def test_one_open_window_is_enough() -> None:
    assert opening([window("0 3 * * *"), window("0 12 * * *")], FRIDAY) == Opening(is_open=True)


def test_a_window_that_never_opens_is_closed_for_ever() -> None:
    assert opening([window("0 0 31 2 *")], FRIDAY) == Opening(is_open=False, next_at=None)


def test_without_windows_it_is_always_open() -> None:
    assert opening([], FRIDAY).is_open


def test_a_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="Mars/Olympus"):
        opening([window("* * * * *", zone="Mars/Olympus")], FRIDAY)
