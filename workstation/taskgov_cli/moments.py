"""Moments as people type them: `friday`, `friday 18:00`, `2026-11-27T18:00Z`, `tomorrow`, `3d`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from dateutil import parser

from taskgov_cli.durations import duration

FORMS: Final = "friday, friday 18:00, 2026-11-27, 2026-11-27T18:00Z, tomorrow, 3d, 12h"
DAYS: Final = {"today": 0, "tomorrow": 1}


def until(text: str, now: datetime) -> datetime:
    """Return the end that somebody types, in UTC unless it names a zone. Raises ValueError with the forms.

    A day without a time means its end: `friday` is Saturday, 00:00. A day of the week is the next one, or today. A
    duration counts from `now`.

    Example:
        >>> monday = datetime(2026, 11, 23, 10, tzinfo=UTC)
        >>> until("friday", monday).isoformat()
        '2026-11-28T00:00:00+00:00'

    """
    at, is_day = _typed(text, now)
    return at + timedelta(days=1) if is_day else at


def start(text: str, now: datetime) -> datetime:
    """Return the start that somebody types, as in `until`; a day without a time means its beginning, and today now.

    Example:
        >>> monday = datetime(2026, 11, 23, 10, tzinfo=UTC)
        >>> start("friday", monday).isoformat(), start("today", monday).isoformat()
        ('2026-11-27T00:00:00+00:00', '2026-11-23T10:00:00+00:00')

    """
    at, is_day = _typed(text, now)
    return now.replace(second=0, microsecond=0) if is_day and at == _day(now) else at


def _typed(text: str, now: datetime) -> tuple[datetime, bool]:
    """Return a moment, or the beginning of a day and True. Raises ValueError."""
    words = text.strip().lower()
    if words in DAYS:
        return _day(now) + timedelta(days=DAYS[words]), True
    try:
        return now.replace(second=0, microsecond=0) + duration(words), False
    except ValueError:
        pass  # no duration: a moment
    try:
        # What a text leaves out is taken from the default: where two give two times, it names none.
        first, second = (_parsed(text, _day(now) + timedelta(hours=hour)) for hour in (0, 1))
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time; for example: {FORMS}") from None
    is_day = first != second
    return (_day(first) if is_day else first).astimezone(UTC), is_day


def _parsed(text: str, default: datetime) -> datetime:
    found: datetime = parser.parse(text, default=default)
    return found


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
