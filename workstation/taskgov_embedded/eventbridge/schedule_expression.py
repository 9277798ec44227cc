"""Compute when a schedule is due: `rate(5 minutes)`, `cron(0 2 * * ? *)`, `at(2026-11-27T18:00:00)`.

As EventBridge Scheduler documents them: six cron fields (minutes, hours, day of month, month, day of week, year), in
the schedule's time zone. A cron moment that a clock change skips is left out; one that it repeats comes once.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from taskgov.policy.cron import DAY_FIELD, DAYS, HOUR_FIELD, MINUTE_FIELD, MONTH_FIELD, CronField

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS = {"minute": 60, "hour": 3600, "day": 86400}
_WEEKDAY_FIELD = CronField("day of week", 1, 7, {name: number for number, name in enumerate(DAYS, start=1)})
_YEAR_FIELD = CronField("year", 1970, 2199)
_HORIZON_DAYS = 366 * 8
"""Far enough for a 29th of February."""


class ScheduleError(ValueError):
    """An expression that EventBridge would refuse."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Every so many seconds, counted from `start`."""

    seconds: int
    start: datetime

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first moment of the row after `moment`.

        >>> Rate(60, datetime(2026, 1, 1, tzinfo=UTC)).next_after(datetime(2026, 1, 1, 0, 2, 30, tzinfo=UTC)).minute
        3
        """
        passed = max(0, int((moment - self.start).total_seconds() // self.seconds))
        return self.start + timedelta(seconds=(passed + 1) * self.seconds)


@dataclass(frozen=True, slots=True)
class At:
    """Once."""

    moment: datetime

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the moment if it is still to come."""
        return self.moment if self.moment > moment else None


@dataclass(frozen=True, slots=True)
class Cron:
    """At the minutes that all fields allow. A None in `months_days` or `week_days` is a `?`."""

    minutes: frozenset[int]
    hours: frozenset[int]
    is_day: Callable[[date], bool]
    months: frozenset[int]
    years: frozenset[int]
    zone: ZoneInfo

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first allowed minute after `moment`."""
        local = moment.astimezone(self.zone)
        for days in range(_HORIZON_DAYS):
            day = local.date() + timedelta(days=days)
            if day.year in self.years and day.month in self.months and self.is_day(day):
                for due in self._minutes_of(day):
                    if due > moment:
                        return due
        return None

    def _minutes_of(self, day: date) -> list[datetime]:
        listed = [
            datetime(day.year, day.month, day.day, hour, minute, tzinfo=self.zone).astimezone(UTC)
            for hour in sorted(self.hours)
            for minute in sorted(self.minutes)
        ]
        # A minute that does not exist comes back as another one.
        return [due for due in listed if (due.astimezone(self.zone).hour in self.hours)]


def parse(expression: str, zone: str, start: datetime) -> Rate | At | Cron:
    """Read an expression; `start` is where rates count from.

    >>> parse("cron(30 2 * * ? *)", "Europe/Berlin", datetime(2026, 1, 1, tzinfo=UTC)).next_after(
    ...     datetime(2026, 7, 1, 12, tzinfo=UTC)).isoformat()
    '2026-07-02T00:30:00+00:00'
    """
    found = re.fullmatch(r"(rate|cron|at)\((.+)\)", expression)
    if found is None:
        raise ScheduleError(f"{expression!r} is not a rate, cron or at expression")
    kind, body = found.groups()
    if kind == "rate":
        return _rate(body, start)
    if kind == "at":
        return At(datetime.fromisoformat(body).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC))
    return _cron(body.split(), ZoneInfo(zone), expression)


def _rate(body: str, start: datetime) -> Rate:
    found = re.fullmatch(r"(\d+) (minute|hour|day)(s?)", body)
    if found is None or int(found[1]) < 1 or (int(found[1]) == 1) != (found[3] == ""):
        raise ScheduleError(f"rate({body}): a value and a unit of its number, as in rate(1 minute) or rate(5 minutes)")
    return Rate(int(found[1]) * _UNITS[found[2]], start)


def _cron(fields: list[str], zone: ZoneInfo, expression: str) -> Cron:
    if len(fields) != 6:
        raise ScheduleError(f"{expression}: {len(fields)} fields where there must be six")
    minutes, hours, month_days, months, week_days, years = fields
    if (month_days == "?") == (week_days == "?"):
        raise ScheduleError(f"{expression}: exactly one of day of month and day of week must be ?")
    try:
        return Cron(
            minutes=MINUTE_FIELD.numbers(minutes),
            hours=HOUR_FIELD.numbers(hours),
            is_day=_month_day_test(month_days) if week_days == "?" else _week_day_test(week_days),
            months=MONTH_FIELD.numbers(months),
            years=_YEAR_FIELD.numbers(years),
            zone=zone,
        )
    except ValueError as error:
        raise ScheduleError(f"{expression}: {error}") from error


def _month_day_test(field: str) -> Callable[[date], bool]:
    if field == "L":
        return lambda day: day.day == calendar.monthrange(day.year, day.month)[1]
    allowed = DAY_FIELD.numbers(field)
    return lambda day: day.day in allowed


def _week_day_test(field: str) -> Callable[[date], bool]:
    """Read a day of week; `3#2` is the second Tuesday, `6L` the last Friday (Sunday is 1)."""
    nth = re.fullmatch(r"([1-7])#([1-5])", field)
    if nth is not None:
        return lambda day: _week_day(day) == int(nth[1]) and (day.day - 1) // 7 + 1 == int(nth[2])
    last = re.fullmatch(r"([1-7])L", field)
    if last is not None:
        return lambda day: _week_day(day) == int(last[1]) and (day + timedelta(days=7)).month != day.month
    allowed = _WEEKDAY_FIELD.numbers(field)
    return lambda day: _week_day(day) in allowed


def _week_day(day: date) -> int:
    return day.isoweekday() % 7 + 1
