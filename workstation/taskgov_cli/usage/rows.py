"""The rows that `taskgov usage` shows: hours as millionths, put so that sums are exact, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Final

from taskgov.quantities import CPU
from taskgov_cli.usage.hours import Offered, Usage, apportioned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from taskgov.work.standing import Kind
    from taskgov_cli.usage.prices import Prices

MILLION: Final = 1_000_000
NOT_PROMISED: Final = "(not guaranteed)"
OVERCOMMITTED: Final = "(overcommitted)"
NOT_MEASURED: Final = "(not measured)"


@dataclass(frozen=True, slots=True)
class Row:
    """One team on one instance type in one period: hours of accelerators (of cores, where a type has none).

    Rows in brackets are not teams: capacity that no quota guarantees, what quotas guarantee beyond capacity (below
    zero), and time that was not measured. Over all rows of a type and period, used and idle come to what healthy nodes
    offered in the measured time.
    """

    start: datetime
    end: datetime
    team: str
    instance_type: str
    resource: str
    time: Decimal
    """Hours that were measured; of `(not measured)` the others."""
    guaranteed: Decimal = Decimal(0)
    used: Decimal = Decimal(0)
    borrowed: Decimal = Decimal(0)
    lent: Decimal = Decimal(0)
    idle: Decimal = Decimal(0)
    over_quota: Decimal = Decimal(0)
    waiting: Decimal = Decimal(0)
    preempted: Decimal = Decimal(0)
    currency: str | None = None
    used_price: Decimal | None = None
    """None where no price is given."""
    idle_price: Decimal | None = None


def rows_of(usage: Usage, ends: dict[datetime, datetime], prices: Prices | None) -> Iterator[Row]:
    """Yield the rows of each period: by instance type and team, then what is nobody's, then what was not measured."""
    kinds = sorted({(start, place[1:]) for start, place in usage.spent} | usage.offered.keys())
    by_start = {start: [kind for _, kind in some] for start, some in groupby(kinds, key=lambda found: found[0])}
    for start in sorted(usage.lasted):
        for kind in by_start.get(start, ()):
            yield from _of_type(usage, start, ends[start], kind, prices)
        missing = usage.lasted[start] - usage.measured.get(start, 0)
        if missing:
            yield Row(start, ends[start], NOT_MEASURED, "", "", time=_millionths(missing))


def _of_type(usage: Usage, start: datetime, end: datetime, kind: Kind, prices: Prices | None) -> Iterator[Row]:
    teams = sorted((place[0], spent) for (at, place), spent in usage.spent.items() if at == start and place[1:] == kind)
    offered = usage.offered.get((start, kind), Offered())
    scale = 3600 * (1000 if kind[1] == CPU else 1)
    leaves = [amount for _, spent in teams for amount in (spent.own, spent.borrowed, spent.over_quota, spent.idle)]
    whole = apportioned([MILLION * amount for amount in (*leaves, offered.not_promised)], scale)
    borrowed = sum(whole[1 : 4 * len(teams) : 4])
    lent = _to_sum([MILLION * spent.lent for _, spent in teams], scale, borrowed)
    time = _millionths(usage.measured.get(start, 0))
    for number, (team, spent) in enumerate(teams):
        own, borrows, over, idle = whole[4 * number : 4 * number + 4]
        yield _priced(
            Row(
                start,
                end,
                team,
                *kind,
                time=time,
                guaranteed=_hours(own + lent[number] + idle),
                used=_hours(own + borrows + over),
                borrowed=_hours(borrows),
                lent=_hours(lent[number]),
                idle=_hours(idle),
                over_quota=_hours(over),
                waiting=_hours(MILLION * spent.waiting // scale),
                preempted=_hours(MILLION * spent.preempted // scale),
            ),
            prices,
        )
    for team, amount in (
        (NOT_PROMISED, whole[-1]),
        (OVERCOMMITTED, -apportioned([MILLION * offered.overcommitted], scale)[0]),
    ):
        if amount:
            yield _priced(Row(start, end, team, *kind, time=time, idle=_hours(amount)), prices)


def _to_sum(amounts: list[int], scale: int, total: int) -> list[int]:
    """Return amounts divided by `scale` whose sum is `total`, which it is nearly: what others borrow is lent."""
    whole = apportioned(amounts, scale)
    missing = total - sum(whole)
    if abs(missing) <= len([amount for amount in amounts if amount]):
        some = (number for number in range(len(amounts)) if missing > 0 or whole[number])
        for number in sorted(some, key=lambda n: (-amounts[n], n))[: abs(missing)]:
            whole[number] += 1 if missing > 0 else -1
    return whole


def _priced(row: Row, prices: Prices | None) -> Row:
    price = None if prices is None else prices.hour.get(row.instance_type)
    if prices is None or price is None:
        return row
    return replace(row, currency=prices.currency, used_price=row.used * price, idle_price=row.idle * price)


def _millionths(seconds: int) -> Decimal:
    return _hours(apportioned([MILLION * seconds], 3600)[0])


def _hours(millionths: int) -> Decimal:
    return Decimal(millionths) / MILLION
