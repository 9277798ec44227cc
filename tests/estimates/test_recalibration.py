"""Recalibration: it brings coverage to what was said, and uses an outcome only once it was known. And the score."""

from __future__ import annotations

import random
from math import exp, inf, isnan
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.quantiles import Estimate, estimate_of, quantile
from taskgov.estimates.recalibration import (
    DAYS,
    ENOUGH,
    LAST,
    MOST,
    NEEDED,
    OF_A_DAY,
    Correction,
    Outcome,
    corrections,
    known,
    of_use,
)
from taskgov.estimates.scoring import Scored, by_team, score

RAW = Estimate(300.0, 900.0)
WAITS = st.lists(st.floats(0, 1e6), min_size=1, max_size=50)


@given(WAITS)
def test_quantiles_rise_and_stay_within_the_waits(waits: list[float]) -> None:
    found = estimate_of(sorted(waits))
    assert min(waits) <= found.half <= found.nine <= max(waits)


def test_quantiles_among_waits_beyond_the_horizon_are_beyond_it() -> None:
    assert estimate_of([1.0, inf, inf]).half == inf
    assert quantile([1.0, 2.0, 3.0, inf], 0.5) == 2.5
    with pytest.raises(ValueError, match="no futures"):
        estimate_of([])


@pytest.mark.long
@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0], ids=["too early", "right", "too late"])
@pytest.mark.parametrize("seed", range(3))
def test_estimates_that_are_off_by_a_factor_for_days_come_to_what_they_say(factor: float, seed: int) -> None:
    scored = corrected_for_days(random.Random(seed), factor, days=40)  # noqa: S311 -- the same each time, no secret
    found = score(scored[20 * 24 :])
    # Errors of 14 days that agree are corrected by most of what they are off; nine of ten follows its hits.
    assert found.half == pytest.approx(0.5, abs=0.07 if factor == 1 else 0.2)
    assert found.nine == pytest.approx(0.9, abs=0.05)


def corrected_for_days(chance: random.Random, factor: float, days: int, a_day: int = 24) -> list[Scored]:
    """Return corrected estimates of futures that are off by a factor, of waits that are lognormal with deviation 1."""
    outcomes: list[Outcome] = []
    raw = Estimate(600 * factor, 600 * 3.6 * factor)
    scored = []
    for number in range(days * a_day):
        at = number * 86400.0 / a_day
        moved = corrections(["a"], outcomes, at)["a"].of(raw)
        waited = 600 * chance.lognormvariate(0, 1)
        outcomes.append(Outcome("a", at, raw, moved, at + waited))
        outcomes = [outcomes[place] for place in of_use(outcomes, at)]
        scored.append(Scored("a", moved, waited))
    return scored


def late_by(errors: list[float], a_day: int = ENOUGH) -> list[Outcome]:
    """Return outcomes of days, each with its error."""
    raw = Estimate(600.0, 1200.0)
    made = [(86400.0 * day + place, error) for day, error in enumerate(errors) for place in range(a_day)]
    return [Outcome("a", at, raw, raw, at + 600.0 * exp(error)) for at, error in made]


def half_of(outcomes: list[Outcome]) -> float:
    return corrections(["a"], outcomes, 1e8)["a"].half


