"""Moments in and out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from taskgov.scheduling.instants import SECOND, ZERO, instant, moment, read_now, timestamp


def test_moments_are_read_from_text_and_datetime_alike() -> None:
    when = datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
    assert instant(when) == instant("2026-11-20T09:00:00.25Z") == read_now(when)
    assert instant(when.astimezone(timezone(timedelta(hours=9)))) == instant(when)
    assert moment(instant(when)) == when
    assert read_now(5) == 5


def test_a_missing_moment_is_earlier_than_every_other() -> None:
    assert instant(None) == ZERO < instant("1970-01-01T00:00:00Z") == 0
    assert timestamp(ZERO) == "0001-01-01T00:00:00Z"


def test_timestamps_keep_whole_seconds_as_the_api_server_does() -> None:
    assert timestamp(instant("2026-11-20T09:00:00Z") + SECOND // 2) == "2026-11-20T09:00:00Z"


def test_a_moment_without_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        instant("2026-11-20T09:00:00")
