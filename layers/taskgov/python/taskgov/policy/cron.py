"""When change windows are open: cron expressions of five fields, in a time zone.

`parse_policy` checks the expressions, guardrails ask whether a window is open. Fields and their meaning are those of
crontab(5): minute, hour, day of month, month, day of week; `*`, lists, ranges, steps and names; when both days are
restricted, either may match.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final
from zoneinfo import ZoneInfo

from taskgov.policy.document import ChangeWindow

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    ("day of week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)


@dataclass(frozen=True)
class Cron:
    """A parsed expression: for each field the numbers that match."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both days are restricted: one of them is enough."""

    def matches(self, local: datetime) -> bool:
        """Say whether the minute of `local` (wall clock of the window's zone) is one of the expression's."""
        return (
            local.minute in self.minutes
            and local.hour in self.hours
            and local.month in self.months
            and self._matches_day(local)
        )

    def _matches_day(self, local: datetime) -> bool:
        by_date, by_weekday = local.day in self.days, local.isoweekday() % 7 in self._weekdays
        return by_date or by_weekday if self.either_day else by_date and by_weekday

    @cached_property
    def _weekdays(self) -> frozenset[int]:
        """Sunday is 0 and 7."""
        return frozenset(day % 7 for day in self.weekdays)


def parse_cron(text: str) -> Cron:
    """Read five fields. Raises `ValueError` with the field that is wrong.

    Example: working days at nine.
        >>> parse_cron("0 9 * * mon-fri").matches(datetime(2026, 11, 20, 9, 0))
        True

    """
    parts = text.lower().split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"must have five fields (minute hour day month weekday); it has {len(parts)}")
    minutes, hours, days, months, weekdays = (
        _field(part, name, low, high, names) for part, (name, low, high, names) in zip(parts, _FIELDS, strict=True)
    )
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    return Cron(minutes, hours, days, months, weekdays, either)


def is_time_zone(name: str) -> bool:
    """Say whether `name` is in the IANA time zone database."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name of a zone, the name of a folder of zones
        return False
    return True


def is_open(window: ChangeWindow, at: datetime) -> bool:
    """Say whether the window is open at this (aware) time: it opened within its last `minutes`.

    Example:
        >>> from datetime import UTC
        >>> window = ChangeWindow(cron="0 9 * * *", minutes=60, time_zone="Europe/Berlin")
        >>> [is_open(window, datetime(2026, 11, 20, hour, 30, tzinfo=UTC)) for hour in (7, 8, 9)]
        [False, True, False]

    """
    cron, zone = parse_cron(window.cron), ZoneInfo(window.time_zone)
    this_minute = at.replace(second=0, microsecond=0)
    return any(cron.matches((this_minute - timedelta(minutes=ago)).astimezone(zone)) for ago in range(window.minutes))


def next_opening(window: ChangeWindow, after: datetime, *, within_days: int = 366) -> datetime | None:
    """Return the first minute after `after` in which the window opens, or None when it does not within that time."""
    cron, zone = parse_cron(window.cron), ZoneInfo(window.time_zone)
    first = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    for day in range(within_days + 1):
        start = first + timedelta(days=day)
        if not _may_open(cron, start.astimezone(zone)):
            continue
        for minute in range(24 * 60):
            moment = start + timedelta(minutes=minute)
            if cron.matches(moment.astimezone(zone)):
                return moment
    return None


def _may_open(cron: Cron, local: datetime) -> bool:
    """Say whether any of the next 24 hours, which touch at most three dates, can match."""
    return any((local + timedelta(hours=hours)).month in cron.months for hours in (0, 24, 25))


def _field(text: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        numbers.update(_part(part, name, low, high, names))
    return frozenset(numbers)


def _part(text: str, name: str, low: int, high: int, names: dict[str, int]) -> range:
    span, slash, step = text.partition("/")
    first, dash, last = span.partition("-")
    if slash and (not step.isdecimal() or int(step) == 0):
        raise ValueError(f"{name}: {text!r} has no step such as */5")
    if span == "*":
        return range(low, high + 1, int(step or 1))
    start = _number(first, name, low, high, names)
    end = _number(last, name, low, high, names) if dash else high if slash else start
    if end < start:
        raise ValueError(f"{name}: {text!r} runs backwards")
    return range(start, end + 1, int(step or 1))


def _number(text: str, name: str, low: int, high: int, names: dict[str, int]) -> int:
    number = names.get(text, int(text) if text.isascii() and text.isdecimal() else -1)
    if not low <= number <= high:
        raise ValueError(f"{name}: {text!r} is not from {low} to {high}")
    return number