def test_a_burst_of_one_day_hardly_moves_the_half_and_many_days_that_agree_do() -> None:
    assert half_of(late_by([1.0], a_day=600)) == pytest.approx(1 / 65)
    assert half_of(late_by([1.0] * DAYS)) > 0.7
    assert half_of(late_by([1.0, -1.0] * (DAYS // 2))) == pytest.approx(0.0)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=20))
def test_the_half_is_corrected_by_a_part_of_what_the_days_are_off(errors: list[float]) -> None:
    usual, moved = median(errors[-DAYS:]), half_of(late_by(errors))
    assert abs(moved) <= abs(usual) + 1e-9
    assert moved * usual >= 0


@given(st.lists(st.floats(0.1, 4.0), min_size=2, max_size=12))
def test_the_more_days_agree_the_more_of_it_is_corrected(errors: list[float]) -> None:
    usual = median(errors)
    apart = [usual + 2 * (error - usual) for error in errors]
    assert half_of(late_by(apart)) <= half_of(late_by(errors)) + 1e-9
    assert half_of(late_by([usual] * len(errors))) <= half_of(late_by([usual] * (len(errors) + 1))) + 1e-9


def far(days: int, power: float, a_day: int = ENOUGH) -> list[Outcome]:
    """Return outcomes of some days: waits simulated as 1 to 7 days are that number of days to a power."""
    found = []
    for number in range(days * a_day):
        simulated = 1.0 + 6.0 * (number % a_day) / a_day
        raw, at = Estimate(86400.0 * simulated, 2 * 86400.0 * simulated), 86400.0 * number / a_day
        found.append(Outcome("a", at, raw, raw, at + 86400.0 * simulated**power))
    return found


def test_waits_of_days_that_are_always_simulated_too_long_are_bent_and_shorter_ones_are_not() -> None:
    moved = corrections(["a", "new"], far(DAYS, 0.5), 1e8)
    for team in moved.values():
        assert -0.5 < team.bend < -0.35
        only_bent = Correction(bend=team.bend)
        assert only_bent.of(Estimate(86400.0 * 4, inf)).half < 86400.0 * 2.6
        assert only_bent.of(RAW) == RAW
    assert -0.1 < corrections(["a"], far(1, 0.5, a_day=600), 1e8)["a"].bend < 0, "one day shows little"
    assert corrections(["a"], far(DAYS, 1.0), 1e8)["a"].bend == pytest.approx(0.0)


def test_what_a_bend_corrects_is_not_corrected_again() -> None:
    moved = corrections(["a"], far(DAYS, 0.5), 1e8)["a"]
    assert abs(moved.half) < 0.1
    found = moved.of(Estimate(86400.0 * 4, 86400.0 * 8))
    assert found.half == pytest.approx(86400.0 * 2, rel=0.2)
    assert found.nine > 86400.0 * 2


@given(st.floats(-3.0, 3.0), st.floats(60, 7e5), st.floats(60, 7e5))
def test_what_is_simulated_later_stays_later(power: float, first: float, then: float) -> None:
    moved = corrections(["a"], far(DAYS, power), 1e8)["a"]
    early, late = (moved.of(Estimate(half, 2 * half)) for half in sorted((first, then)))
    assert early.half <= late.half * (1 + 1e-9)
    assert early.nine <= late.nine * (1 + 1e-9)


@given(st.lists(st.floats(1, 5000), min_size=ENOUGH, max_size=60), st.data())
def test_a_longer_wait_never_lowers_nine_of_ten(waits: list[float], data: st.DataObject) -> None:
    raw = Estimate(300.0, 900.0)
    first = Outcome("a", 0.0, raw, raw, 10.0)
    outcomes = [Outcome("a", -10.0 * place, raw, raw, waited) for place, waited in reversed([*enumerate(waits, 1)])]
    longer = [outcome._replace(start=outcome.start + data.draw(st.floats(0, 5000))) for outcome in outcomes]
    at = 4000.0
    found, later = (corrections(["a"], [*some, first], at)["a"].nine for some in (outcomes, longer))
    assert later >= found - 1e-9


def days_of(factors: list[float], first: int, days: int = 1, raw: Estimate = RAW) -> list[Outcome]:
    """Return outcomes of some days, each day with waits that are these multiples of the simulated 90th percentile."""
    return [
        Outcome("a", 86400.0 * day + place, raw, raw, 86400.0 * day + place + raw.nine * factor)
        for day in range(first, first + days)
        for place, factor in enumerate(factors)
    ]


def nine_of(outcomes: list[Outcome], team: str = "a", now: float = 1e8) -> float:
    return exp(corrections([team], outcomes, now)[team].nine)


def test_nine_of_ten_is_what_was_enough_for_nine_of_ten() -> None:
    assert nine_of(days_of([place / 10 for place in range(1, 100)], 0)) == pytest.approx(9.0)
    assert nine_of(days_of([1.0 + place / 10 for place in range(1, 21)], 0)) == pytest.approx(2.9)
    assert nine_of(days_of([1000.0] * 20, 0)) == pytest.approx(exp(MOST))


def test_nine_of_ten_is_that_of_the_last_days_and_of_finite_estimates() -> None:
    last = days_of([2.0] * 20, DAYS, DAYS)
    assert nine_of([*days_of([5.0] * 20, 0, DAYS), *last]) == pytest.approx(2.0)
    beyond = [outcome._replace(raw=Estimate(300.0, inf)) for outcome in days_of([0.1] * 300, 2 * DAYS)]
    assert nine_of([*last, *beyond]) == pytest.approx(2.0)


def test_a_burst_of_misses_raises_nine_of_ten_no_further_than_its_errors_and_it_falls_again_after_the_burst() -> None:
    usual = days_of([0.8] * 20, 0, days=DAYS)
    burst = days_of([2.0] * 600, DAYS)
    later = days_of([0.8] * 20, DAYS + 1, days=DAYS - 1)
    assert nine_of(usual) == pytest.approx(0.8)
    assert nine_of([*usual, *burst]) == pytest.approx(2.0)
    assert nine_of([*usual, *burst, *later]) == pytest.approx(0.8)


def test_a_job_that_still_waits_needs_at_least_what_it_has_waited() -> None:
    outcomes = days_of([0.5] * 80, 0)
    still = [Outcome("a", 1e5, RAW, RAW, inf)] * 20
    now = 1e5 + 4 * RAW.nine
    assert nine_of([*outcomes, *still], now=now) == pytest.approx(4.0)


@pytest.mark.parametrize("days", [1, 7, DAYS, 20])
@pytest.mark.parametrize("team", ["a", "new"])
def test_nine_of_ten_is_lowered_only_as_far_as_days_show(days: int, team: str) -> None:
    assert nine_of(days_of([0.1] * 100, 0, days), team) == pytest.approx(0.1 ** min(days / DAYS, 1))
    assert nine_of(days_of([3.0] * 100, 0, days), team) == pytest.approx(3.0)


def test_jobs_that_wait_do_not_lower_nine_of_ten() -> None:
    raw, now = Estimate(300.0, 1e7), 86400.0 * DAYS
    waiting = [outcome._replace(start=inf) for outcome in days_of([1.0] * 19, 0, DAYS, raw)]
    few = days_of([0.001], 0, DAYS, raw)
    assert nine_of(waiting, now=now) == pytest.approx(1.0)
    assert nine_of(sorted([*waiting, *few], key=lambda one: one.made), now=now) == pytest.approx(1.0)
    one_day = sorted([*days_of([0.12] * 30, 0, raw=raw), *waiting[19:]], key=lambda one: one.made)
    assert nine_of(one_day[:31], now=now) == pytest.approx(0.12 ** (1 / DAYS))


def test_jobs_that_start_early_do_not_count_before_the_others_of_their_burst() -> None:
    past, now = days_of([1.0], 0, DAYS - 1), 86400.0 * DAYS
    burst = [Outcome("a", now, RAW, RAW, now + 31.0 if place % 5 else inf) for place in range(190)]
    assert nine_of([*past, *burst], now=now + 60.0) == pytest.approx(1.0)


def test_outcomes_of_a_team_count_once_also_where_it_has_few() -> None:
    few = days_of([3.0] * (ENOUGH - 1), 0)
    beyond = [outcome._replace(raw=Estimate(300.0, inf)) for outcome in days_of([3.0], 1)]
    assert nine_of([*few, *beyond]) == pytest.approx(1.0)


def test_outcomes_of_others_count_only_as_far_as_a_team_lacks_them() -> None:
    others = [outcome._replace(team="b") for outcome in days_of([5.0] * 500, 0)]
    assert nine_of([*others, *days_of([2.0] * (NEEDED - 1), 0)]) == pytest.approx(2.0)


def test_a_start_before_its_estimate_does_not_count() -> None:
    damaged = [outcome._replace(start=outcome.made - 100.0) for outcome in days_of([1.0] * 100, 0, DAYS)]
    assert corrections(["a"], damaged, 1e8)["a"] == Correction()


def test_what_no_longer_counts_is_dropped() -> None:
    raw = Estimate(300.0, 900.0)
    some = [
        Outcome("a", 86400.0 * day + place, raw, raw, 86400.0 * day + 500.0) for day in (0, 1) for place in range(300)
    ]
    some[5] = some[5]._replace(start=inf)
    places = of_use(some, 1e8)
    assert places == sorted(places)
    assert 5 in places
    assert places[-2 * LAST :] == [*range(400, 600)]
    assert sum(place < 300 for place in places) == OF_A_DAY + 1
    assert half_of([some[place] for place in places]) == pytest.approx(half_of(some))
    assert of_use(some, 86400.0 + 300.0) == [5, *range(300 - 2 * LAST, 600)], "no median of the second day is over"
    never = [some[0]._replace(given=Estimate(inf, inf)), some[1]._replace(start=inf, cancelled=True)]
    assert of_use([*never, *some[2:]], 1e8) == places, "one that never counts is not kept longer"


def test_an_outcome_counts_only_once_it_is_known() -> None:
    early = Outcome("a", 0.0, Estimate(10, 20), Estimate(10, 20), start=500.0)
    assert known([early], 5.0) == []
    assert known([early], 15.0) == [early._replace(start=inf)]  # its half is over: a miss, whatever comes
    assert known([early], 600.0) == [early]
    in_time = early._replace(start=3.0)
    assert known([in_time], 5.0) == [], "those of its burst that are late are not known either"
    assert known([in_time], 15.0) == [in_time]
    assert known([early._replace(cancelled=True)], 600.0) == []


@given(st.lists(st.floats(1, 1e5), max_size=60), st.floats(1, 1e5))
def test_the_future_of_outcomes_changes_nothing(waits: list[float], later: float) -> None:
    at = 1e4
    outcomes = [
        Outcome("a", 50.0 * place, Estimate(100, 400), Estimate(100, 400), 50.0 * place + waited)
        for place, waited in enumerate(waits)
    ]
    moved = [o if o.start <= at else o._replace(start=at + later) for o in outcomes]
    assert corrections(["a"], outcomes, at) == corrections(["a"], moved, at)


def test_with_few_outcomes_an_estimate_stays_and_is_not_calibrated() -> None:
    few = [Outcome("a", float(n), Estimate(10, 20), Estimate(10, 20), n + 500.0) for n in range(ENOUGH - 1)]
    found = corrections(["a"], few, 1e4)["a"]
    assert not found.calibrated
    assert found.of(Estimate(10, 20)) == Estimate(10, 20)


def test_a_new_team_takes_the_outcomes_of_all_teams_and_its_own_replace_them() -> None:
    others = [
        outcome._replace(team=team) for team in "bcd" for outcome in days_of([0.6, 1.5 if team == "d" else 0.6], 0, 100)
    ]
    assert nine_of(others) == pytest.approx(1.5)
    assert nine_of([*others, *days_of([0.7] * (NEEDED // DAYS + 1), 100, DAYS)]) == pytest.approx(0.7)
    assert half_of([outcome for outcome in others if outcome.team != "d"]) > 0.1


def test_the_score_counts_as_the_rules_say() -> None:
    said = Estimate(100, 300)
    found = score(
        [
            Scored("a", said, 50),
            Scored("a", said, 250),
            Scored("a", said, 400),
            Scored("a", said, 200, started=False),  # its half is over, its nine is open
            Scored("a", said, 80, cancelled=True),
            Scored("a", Estimate(0, 60), 1, at_submission=True),
            Scored("a", Estimate(inf, inf), 9e9),
            Scored("a", Estimate(100, 1000), 150, at_submission=False),
        ]
    )
    assert (found.number, found.cancelled, found.open, found.beyond) == (7, 1, 1 + 1, 1)
    assert found.half == pytest.approx(1 / 6)  # 50; not 250, 400, 200, 1 and 150
    assert found.nine == pytest.approx(4 / 5)  # 50, 250, 1, 150; not 400
    assert found.within == pytest.approx(1 / 3)  # of 50, 250, 400: 50 is
    assert found.spread == 3.0


def test_nothing_scored_is_no_number() -> None:
    empty = score([])
    assert isnan(empty.half)
    assert (empty.number, by_team([Scored("a", Estimate(1, 2), 1)])) == (0, {})
