"""`taskgov usage`: the hours of a month, or of any time, by team and instance type, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path  # noqa: TC003 -- typer reads the annotations of commands
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from taskgov.services.work_record import RecordedWork
from taskgov.usage.units import short_resource
from taskgov_cli.deployed import Cluster, RefusedError, StackName, deployed, told
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, print_parts
from taskgov_cli.grid import table
from taskgov_cli.output import AsJson, console, working
from taskgov_cli.stack_outputs import DEFAULT_STACK
from taskgov_cli.usage.attempts import NO_MEASUREMENT
from taskgov_cli.usage.focus import Account, focus_csv
from taskgov_cli.usage.hours import Usage, usage_of
from taskgov_cli.usage.prices import Prices, read_prices
from taskgov_cli.usage.rows import NOT_MEASURED, OVERCOMMITTED, Row, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

MOST_DAYS: Final = 3660


class By(StrEnum):
    """How long a period of a row is."""

    HOUR = "hour"
    DAY = "day"
    ALL = "all"
    """The whole time, from --from to --to."""


def usage(  # noqa: PLR0913 - the options of a command
    cluster: Cluster,
    month: Annotated[
        str | None, typer.Option("--month", help="A month in UTC, such as 2026-11. Default: this month.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", help="From this day or time on: 2026-11-20 or 2026-11-20T12:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="Until then, exclusive. Default: now.")] = None,
    by: Annotated[
        By | None,
        typer.Option(
            "--by", help="One row for each hour or day, or one for all. Default: all in tables, otherwise hour."
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            exists=True,
            dir_okay=False,
            help="YAML or CSV: the currency, and the price of an accelerator-hour by type.",
        ),
    ] = None,
    stack: StackName = DEFAULT_STACK,
    *,
    focus: Annotated[
        bool, typer.Option("--focus", help="Print CSV with the columns of FOCUS 1.0; needs --prices.")
    ] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Sum the GPU-hours of a month and their price: guaranteed, used, borrowed, lent, idle, waiting, preempted.

    The numbers come from the record of work. Time without a measurement has its own row.

    Example: taskgov usage ml-cluster --month 2026-11 --prices prices.yaml
    """
    start, end = period(month, since, until, datetime.now(UTC))
    if focus and prices is None:
        raise typer.BadParameter("--focus needs a cost in each row: give --prices", param_hint="--focus")
    if focus and (as_json or form is not Form.TABLE):
        raise typer.BadParameter("--focus has its own CSV form: leave out --format and --json", param_hint="--focus")
    known = None if prices is None else _prices(prices)
    with told():
        place = deployed(stack)
        arn, name = place.arn_of(cluster), place.name_of(cluster)
        with working("reading the record of work"):
            done = RecordedWork(place.documents).between(name, start, end)
        if done.looked_at is None:
            raise RefusedError(f"{name} has {NO_MEASUREMENT}: taskgov doctor {name}")
    by = by or (By.ALL if form in {Form.TABLE, Form.WIDE, Form.MARKDOWN} and not (as_json or focus) else By.HOUR)
    summed, ends = together(usage_of(done), by)
    rows = list(rows_of(summed, ends, known))
    shown = Shown(title(name, start, end, done.looked_at), known, form, by)
    if focus and known is not None:
        try:
            typer.echo(focus_csv(rows, Account(name, arn), known), nl=False)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--prices") from error
        print_parts((*shown.remarks(rows), *shown.beyond_capacity(rows)), console(stderr=True))
        return
    data = as_data(name, start, end, rows, summed) | {"lookedAt": done.looked_at}
    answer(lambda: data, shown.parts(rows), form, as_json=as_json)


def title(name: str, start: datetime, end: datetime, looked_at: datetime) -> str:
    """Return what the table shows: up to the last measurement, where the time has not ended."""
    is_open = start < looked_at < end
    until = f"{looked_at if is_open else end:%Y-%m-%d %H:%M} UTC{', the last measurement' if is_open else ''}"
    return f"{name}, hours from {start:%Y-%m-%d %H:%M} to {until}"


def together(usage: Usage, by: By) -> tuple[Usage, dict[datetime, datetime]]:
    """Return hours put together, and when each period ends."""
    first = min(usage.lasted, default=datetime.now(UTC))
    starts = {hour: max(first, _start_of(hour, by, first)) for hour in usage.lasted}
    ends: dict[datetime, datetime] = {}
    for hour, seconds in usage.lasted.items():
        stop = hour + timedelta(seconds=seconds)
        ends[starts[hour]] = max(ends.get(starts[hour], stop), stop)
    return usage.by(starts), ends


def _start_of(hour: datetime, by: By, first: datetime) -> datetime:
    match by:
        case By.HOUR:
            return hour
        case By.DAY:
            return hour.replace(hour=0, minute=0)
        case By.ALL:
            return first


def period(month: str | None, since: str | None, until: str | None, now: datetime) -> tuple[datetime, datetime]:
    """Return from when to when. Raises `typer.BadParameter`."""
    if month is not None and (since or until):
        raise typer.BadParameter("--month and --from or --to exclude each other", param_hint="--month")
    if since is None and until is not None:
        raise typer.BadParameter(f"--to {until} needs --from", param_hint="--to")
    if since is None:
        return _month(month or f"{now:%Y-%m}")
    start = _moment(since, "--from")
    end = now.replace(microsecond=0) if until is None else _moment(until, "--to")
    if start >= end:
        before = "now" if until is None else f"--to {until}"
        raise typer.BadParameter(f"{since} is not before {before} ({end:%Y-%m-%d %H:%M} UTC)", param_hint="--from")
    if end > start + timedelta(days=MOST_DAYS):
        raise typer.BadParameter(f"{since} is more than {MOST_DAYS} days before the end", param_hint="--from")
    return start, end


