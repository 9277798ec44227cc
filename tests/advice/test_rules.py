"""Quota rules: from what teams used to whole quotas, within the bounds of the document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.advice.candidates import NO_LIMIT, Candidate, alone, other_limits, quotas_of, terms_of
from taskgov.advice.past import HOUR, Past, Piece, Use, uses
from taskgov.advice.rules import Rule
from taskgov.advice.today import TeamToday, Today

USED = {"a": Use(100 * HOUR, 16), "b": Use(25 * HOUR, 4), "c": Use(0, 0)}
EVEN = Today(tuple(TeamToday(team, 8) for team in "abc"))


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        (Rule.TODAY, {"a": 8, "b": 8, "c": 8}),
        (Rule.USE, {"a": 18, "b": 5, "c": 1}),
        (Rule.PEAK, {"a": 18, "b": 5, "c": 1}),
        (Rule.ROOT, {"a": 15, "b": 8, "c": 1}),
        (Rule.WATER, {"a": 18, "b": 5, "c": 1}),
        (Rule.EQUAL, {"a": 8, "b": 8, "c": 8}),
    ],
)
def test_each_rule_divides_what_there_is_by_what_was_used(rule: Rule, want: dict[str, int]) -> None:
    assert quotas_of(rule, USED, EVEN) == want


def test_water_filling_serves_small_peaks_in_full_before_large_ones() -> None:
    used = {"a": Use(0, 100), "b": Use(0, 6), "c": Use(0, 4)}
    assert quotas_of(Rule.WATER, used, EVEN) == {"a": 14, "b": 6, "c": 4}


def test_who_is_held_keeps_the_quota_and_bounds_hold_for_the_others() -> None:
    today = Today(
        (
            TeamToday("a", 8, most=10),
            TeamToday("b", 8, least=6),
            TeamToday("c", 8, moves=False, why_held="it is frozen"),
        )
    )
    assert quotas_of(Rule.USE, USED, today) == {"a": 10, "b": 6, "c": 8}


def test_limits_are_percentages_of_the_new_quota_and_strategies_stay() -> None:
    today = Today(
        (
            TeamToday("a", 8, limit=50),
            TeamToday("b", 8, shares=False, borrows=False),
            TeamToday("c", 8, 0, borrows=False),
        )
    )
    terms = dict(terms_of(Candidate(Rule.USE, 200), USED, today).teams)
    assert {team: (own.quota, own.limit) for team, own in terms.items()} == {"a": (18, 36), "b": (5, None), "c": (1, 0)}
    assert dict(terms_of(Candidate(Rule.TODAY), USED, today).teams)["a"].limit == 4


def test_alone_nobody_lends_or_borrows() -> None:
    assert {own.limit for _, own in alone(terms_of(Candidate(Rule.EQUAL, 200), USED, EVEN)).teams} == {None}


def test_a_limit_that_everybody_has_is_not_tried_again() -> None:
    assert other_limits(EVEN) == (50, 200, 500, NO_LIMIT)
    assert other_limits(Today((TeamToday("a", 1, 100), TeamToday("b", 1, 50)))) == (50, 100, 200, 500, NO_LIMIT)
    assert other_limits(Today((TeamToday("a", 1, borrows=False),))) == ()


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Today, dict[str, Use]]:
    unit = draw(st.sampled_from([1, 8]))
    teams = []
    for name in "abcde"[: draw(st.integers(1, 5))]:
        units = draw(st.integers(0, 20))
        least = draw(st.integers(0, units))
        most = draw(st.none() | st.integers(units, 30))
        moves = draw(st.booleans())
        teams.append(
            TeamToday(name, units * unit, least=least * unit, most=None if most is None else most * unit, moves=moves)
        )
    numbers = st.floats(0, 1e9)
    use = {team.team: Use(draw(numbers), draw(st.floats(0, 1e4))) for team in teams if draw(st.booleans())}
    return Today(tuple(teams), unit), use


@given(worlds(), st.sampled_from(Rule))
def test_no_rule_makes_or_loses_a_gpu_or_leaves_the_bounds(world: tuple[Today, dict[str, Use]], rule: Rule) -> None:
    today, use = world
    quotas = quotas_of(rule, use, today)
    assert sum(quotas.values()) == today.total
    for team in today.teams:
        own = quotas[team.team]
        assert own == team.quota if not team.moves else own >= team.least
        assert team.most is None or own <= team.most
        assert own % today.unit == 0


def test_use_is_what_was_asked_for_in_the_window_as_if_nobody_had_waited() -> None:
    work = [Piece("a", 0, 2 * HOUR, 4), Piece("a", 9 * HOUR, 5 * HOUR, 2), Piece("b", 20 * HOUR, HOUR, 1)]
    found = uses(work, 0, 10 * HOUR)
    assert found == {"a": Use(10 * HOUR, 4.0)}


def test_what_still_ran_at_the_end_had_run_so_far() -> None:
    past = Past.of([Piece("a", 0, 100 * HOUR, 1), Piece("a", 11 * HOUR, HOUR, 1)])
    assert past.seen(0, 10 * HOUR) == (Piece("a", 0, 10 * HOUR, 1),)
    assert past.between(0, 10 * HOUR) == (Piece("a", 0, 100 * HOUR, 1),)
