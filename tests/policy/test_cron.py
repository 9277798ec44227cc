from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.policy.cron import is_open, is_time_zone, next_opening, parse_cron
from taskgov.policy.document import ChangeWindow

FRIDAY = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def window(cron: str, minutes: int = 60, zone: str = "UTC") -> ChangeWindow:
    return ChangeWindow(cron=cron, minutes=minutes, time_zone=zone)


@pytest.mark.parametrize(
    "cron",
    [
        "0 9 * * *",
        "*/15 9 * * *",
        "0-10/5 8-10 20 11 *",
        "0 9 * nov fri",
        "0 9 * 11 mon-fri",
        "0 9 * * 1,3,5",
        "0 9 1 * fri",
        "0 9 20 * mon",
        "0/30 9 * * *",
    ],
)
def test_the_moment_matches(cron: str) -> None:
    assert parse_cron(cron).matches(FRIDAY)


@pytest.mark.parametrize("cron", ["1 9 * * *", "0 10 * * *", "0 9 * * sat", "0 9 19 * *", "0 9 1 * mon", "0 9 * dec *"])
def test_the_moment_does_not_match(cron: str) -> None:
    assert not parse_cron(cron).matches(FRIDAY)


def test_sunday_is_nought_and_seven() -> None:
    sunday = FRIDAY + timedelta(days=2)

    assert all(parse_cron(f"0 9 * * {day}").matches(sunday) for day in ("0", "7", "sun", "5-7"))


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("0 9 * *", "five fields"),
        ("0 9 * * * *", "five fields"),
        ("60 9 * * *", "minute: '60' is not from 0 to 59"),
        ("0 24 * * *", "hour"),
        ("0 9 0 * *", "day of month"),
        ("0 9 * 13 *", "month"),
        ("0 9 * * 8", "day of week"),
        ("0 9 * * friday", "day of week: 'friday'"),
        ("0 17-9 * * *", "hour: '17-9' runs backwards"),
        ("*/0 9 * * *", "step"),
        ("*/x 9 * * *", "step"),
        ("0, 9 * * *", "minute"),
        ("@daily", "five fields"),
        ("٣ 9 * * *", "minute"),
    ],
)
def test_an_expression_that_is_wrong_says_where(cron: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_cron(cron)


def test_a_window_is_open_for_its_minutes_and_no_longer() -> None:
    nine = window("0 9 * * *", minutes=30)

    assert [is_open(nine, FRIDAY + timedelta(minutes=m, seconds=59)) for m in (-1, 0, 29, 30)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_window_may_stay_open_over_midnight() -> None:
    late = window("0 22 * * thu", minutes=12 * 60)

    assert is_open(late, FRIDAY)
    assert not is_open(late, FRIDAY + timedelta(hours=1))


def test_a_window_opens_by_the_clock_on_the_wall() -> None:
    berlin = window("0 9 * * *", zone="Europe/Berlin")

    assert is_open(berlin, datetime(2026, 7, 1, 7, 30, tzinfo=UTC))
    assert is_open(berlin, datetime(2026, 12, 1, 8, 30, tzinfo=UTC))


def test_the_next_opening_is_the_first_minute_that_matches() -> None:
    assert next_opening(window("30 17 * * mon"), FRIDAY) == datetime(2026, 11, 23, 17, 30, tzinfo=UTC)
    assert next_opening(window("0 9 * * *"), FRIDAY) == FRIDAY + timedelta(days=1)
    assert next_opening(window("0 9 29 2 *"), FRIDAY, within_days=400) is None
    assert next_opening(window("0 9 31 12 *", zone="Asia/Tokyo"), FRIDAY) == datetime(2026, 12, 31, 0, 0, tzinfo=UTC)


@given(st.integers(0, 60 * 24 * 400), st.sampled_from(["0 9 * * *", "*/7 3,4 * * sun", "15 2 1 * *"]))
def test_a_window_is_open_right_when_it_opens(minutes: int, cron: str) -> None:
    one_minute = window(cron, minutes=1, zone="America/New_York")

    opening = next_opening(one_minute, FRIDAY + timedelta(minutes=minutes))

    assert opening is not None
    assert is_open(one_minute, opening)


def test_time_zones_are_those_of_the_database() -> None:
    assert is_time_zone("Europe/Berlin")
    assert not is_time_zone("Mars")
    assert not is_time_zone("../etc/passwd")
    assert not is_time_zone("Europe")
    assert not is_time_zone("")