def _month(text: str) -> tuple[datetime, datetime]:
    try:
        start = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        return start, (start + timedelta(days=32)).replace(day=1)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is not a month such as 2026-11", param_hint="--month") from error


def _moment(text: str, option: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is not a time such as 2026-11-20 or 2026-11-20T12:00Z", param_hint=option
        ) from error


def _prices(path: Path) -> Prices:
    try:
        return read_prices(path)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint="--prices") from error


def as_data(name: str, start: datetime, end: datetime, rows: list[Row], summed: Usage) -> dict[str, Any]:
    """Return it for programs: hours as text with six digits, whose sums are exact."""
    return {
        "cluster": name,
        "from": start,
        "to": end,
        "rows": [{key: value for key, value in _data(row).items() if value is not None} for row in rows],
        "capacity": [
            {
                "start": at,
                "instanceType": kind[0],
                "resource": kind[1],
                "measuredSeconds": summed.measured.get(at, 0),
                "capacitySeconds": offered.capacity,
                "notPromisedSeconds": offered.not_promised,
                "overcommittedSeconds": offered.overcommitted,
            }
            for (at, kind), offered in sorted(summed.offered.items())
        ],
    }


def _data(row: Row) -> dict[str, Any]:
    numbers = ("time", "guaranteed", "used", "borrowed", "lent", "idle", "over_quota", "waiting", "preempted")
    names = {"over_quota": "overQuota"}
    return {
        "start": row.start,
        "end": row.end,
        "team": row.team,
        "instanceType": row.instance_type or None,
        "resource": row.resource or None,
        **{names.get(name, name): f"{getattr(row, name):f}" for name in numbers},
        "currency": row.currency,
        "usedPrice": None if row.used_price is None else f"{row.used_price:f}",
        "idlePrice": None if row.idle_price is None else f"{row.idle_price:f}",
    }


AMOUNTS: Final = ("guaranteed", "used", "borrowed", "lent", "idle", "over quota", "waiting", "preempted")


@dataclass(frozen=True, slots=True)
class Shown:
    """How rows are shown: to the hundredth of an hour for people, exact in CSV."""

    title: str
    prices: Prices | None
    form: Form
    by: By

    def parts(self, rows: list[Row]) -> Iterator[RenderableType]:
        """Yield the table, and the remarks on it."""
        columns = [f"{name} #" for name in ("time", *AMOUNTS)]
        if self.prices is not None:
            columns += [f"used {self.prices.currency} #", f"idle {self.prices.currency} #"]
        place = ("from (UTC)", "team", "instance type", "of")
        yield table(self.title, (*place[not self._is_dated :], *columns), map(self._row, rows), main=True)
        yield from self.remarks(rows)

    def remarks(self, rows: list[Row]) -> Iterator[Text]:
        """Yield what is not in the numbers."""
        priced = self.prices is not None
        unpriced = {row.instance_type for row in rows if priced and row.used_price is None and row.instance_type}
        if unpriced:
            yield Text(f"No price is given for {', '.join(sorted(unpriced))}.")
        missing = sum((row.time for row in rows if row.team == NOT_MEASURED), Decimal(0))
        if missing:
            yield Text(f"{self._number(missing)} hours were not measured; they count in no other row.")
        if not rows:
            yield Text(f"Nothing was measured in this time: {self.title}.")

    def beyond_capacity(self, rows: list[Row]) -> Iterator[Text]:
        """Yield what the charges of FOCUS have, and capacity has not: they have no row for overcommitted hours."""
        beyond = -sum((row.used + row.idle for row in rows if row.team == OVERCOMMITTED), Decimal(0))
        if beyond:
            yield Text(f"{self._number(beyond)} hours beyond the capacity are guaranteed or held, and charged.")

    @property
    def _is_exact(self) -> bool:
        return self.form is Form.CSV

    @property
    def _is_dated(self) -> bool:
        return self._is_exact or self.by is not By.ALL

    def _row(self, row: Row) -> tuple[str, ...]:
        amounts = (row.guaranteed, row.used, row.borrowed, row.lent, row.idle, row.over_quota)
        numbers = () if row.team == NOT_MEASURED else (*amounts, row.waiting, row.preempted)
        prices = () if self.prices is None else (row.used_price, row.idle_price)
        place = (f"{row.start:%Y-%m-%d %H:%M}", row.team, row.instance_type, self._resource(row.resource))
        return (
            *place[not self._is_dated :],
            self._number(row.time),
            *(self._number(number) for number in numbers),
            *("" for _ in range(len(AMOUNTS) - len(numbers))),
            *("" if price is None else self._number(price) for price in prices),
        )

    def _resource(self, resource: str) -> str:
        return resource if self._is_exact or not resource else short_resource(resource)

    def _number(self, number: Decimal) -> str:
        return f"{number:f}" if self._is_exact else f"{number:,.2f}"
