"""Read a cron expression of five fields and say at which minutes it matches.

Change windows open by it. The fields are minute, hour, day of month, month, day of week (0 or 7 is Sunday; names in
English are understood), with `*`, lists, ranges and steps. When both day fields are restricted, either may match, as
in the cron of every Unix.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS: Final = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
HORIZON: Final = timedelta(days=366 * 4 + 1)
"""How far ahead the next match is looked for: 29 February comes at least once."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression: which values of each field match."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both day fields are restricted: one of them is enough."""

    def matches(self, moment: datetime) -> bool:
        """Say whether the expression matches the minute of `moment`, by its own clock."""
        return moment.minute in self.minutes and moment.hour in self.hours and self.matches_day(moment)

    def matches_day(self, moment: datetime) -> bool:
        """Say whether the expression matches the day of `moment`."""
        by_date, by_weekday = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        day = by_date or by_weekday if self.either_day else by_date and by_weekday
        return day and moment.month in self.months

    def next_match(self, after: datetime) -> datetime | None:
        """Return the first matching minute later than `after`, by the clock on the wall, or None when there is none."""
        minute = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
        while minute - after < HORIZON:
            if not self.matches_day(minute):
                minute = (minute + timedelta(days=1)).replace(hour=0, minute=0)
            elif minute.hour not in self.hours:
                minute = (minute + timedelta(hours=1)).replace(minute=0)
            elif minute.minute not in self.minutes:
                minute += timedelta(minutes=1)
            else:
                return minute
        return None


def parse_cron(text: str) -> Cron:
    """Read an expression; raise `ValueError` that names the field which cannot be read.

    Example: weekdays, every half hour from 8 to 17.
        >>> cron = parse_cron("*/30 8-17 * * mon-fri")
        >>> sorted(cron.minutes), sorted(cron.weekdays), cron.matches(datetime(2026, 11, 20, 13, 30))
        ([0, 30], [1, 2, 3, 4, 5], True)

    """
    fields = text.lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(fields)} fields; a cron expression has 5")
    minutes, hours, days, months, weekdays = (
        _values(field, name, least, most) for field, (name, least, most) in zip(fields, _FIELDS, strict=True)
    )
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    return Cron(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either)


def _values(field: str, name: str, least: int, most: int) -> frozenset[int]:
    values: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, last = _span(span, name, least, most, stepped=bool(step))
        if not least <= first <= last <= most or (step and not step.isdecimal()) or step == "0":
            raise ValueError(f"{field!r} is no {name} of a cron expression")
        values |= set(range(first, last + 1, int(step or 1)))
    return frozenset(values)


def _span(span: str, name: str, least: int, most: int, *, stepped: bool) -> tuple[int, int]:
    if span == "*":
        return least, most
    first, dash, last = span.partition("-")
    start = _number(first, name)
    if dash:
        return start, _number(last, name)
    return start, most if stepped else start


def _number(text: str, name: str) -> int:
    if name == "day of week" and text in _DAYS:
        return _DAYS.index(text)
    if name == "month" and text in _MONTHS:
        return _MONTHS.index(text) + 1
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no {name} of a cron expression")
    return int(text)
