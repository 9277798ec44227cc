"""Cron expressions of five fields: when change windows open.

`parse_policy` checks the expressions of a document, guardrails ask when they match. Fields and their meaning are those
of crontab(5): minute, hour, day of month, month, day of week (0 and 7 are Sunday); `*`, lists, ranges, steps and
English names; when both days are restricted, either may match. Programs that run crontabs differ about clock changes;
here the clock of the zone decides, minute by minute. EventBridge Scheduler's expressions have the same fields in
another grammar (`taskgov_embedded.eventbridge.schedule_expression`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

HORIZON: Final = timedelta(days=366 * 4 + 1)
"""How far ahead the next match is looked for: 29 February comes at least once, but for the years around 2100."""
MINUTE: Final = timedelta(minutes=1)

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class CronField:
    """One field of a cron expression: its name, its least and its greatest number, and names for numbers."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)

    def numbers(self, text: str) -> frozenset[int]:
        """Return the numbers that `*`, numbers or names, ranges, steps and lists of them match. Raises `ValueError`.

        >>> sorted(MINUTE_FIELD.numbers("0/20,5"))
        [0, 5, 20, 40]
        """
        return frozenset(number for part in text.lower().split(",") for number in self._part(part))

    def _part(self, text: str) -> range:
        span, slash, step = text.partition("/")
        first, dash, last = span.partition("-")
        if slash and (not step.isdecimal() or int(step) == 0):
            raise ValueError(f"{self.name}: {text!r} has no step such as */5")
        if span == "*":
            return range(self.low, self.high + 1, int(step or 1))
        start = self._number(first)
        end = self._number(last) if dash else self.high if slash else start
        if end < start:
            raise ValueError(f"{self.name}: {text!r} runs backwards")
        return range(start, end + 1, int(step or 1))

    def _number(self, text: str) -> int:
        number = self.names.get(text, int(text) if text.isascii() and text.isdecimal() else -1)
        if not self.low <= number <= self.high:
            raise ValueError(f"{self.name}: {text!r} is not from {self.low} to {self.high}")
        return number


MINUTE_FIELD: Final = CronField("minute", 0, 59)
HOUR_FIELD: Final = CronField("hour", 0, 23)
DAY_FIELD: Final = CronField("day of month", 1, 31)
MONTH_FIELD: Final = CronField("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)})
_WEEKDAY_FIELD: Final = CronField("day of week", 0, 7, {name: number for number, name in enumerate(DAYS)})
_FIELDS: Final = (MINUTE_FIELD, HOUR_FIELD, DAY_FIELD, MONTH_FIELD, _WEEKDAY_FIELD)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression: for each field the numbers that match (Sunday is 0)."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both days are restricted: one of them is enough."""

    def matches(self, local: datetime) -> bool:
        """Return whether the expression matches the minute of `local`, by the clock on its wall."""
        return local.minute in self.minutes and local.hour in self.hours and self.matches_day(local)

    def matches_day(self, local: datetime) -> bool:
        """Return whether the expression matches the day of `local`."""
        by_date, by_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        day = by_date or by_weekday if self.either_day else by_date and by_weekday
        return day and local.month in self.months

    def next_match(self, after: datetime) -> datetime | None:
        """Return the first minute of UTC later than `after` at which a clock in its zone shows a match; None for none.

        A time that a clock change skips is never shown; one that it repeats is shown, and matches, twice. The answer
        is in the zone of `after`, and is found within `HORIZON`.

        Example: 02:30 on the night on which 03:00 becomes 02:00 again.
            >>> midnight = datetime(2026, 10, 25, tzinfo=ZoneInfo("Europe/Berlin"))
            >>> first = parse_cron("30 2 * * *").next_match(midnight)
            >>> second = parse_cron("30 2 * * *").next_match(first)
            >>> f"{first:%H:%M %Z}, {second:%H:%M %Z}"
            '02:30 CEST, 02:30 CET'

        """
        start = after.astimezone(UTC)
        minute = start.replace(second=0, microsecond=0) + MINUTE
        while minute - start < HORIZON:
            local = minute.astimezone(after.tzinfo)
            clock = local.replace(tzinfo=None, second=0)
            if not self.matches_day(local):
                minute = _passed(local, minute, clock.replace(hour=0, minute=0) + timedelta(days=1) - clock)
            elif local.hour not in self.hours:
                minute = _passed(local, minute, clock.replace(minute=0) + timedelta(hours=1) - clock)
            elif local.minute not in self.minutes:
                minute += MINUTE
            else:
                return local
        return None


def _passed(local: datetime, minute: datetime, span: timedelta) -> datetime:
    """Return the moment when `span` has passed on the clock, or one minute later where the clock is changed in it.

    No zone changed its clocks twice within a day since 1970: the same offset at both ends is the offset in between.
    """
    later = minute + span
    return later if later.astimezone(local.tzinfo).utcoffset() == local.utcoffset() else minute + MINUTE


def parse_cron(text: str) -> Cron:
    """Read five fields. Raises `ValueError` with the field that is wrong.

    Example: working days at nine.
        >>> parse_cron("0 9 * * mon-fri").matches(datetime(2026, 11, 20, 9, 0))
        True

    """
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"must have five fields (minute hour day month weekday); it has {len(parts)}")
    minutes, hours, days, months, weekdays = (
        cron_field.numbers(part) for part, cron_field in zip(parts, _FIELDS, strict=True)
    )
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    return Cron(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either)


def is_time_zone(name: str) -> bool:
    """Return whether `name` is in the IANA time zone database."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name of a zone, the name of a folder of zones
        return False
    return True
