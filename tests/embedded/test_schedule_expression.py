from __future__ import annotations

from datetime import UTC, datetime

import pytest

from taskgov_embedded.eventbridge.schedule_expression import ScheduleError, parse

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)  # a Friday


def after(expression: str, moment: str, zone: str = "UTC") -> str | None:
    found = parse(expression, zone, START).next_after(datetime.fromisoformat(moment).replace(tzinfo=UTC))
    return None if found is None else found.strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize(
    ("expression", "moment", "zone", "want"),
    [
        ("rate(5 minutes)", "2026-11-20T09:00:00", "UTC", "2026-11-20T09:05:00"),
        ("rate(5 minutes)", "2026-11-20T09:07:00", "UTC", "2026-11-20T09:10:00"),
        ("rate(1 day)", "2026-11-20T09:00:00", "UTC", "2026-11-21T09:00:00"),
        ("cron(0 2 * * ? *)", "2026-11-20T09:00:00", "UTC", "2026-11-21T02:00:00"),
        ("cron(0 2 * * ? *)", "2026-11-20T09:00:00", "Asia/Seoul", "2026-11-20T17:00:00"),
        ("cron(0 2 * * ? *)", "2026-07-20T09:00:00", "Europe/Paris", "2026-07-21T00:00:00"),
        ("cron(15 10 ? * 6L 2026-2027)", "2026-11-20T11:00:00", "UTC", "2026-11-27T10:15:00"),
        ("cron(0 9 ? * MON-FRI *)", "2026-11-20T09:00:00", "UTC", "2026-11-23T09:00:00"),
        ("cron(0 0 ? * 2#1 *)", "2026-11-20T00:00:00", "UTC", "2026-12-07T00:00:00"),
        ("cron(0 0 L * ? *)", "2026-11-20T00:00:00", "UTC", "2026-11-30T00:00:00"),
        ("cron(0/20 9 * * ? *)", "2026-11-20T09:00:00", "UTC", "2026-11-20T09:20:00"),
        ("cron(0 0 29 2 ? *)", "2026-11-20T00:00:00", "UTC", "2028-02-29T00:00:00"),
        ("cron(0 0 1 1 ? 2020)", "2026-11-20T00:00:00", "UTC", None),
        ("at(2026-11-27T18:00:00)", "2026-11-20T00:00:00", "Europe/Berlin", "2026-11-27T17:00:00"),
        ("at(2026-11-19T18:00:00)", "2026-11-20T00:00:00", "UTC", None),
    ],
)
def test_the_next_moment(expression: str, moment: str, zone: str, want: str | None) -> None:
    assert after(expression, moment, zone) == want


def test_a_minute_that_the_clock_change_skips_is_left_out() -> None:
    assert after("cron(30 2 * * ? *)", "2026-03-28T12:00:00", "Europe/Berlin") == "2026-03-30T00:30:00"


@pytest.mark.parametrize(
    "expression",
    [
        "rate(1 minutes)",
        "rate(5 minute)",
        "rate(0 minutes)",
        "rate(90 seconds)",
        "cron(0 2 * * *)",
        "cron(0 2 * * * *)",
        "cron(0 2 ? * ? *)",
        "cron(60 2 * * ? *)",
        "cron(0 2 * FOO ? *)",
        "every day",
    ],
)
def test_an_expression_that_eventbridge_refuses(expression: str) -> None:
    with pytest.raises(ScheduleError):
        parse(expression, "UTC", START)
