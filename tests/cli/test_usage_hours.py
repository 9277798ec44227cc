"""The hours of `taskgov usage`: sums are exact, whatever was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.ports.work import WorkDone
from taskgov.usage.loans import Account, attribute_loans
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.measured import Span
from taskgov.work.standing import Line, Standing
from taskgov_cli.usage.command import By, title, together
from taskgov_cli.usage.hours import Spent, Usage, apportioned, usage_of
from taskgov_cli.usage.rows import NOT_MEASURED, NOT_PROMISED, OVERCOMMITTED, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

GPU, G5 = "nvidia.com/gpu", "ml.g5.12xlarge"
KIND = (G5, GPU)
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
END = START + timedelta(hours=4)
TEAMS = ("a", "b", "c")


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def line(guaranteed: int, used: int, **more: int) -> Line:
    return Line(guaranteed, used, **more)


def done(standings: Iterable[Standing], *spans: Span, ended: tuple[Attempt, ...] = ()) -> WorkDone:
    return WorkDone(START, END, ended, (), spans, tuple(standings), END)


def test_a_standing_counts_as_long_as_it_holds_and_is_measured() -> None:
    first = Standing(at(0), {("a", *KIND): line(8, 10, borrowed=2), ("b", *KIND): line(8, 4, lent=2)}, {KIND: 16})
    more = Standing(at(30), {("a", *KIND): line(8, 8), ("b", *KIND): line(8, 4)}, whole=False)
    usage = usage_of(done([first, more], Span(at(0), at(90)), Span(at(120), at(240))))
    a = [usage.spent[at(60 * hour), ("a", *KIND)] for hour in range(4)]
    assert [(spent.own, spent.borrowed) for spent in a] == [
        (8 * 3600, 2 * 1800),
        (8 * 1800, 0),
        (8 * 3600, 0),
        (8 * 3600, 0),
    ]
    assert [usage.measured[at(60 * hour)] for hour in range(4)] == [3600, 1800, 3600, 3600]
    assert usage.spent[at(0), ("b", *KIND)] == Spent(own=4 * 3600, lent=2 * 1800, idle=2 * 1800 + 4 * 1800)
    assert usage.offered[at(60), KIND].capacity == 16 * 1800


def test_what_is_not_promised_and_what_is_promised_twice_do_not_cancel_out() -> None:
    first = Standing(at(0), {("a", *KIND): line(8, 0)}, {KIND: 10})
    more = Standing(at(30), capacity={KIND: 6}, whole=False)
    offered = usage_of(done([first, more], Span(at(0), at(60)))).offered[at(0), KIND]
    assert (offered.capacity, offered.not_promised, offered.overcommitted) == (16 * 1800, 2 * 1800, 2 * 1800)


def test_time_of_which_nothing_is_known_is_not_measured() -> None:
    usage = usage_of(done([Standing(at(30), capacity={KIND: 8})], Span(at(0), at(60))))
    assert usage.measured[at(0)] == 1800
    assert sum(offered.capacity for offered in usage.offered.values()) == 8 * 1800


def test_a_time_that_has_not_ended_is_shown_up_to_the_last_measurement() -> None:
    shown = "ml-cluster, hours from 2026-11-20 10:00 to 2026-11-20"
    assert title("ml-cluster", START, END, at(30)) == f"{shown} 10:30 UTC, the last measurement"
    assert title("ml-cluster", START, END, END) == title("ml-cluster", START, END, at(-30)) == f"{shown} 14:00 UTC"


def test_after_the_last_look_nothing_is_said() -> None:
    given_done = WorkDone(START, END, measured=(Span(at(0), at(30)),), standings=(Standing(at(0)),), looked_at=at(30))
    assert usage_of(given_done).lasted == {START: 1800}
    assert usage_of(WorkDone(START, END)).lasted == {}


def test_a_preemption_counts_what_had_run_in_its_hour() -> None:
    attempt = Attempt(
        uid="u", number=1, team="a", owner=None, stem="s", kind="Job", priority_class=None, priority=0,
        held=(Held(G5, GPU, 8),), max_seconds=None, created=at(0), queued=at(0), admitted=at(10), ended=at(70),
        end=End.EVICTED, reason="Preempted/InCohortReclamation",
    )  # fmt: skip
    assert usage_of(done([], ended=(attempt,))).spent == {(at(60), ("a", *KIND)): Spent(preempted=8 * 3600)}


AMOUNTS = st.integers(0, 6)


@st.composite
def worlds(draw: st.DrawFn) -> WorkDone:
    """Draw quotas that lend as Kueue's do, at random moments, with gaps."""
    standings = []
    for minute in sorted(draw(st.sets(st.integers(0, 14_399), min_size=1, max_size=8))):
        accounts = [Account(team, draw(AMOUNTS), draw(AMOUNTS), draw(st.none() | AMOUNTS)) for team in TEAMS]
        loans = attribute_loans(accounts)
        lines = {
            (account.name, *KIND): Line(
                account.nominal,
                account.used,
                loans[account.name].borrowed,
                loans[account.name].lent,
                loans[account.name].over_quota,
                draw(AMOUNTS),
            )
            for account in accounts
        }
        standings.append(Standing(at(minute / 60), lines, {KIND: draw(st.integers(0, 20))}))
    cuts = sorted(draw(st.sets(st.integers(0, 14_400), max_size=6)))
    spans = [Span(at(a / 60), at(b / 60)) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    return done(standings, *spans)


@given(worlds())
def test_seconds_add_up_to_capacity_times_measured_time(world: WorkDone) -> None:
    usage = usage_of(world)
    for (start, kind), offered in usage.offered.items():
        spent = [spent for (hour, place), spent in usage.spent.items() if (hour, place[1:]) == (start, kind)]
        held = sum(one.used + one.idle for one in spent)
        assert held + offered.not_promised == offered.capacity + offered.overcommitted
        assert sum(one.lent for one in spent) == sum(one.borrowed for one in spent)
    for one in usage.spent.values():
        assert one.guaranteed == one.own + one.lent + one.idle
    naive = [0, 0]
    for span in world.measured:
        second = span.start
        while second < span.end:
            standing = next((each for each in reversed(world.standings) if each.at <= second), None)
            until = min([span.end, *(each.at for each in world.standings if each.at > second)])
            if standing is not None:
                seconds = int((until - second).total_seconds())
                naive[0] += standing.capacity.get(KIND, 0) * seconds
                naive[1] += sum(each.used for each in standing.lines.values()) * seconds
            second = until
    assert sum(offered.capacity for offered in usage.offered.values()) == naive[0]
    assert sum(one.used for one in usage.spent.values()) == naive[1]


@given(worlds(), st.sampled_from(By))
def test_printed_hours_add_up_exactly(world: WorkDone, by: By) -> None:
    usage, ends = together(usage_of(world), by)
    rows = list(rows_of(usage, ends, None))
    for start, kind in usage.offered:
        some = [row for row in rows if (row.start, row.instance_type, row.resource) == (start, *kind)]
        teams = [row for row in some if not row.team.startswith("(")]
        for row in teams:
            assert row.used == row.guaranteed - row.lent - row.idle + row.borrowed + row.over_quota
            assert min(row.lent, row.idle, row.used, row.borrowed) >= 0
        assert sum(row.lent for row in teams) == sum(row.borrowed for row in teams)
        held = sum((row.used + row.idle for row in some if row.team != OVERCOMMITTED), Decimal(0))
        seconds = usage.offered[start, kind].capacity + usage.offered[start, kind].overcommitted
        assert abs(held - Decimal(seconds) / 3600) <= Decimal("0.0000005")
        assert {row.team for row in some} - {*TEAMS} <= {NOT_PROMISED, OVERCOMMITTED}
    lasted, measured = sum(usage.lasted.values()), sum(usage.measured.values())
    missing = sum((row.time for row in rows if row.team == NOT_MEASURED), Decimal(0))
    assert abs(missing - Decimal(lasted - measured) / 3600) <= Decimal("0.000005")


@given(st.lists(st.integers(0, 10**9), max_size=9), st.integers(1, 10**6))
def test_apportioned_amounts_are_off_by_less_than_one_and_their_sum_by_half(amounts: list[int], scale: int) -> None:
    whole = apportioned(amounts, scale)
    assert all(abs(n * scale - amount) < scale for n, amount in zip(whole, amounts, strict=True))
    assert 2 * abs(sum(whole) * scale - sum(amounts)) <= scale


@pytest.mark.parametrize("by", By)
def test_periods_put_together_lose_nothing(by: By) -> None:
    first = Standing(at(0), {("a", *KIND): line(8, 10, borrowed=2)}, {KIND: 16})
    whole = usage_of(done([first], Span(at(0), at(200))))
    summed, ends = together(whole, by)
    assert sum(one.used for one in summed.spent.values()) == 10 * 200 * 60
    assert max(ends.values()) == END
    assert sum(summed.measured.values()) == 200 * 60
    assert isinstance(summed, Usage)
