"""Recalibration: it brings coverage to what was said, and uses an outcome only once it was known. And the score."""

from __future__ import annotations

import random
from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.quantiles import Estimate, estimate_of, quantile
from taskgov.estimates.recalibration import ENOUGH, Outcome, known, recalibrated
from taskgov.estimates.scoring import Scored, by_team, score

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


@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0], ids=["too early", "right", "too late"])
@pytest.mark.parametrize("seed", range(3))
def test_estimates_that_are_off_by_a_factor_come_to_what_they_say(factor: float, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- the same each time, no secret
    outcomes: list[Outcome] = []
    raw = Estimate(600 / factor, 600 * 3.6 / factor)  # of waits that are lognormal with deviation 1
    scored = []
    for number in range(600):
        at = number * 100.0
        given_now, calibrated = recalibrated(raw, "a", known(outcomes, at), at)
        waited = 600 * chance.lognormvariate(0, 1)
        outcomes.append(Outcome("a", at, raw, given_now, at + waited))
        if calibrated:
            scored.append(Scored("a", given_now, waited))
    found = score(scored)
    assert found.number > 500
    # The half is corrected by two thirds of what it is off; nine of ten follows, which takes a while.
    assert found.half == pytest.approx(0.5, abs=0.07 if factor == 1 else 0.22)
    assert found.nine == pytest.approx(0.9, abs=0.05 if factor == 1 else 0.09)


def test_an_outcome_counts_only_once_it_is_known() -> None:
    early = Outcome("a", 0.0, Estimate(10, 20), Estimate(10, 20), start=500.0)
    assert known([early], 5.0) == []
    assert known([early], 15.0) == [early._replace(start=inf)]  # its half is over: a miss, whatever comes
    assert known([early], 600.0) == [early]
    assert known([early._replace(cancelled=True)], 600.0) == []


@given(st.lists(st.floats(1, 1e5), max_size=60), st.floats(1, 1e5))
def test_the_future_of_outcomes_changes_nothing(waits: list[float], later: float) -> None:
    at = 1e4
    outcomes = [
        Outcome("a", 50.0 * place, Estimate(100, 400), Estimate(100, 400), 50.0 * place + waited)
        for place, waited in enumerate(waits)
    ]
    moved = [o if o.start <= at else o._replace(start=at + later) for o in outcomes]
    raw = Estimate(300, 900)
    assert recalibrated(raw, "a", known(outcomes, at), at) == recalibrated(raw, "a", known(moved, at), at)


def test_with_few_outcomes_an_estimate_stays_and_is_not_calibrated() -> None:
    few = [Outcome("a", float(n), Estimate(10, 20), Estimate(10, 20), n + 500.0) for n in range(ENOUGH - 1)]
    assert recalibrated(Estimate(10, 20), "a", few, 1e4) == (Estimate(10, 20), False)


def test_a_new_team_is_corrected_by_what_is_known_of_everybody() -> None:
    late = [Outcome("a", float(n), Estimate(100, 200), Estimate(100, 200), n + 1000.0) for n in range(60)]
    moved, calibrated = recalibrated(Estimate(100, 200), "b", late, 1e5)
    assert calibrated
    assert moved.half > 200


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
