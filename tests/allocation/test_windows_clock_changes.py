"""Change windows through the clock changes of IANA zones, against a minute-by-minute search that shares no code."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskgov.allocation.windows import Opening, opening
from taskgov.policy.document import ChangeWindow

MINUTE = timedelta(minutes=1)
SEARCHED = timedelta(days=4)
"""How far the search looks ahead: over each date that a zone skips, and any hour of its days."""

AUTUMN = datetime(2026, 10, 25, 1, 0, tzinfo=UTC)
"""Berlin: 03:00 becomes 02:00."""
SPRING = datetime(2027, 3, 28, 1, 0, tzinfo=UTC)
"""Berlin: 02:00 becomes 03:00."""

CHANGES = {
    "the hour that comes twice": ("Europe/Berlin", AUTUMN),
    "the hour that is skipped": ("Europe/Berlin", SPRING),
    "half an hour that comes twice": ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, 0, tzinfo=UTC)),
    "half an hour that is skipped": ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    "a day that is skipped": ("Pacific/Apia", datetime(2011, 12, 30, 10, 0, tzinfo=UTC)),
    "a day that comes twice": ("Pacific/Kwajalein", datetime(1969, 9, 30, 13, 0, tzinfo=UTC)),
    "a midnight that is skipped": ("America/Sao_Paulo", datetime(2018, 11, 4, 3, 0, tzinfo=UTC)),
    "back to the day before at midnight": ("America/Sao_Paulo", datetime(2019, 2, 17, 2, 0, tzinfo=UTC)),
    "back to the day before after midnight": ("America/St_Johns", datetime(2006, 10, 29, 2, 31, tzinfo=UTC)),
    "two hours": ("Antarctica/Troll", datetime(2026, 10, 25, 1, 0, tzinfo=UTC)),
    "an offset with seconds": ("Africa/Monrovia", datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC)),
    "no change, an offset of half an hour": ("Asia/Kolkata", AUTUMN),
    "no change": ("UTC", AUTUMN),
}


@dataclass(frozen=True)
class When:
    """What a cron expression matches, as lists; no list is any. The expression is written from it, never read."""

    minutes: list[int] | None = None
    hours: list[int] | None = None
    days: list[int] | None = None
    weekdays: list[int] | None = None

    @property
    def cron(self) -> str:
        fields = [self.minutes, self.hours, self.days, None, self.weekdays]
        return " ".join("*" if field is None else ",".join(map(str, field)) for field in fields)

    def is_now(self, local: datetime) -> bool:
        day = self.days is None or local.day in self.days
        weekday = self.weekdays is None or (local.weekday() + 1) % 7 in self.weekdays
        both = self.days is not None and self.weekdays is not None
        right_day = (day or weekday) if both else (day and weekday)
        right_hour = self.hours is None or local.hour in self.hours
        return right_day and right_hour and (self.minutes is None or local.minute in self.minutes)


def numbers(low: int, high: int) -> st.SearchStrategy[list[int] | None]:
    return st.none() | st.lists(st.integers(low, high), min_size=1, max_size=3, unique=True)


WHENS = st.builds(
    When, minutes=numbers(0, 59), hours=numbers(0, 4) | numbers(0, 23), days=numbers(1, 31), weekdays=numbers(0, 6)
)


def searched(when: When, minutes: int, zone: str, now: datetime) -> Opening | None:
    """Try every minute of UTC; None where nothing is found."""
    clock = ZoneInfo(zone)
    minute = (now - timedelta(minutes=minutes)).replace(second=0, microsecond=0)
    while minute <= now + SEARCHED:
        is_due = when.is_now(minute.astimezone(clock))
        if is_due and now - timedelta(minutes=minutes) < minute <= now:
            return Opening(is_open=True)
        if is_due and minute > now:
            return Opening(is_open=False, next_at=minute)
        minute += MINUTE
    return None


def asked(when: When, minutes: int, zone: str, now: datetime) -> Opening:
    return opening([ChangeWindow(cron=when.cron, minutes=minutes, time_zone=zone)], now)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    when=WHENS,
    minutes=st.integers(1, 90) | st.integers(1, 3_000),
    change=st.sampled_from(sorted(CHANGES)),
    seconds=st.integers(-10_000, 10_000) | st.integers(-200_000, 200_000),
)
@example(When([30], [2]), 60, "the hour that comes twice", 1_800)
@example(When([30], [2]), 60, "the hour that is skipped", 0)
@example(When([15], [1]), 20, "half an hour that comes twice", 900)
@example(When([0], [12]), 60, "a day that is skipped", 0)
def test_a_window_is_open_while_a_minute_that_matches_lies_within_its_minutes(
    when: When, minutes: int, change: str, seconds: int
) -> None:
    zone, moment = CHANGES[change]
    now = moment + timedelta(seconds=seconds)
    want, got = searched(when, minutes, zone, now), asked(when, minutes, zone, now)
    if want is None:
        assert not got.is_open
        assert got.next_at is None or got.next_at > now + SEARCHED
    else:
        assert got == want


BERLIN = {
    "the first 02:30 opens": (AUTUMN - timedelta(minutes=30), Opening(is_open=True)),
    "it closes before the second": (AUTUMN, Opening(is_open=False, next_at=AUTUMN + timedelta(minutes=30))),
    "the second 02:30 opens": (AUTUMN + timedelta(minutes=30), Opening(is_open=True)),
    "and closes": (
        AUTUMN + timedelta(minutes=60),
        Opening(is_open=False, next_at=AUTUMN + timedelta(days=1, minutes=30)),
    ),
    "the 02:30 that is skipped never opens": (
        SPRING,
        Opening(is_open=False, next_at=SPRING + timedelta(hours=23, minutes=30)),
    ),
    "nor does 03:30 open in its place": (
        SPRING + timedelta(minutes=30),
        Opening(is_open=False, next_at=SPRING + timedelta(hours=23, minutes=30)),
    ),
}


@pytest.mark.parametrize(("now", "want"), BERLIN.values(), ids=BERLIN.keys())
def test_half_past_two_in_berlin(now: datetime, want: Opening) -> None:
    assert asked(When([30], [2]), 30, "Europe/Berlin", now) == want


def test_a_window_lasts_its_minutes_through_a_clock_change() -> None:
    one = When([30], [1])
    opened = AUTUMN - timedelta(minutes=90)
    assert asked(one, 120, "Europe/Berlin", opened + timedelta(minutes=119)).is_open
    assert not asked(one, 120, "Europe/Berlin", opened + timedelta(minutes=120)).is_open


def test_a_date_that_a_zone_skipped_has_no_opening() -> None:
    window: dict[str, Any] = {"cron": "0 12 30 12 *", "minutes": 60, "time_zone": "Pacific/Apia"}
    at = opening([ChangeWindow(**window)], datetime(2011, 12, 29, 12, 0, tzinfo=UTC))
    assert at == Opening(is_open=False, next_at=datetime(2012, 12, 29, 22, 0, tzinfo=UTC))
