from datetime import UTC, datetime, timedelta

import pytest

from taskgov.allocation.cron import parse_cron
from taskgov.allocation.windows import Opening, opening
from taskgov.policy.document import ChangeWindow

FRIDAY = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

MATCHES = {
    "every minute": ("* * * * *", "2026-11-20T12:34", True),
    "the minute named": ("30 12 * * *", "2026-11-20T12:30", True),
    "not another minute": ("30 12 * * *", "2026-11-20T12:31", False),
    "a step counts from the least": ("*/20 * * * *", "2026-11-20T12:40", True),
    "a step from a start": ("5/20 * * * *", "2026-11-20T12:25", True),
    "a range with a step": ("0 8-16/4 * * *", "2026-11-20T16:00", True),
    "a list": ("0 1,12 * * *", "2026-11-20T12:00", True),
    "a day of the week by name": ("0 12 * * FRI", "2026-11-20T12:00", True),
    "sunday as 7": ("0 12 * * 7", "2026-11-22T12:00", True),
    "a month by name": ("0 12 * nov *", "2026-11-20T12:00", True),
    "not another month": ("0 12 * dec *", "2026-11-20T12:00", False),
    "either day field is enough when both are given": ("0 12 1 * fri", "2026-11-20T12:00", True),
    "both day fields fail": ("0 12 1 * mon", "2026-11-20T12:00", False),
}


@pytest.mark.parametrize(("text", "moment", "want"), MATCHES.values(), ids=MATCHES.keys())
def test_cron_matches(text: str, moment: str, want: bool) -> None:
    assert parse_cron(text).matches(datetime.fromisoformat(moment)) is want


@pytest.mark.parametrize(
    "text",
    ["", "* * * *", "60 * * * *", "* * * * 8", "a * * * *", "*/0 * * * *", "5-1 * * * *", "*/x * * * *", "0 0 0 * *"],
)
def test_what_is_no_cron_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cron expression"):
        parse_cron(text)


def test_the_next_match_of_a_leap_day_is_found() -> None:
    assert parse_cron("0 0 29 2 *").next_match(FRIDAY) == datetime(2028, 2, 29, tzinfo=UTC)


def test_a_day_that_never_comes_has_no_match() -> None:
    assert parse_cron("0 0 31 2 *").next_match(FRIDAY) is None


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


def test_a_window_that_never_opens_is_closed_for_ever() -> None:
    assert opening([window("0 0 31 2 *")], FRIDAY) == Opening(is_open=False, next_at=None)


def test_without_windows_it_is_always_open() -> None:
    assert opening([], FRIDAY).is_open


def test_a_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="Mars/Olympus"):
        opening([window("* * * * *", zone="Mars/Olympus")], FRIDAY)
