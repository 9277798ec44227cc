from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.policy.cron import is_time_zone, parse_cron

FRIDAY = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


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
        ("0 9 32 * *", "day of month: '32' is not from 1 to 31"),
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


@pytest.mark.parametrize(
    ("cron", "want"),
    [
        ("30 17 * * mon", datetime(2026, 11, 23, 17, 30, tzinfo=UTC)),
        ("0 9 * * *", FRIDAY + timedelta(days=1)),
        ("1 9 * * *", FRIDAY + timedelta(minutes=1)),
        ("0 9 29 2 *", datetime(2028, 2, 29, 9, 0, tzinfo=UTC)),
        ("59 23 31 12 *", datetime(2026, 12, 31, 23, 59, tzinfo=UTC)),
        ("0 9 30 2 *", None),
    ],
)
def test_the_next_match_is_the_first_later_minute_that_matches(cron: str, want: datetime | None) -> None:
    assert parse_cron(cron).next_match(FRIDAY) == want


def test_it_matches_by_the_clock_on_the_wall_in_summer_and_winter() -> None:
    berlin, nine = ZoneInfo("Europe/Berlin"), parse_cron("0 9 * * *")

    summer = nine.next_match(datetime(2026, 7, 1, 0, 0, tzinfo=UTC).astimezone(berlin))
    winter = nine.next_match(datetime(2026, 12, 1, 0, 0, tzinfo=UTC).astimezone(berlin))

    assert summer == datetime(2026, 7, 1, 7, 0, tzinfo=UTC)
    assert winter == datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


@given(st.integers(0, 60 * 24 * 400), st.sampled_from(["0 9 * * *", "*/7 3,4 * * sun", "15 2 1 * *"]))
def test_no_minute_before_the_next_match_matches(minutes: int, cron: str) -> None:
    start, parsed = FRIDAY + timedelta(minutes=minutes), parse_cron(cron)

    found = parsed.next_match(start)

    assert found is not None
    assert parsed.matches(found)
    between = range(1, min(3_000, int((found - start).total_seconds()) // 60))
    assert not any(parsed.matches(start + timedelta(minutes=m)) for m in between)


def test_time_zones_are_those_of_the_database() -> None:
    assert is_time_zone("Europe/Berlin")
    assert not is_time_zone("Mars")
    assert not is_time_zone("../etc/passwd")
    assert not is_time_zone("Europe")
    assert not is_time_zone("")
