"""Advice on histories whose best setting is known, and on chance, where it is to leave everything as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taskgov.advice.advising import Adviser
from taskgov.advice.candidates import Candidate, Terms
from taskgov.advice.choosing import Tried, best_of
from taskgov.advice.judging import Result, TeamResult
from taskgov.advice.past import DAY, HOUR, WEEK, Past, Piece
from taskgov.advice.playing import Player
from taskgov.advice.proving import Proof, gain_of, why_leave
from taskgov.advice.rules import Rule
from taskgov.advice.splits import Split
from taskgov.advice.today import Today
from taskgov_cli.advise_exact import replay_exactly
from tests.advice.synthetic import adviser, by_clock, history, steady, team

AS_IT_IS = Candidate(Rule.TODAY)


def test_a_team_that_starves_by_its_limit_gets_a_higher_one() -> None:
    past = history(lambda chance: [*by_clock(chance, "burst", 6, 8, 14), *steady(chance, "calm", 1)])
    advice = adviser(past, team("burst", 2, 50), team("calm", 8, 50)).advise(most=2)
    assert advice.candidate == Candidate(Rule.TODAY, 200)
    assert dict(advice.terms.teams)["burst"].limit == 4
    assert advice.gain > 0.9
    assert all(proof.won for proof in advice.proofs)


def test_quota_moves_from_a_team_that_hoards_to_one_that_waits_where_nobody_borrows() -> None:
    past = history(lambda chance: [*steady(chance, "busy", 5, hours=6), *steady(chance, "hoarder", 0.2)])
    advice = adviser(past, team("busy", 4, 0, borrows=False), team("hoarder", 8, 0, borrows=False)).advise(most=2)
    assert advice.candidate is not None
    quotas = {name: own.quota for name, own in advice.terms.teams}
    assert quotas["busy"] >= 6
    assert sum(quotas.values()) == 12


def test_teams_that_take_turns_by_day_and_night_lend_to_each_other() -> None:
    past = history(lambda chance: [*by_clock(chance, "day", 6, 8, 14), *by_clock(chance, "night", 6, 18, 24)])
    advice = adviser(past, team("day", 3, 0), team("night", 3, 0)).advise(most=2)
    assert advice.candidate == Candidate(Rule.TODAY, 100)
    assert [own.quota for _, own in advice.terms.teams] == [3, 3]


@pytest.mark.parametrize("seed", [1, 2])
def test_chance_is_left_as_it_is(seed: int) -> None:
    past = history(lambda chance: [part for name in "abc" for part in steady(chance, name, 1.6, hours=6)], seed)
    advice = adviser(past, *(team(name, 2, 10_000) for name in "abc")).advise(most=3)
    assert advice.candidate is None
    assert advice.terms == advice.today


def test_where_nobody_waits_everything_is_left() -> None:
    past = history(lambda chance: [*steady(chance, "a", 0.3), *steady(chance, "b", 0.3)])
    advice = adviser(past, team("a", 4), team("b", 4)).advise(most=2)
    assert (advice.candidate, advice.because) == (
        None,
        "none of the candidates that keep the limits did better in past weeks",
    )


def test_a_short_history_proves_nothing() -> None:
    past = Past.of([Piece("a", n * HOUR, HOUR, 1) for n in range(300)], 2 * WEEK)
    advice = adviser(past, team("a", 1)).advise()
    assert (advice.candidate, advice.proofs) == (None, ())
    assert advice.because == "the history is too short for a proof: it needs 4 weeks of work"
    longer = adviser(past, team("a", 1)).advise(weeks=3)
    assert longer.because == "the history is too short for a proof: it needs 6 weeks of work"


def test_rules_that_change_nothing_are_not_chosen_for_the_rounding_of_a_sum() -> None:
    past = history(lambda chance: steady(chance, "a", 7.9, size=2), 3)
    today = Today((team("a", 8),), rule=Rule.USE)
    adviser = Adviser(past, lambda _: today, Player(300))
    assert {proof.candidate for proof in adviser.prove(weeks=1)} == {adviser.as_it_is()}


def test_without_work_there_is_nothing_to_advise() -> None:
    assert adviser(Past.of([]), team("a", 1)).advise().candidate is None


def test_a_choice_sees_nothing_of_what_came_after_it() -> None:
    past = history(lambda chance: [*by_clock(chance, "burst", 6, 8, 14), *steady(chance, "calm", 1)])
    moment = 3 * WEEK
    later = tuple(piece._replace(gpus=4) if piece.arrival >= moment else piece for piece in past.pieces)
    longer = tuple(
        piece._replace(run_time=9 * DAY) if piece.arrival + piece.run_time > moment else piece for piece in later
    )
    teams = team("burst", 2, 50), team("calm", 8, 50)
    chosen = [adviser(Past(pieces, past.end), *teams).choose(moment) for pieces in (past.pieces, longer)]
    assert chosen[0] == chosen[1]


def test_a_candidate_that_loses_too_much_work_or_harms_too_many_is_not_chosen() -> None:
    def play(terms: Terms, pieces: object) -> Result:
        limit = dict(terms.teams)["a"].limit
        waits = {8: 500.0, 16: 100.0, 40: 50.0, 800: 10.0}.get(limit or 0, 1000.0)
        lost = 60.0 if limit == 800 else 1.0
        harmed = 9000.0 if limit == 40 else 0.0
        return Result(10, waits, waits, 0, 0, lost, 1000.0, {"a": TeamResult(10, harmed)})

    past = Past.of([Piece("a", n * DAY, HOUR, 1) for n in range(43)], 6 * WEEK)
    best, tried = Adviser(past, lambda _: Today((team("a", 8),)), play).choose(past.end)
    assert best.limit == 200
    with_these_quotas = [one for one in tried if one.candidate.rule is Rule.TODAY and one.candidate.fair]
    assert {one.candidate.limit for one in with_these_quotas if not one.is_allowed} == {500, 10_000}


def test_a_candidate_under_which_work_preempts_itself_without_end_is_not_chosen() -> None:
    def play(terms: Terms, pieces: object) -> Result:
        limit = dict(terms.teams)["a"].limit or 0
        return Result(10, 1000.0 - limit, 0, 0, 0, 0.0, 1000.0, {"a": TeamResult(10, 0.0)}, loops=limit == 800)

    past = Past.of([Piece("a", n * DAY, HOUR, 1) for n in range(43)], 6 * WEEK)
    best, tried = Adviser(past, lambda _: Today((team("a", 8),)), play).choose(past.end)
    assert best.limit == 500
    assert {known.candidate.limit for known in tried if known.loops} == {10_000}


TRIED = {
    "less wait wins": ([(Rule.USE, 100, 0.50), (Rule.EQUAL, 100, 0.53)], (Rule.USE, 100)),
    "of rules that are alike the one that follows the past less": (
        [(Rule.USE, 100, 0.50), (Rule.ROOT, 100, 0.51), (Rule.EQUAL, 100, 0.52)],
        (Rule.EQUAL, 100),
    ),
    "today's quotas before all others": ([(Rule.TODAY, 500, 0.52), (Rule.EQUAL, 100, 0.50)], (Rule.TODAY, 500)),
    "of one rule the limit with less wait": ([(Rule.USE, 500, 0.50), (Rule.USE, 200, 0.54)], (Rule.USE, 500)),
    "of limits that are alike the lower one": ([(Rule.USE, 500, 0.500), (Rule.USE, 200, 0.505)], (Rule.USE, 200)),
    "nothing where nothing is better": ([(Rule.EQUAL, 500, 1.05), (Rule.USE, 500, 1.0)], (Rule.TODAY, None)),
}


@pytest.mark.parametrize(("found", "want"), TRIED.values(), ids=TRIED)
def test_of_candidates_that_keep_the_limits_the_best_is(
    found: list[tuple[Rule, int, float]], want: tuple[Rule, int | None]
) -> None:
    tried = [Tried(AS_IT_IS, 1.0, 0.0, 0, 10)]
    tried += [Tried(Candidate(rule, limit), wait, 0.05, 1, 13) for rule, limit, wait in found]
    tried += [
        Tried(Candidate(Rule.PEAK, 100), 0.1, 0.051, 0, 12),
        Tried(Candidate(Rule.PEAK, 200), 0.1, 0.0, 1, 12),
        Tried(Candidate(Rule.PEAK, 500), 0.1, 0.0, 0, 12, loops=True),
        Tried(Candidate(Rule.PEAK, 10_000), 0.1, 0.0, 0, 12, is_whole=False),
    ]
    best = best_of(tried, AS_IT_IS)
    assert (best.rule, best.limit) == want


def test_what_follows_the_past_less_and_waits_longer_than_today_is_not_chosen() -> None:
    now = Candidate(Rule.USE)
    tried = [Tried(now, 1.0, 0.0, 0, 10), Tried(Candidate(Rule.EQUAL), 1.05, 0.0, 0, 10)]
    assert best_of(tried, now) == now


def proof(today: float, advised: float) -> Proof:
    results = [Result(10, wait, wait, 0, 0, 0, 1, {}) for wait in (today, advised, today)]
    return Proof(Split(0, 1, 2), Candidate(Rule.USE), *results)


@pytest.mark.parametrize(
    ("proofs", "noise", "said"),
    [
        ([proof(HOUR, 60)] * 3, 0.1, ""),
        ([proof(HOUR, 60)] * 3, 0.99, "a mean wait that is 98 % shorter is within the noise of 99 %"),
        ([proof(50, 5)] * 3, 0.1, "a mean wait that is 90 % shorter is within the noise of 10 %"),
        ([proof(HOUR, 60), proof(60, 70), proof(60, 70)], 0.0, "the choice would have won in 1 of 3 splits only"),
    ],
    ids=["it gains", "as much by chance", "less than a minute", "it seldom wins"],
)
def test_advice_has_to_win_often_and_by_more_than_chance(proofs: list[Proof], noise: float, said: str) -> None:
    assert why_leave(Candidate(Rule.USE), AS_IT_IS, proofs, noise) == said


def test_the_gain_is_that_of_the_mean_wait_over_all_splits() -> None:
    assert gain_of([proof(300, 100), proof(100, 100)]) == 0.5
    assert gain_of([proof(0, 0)]) == 0


def test_priorities_bring_preemption_within_a_team_into_play() -> None:
    past = history(lambda chance: steady(chance, "a", 1.5))
    mixed = replace(past, pieces=tuple(p._replace(priority=n % 2) for n, p in enumerate(past.pieces)))
    for history_, expected in ((past, {None}), (mixed, {None, True, False})):
        _, tried = adviser(history_, team("a", 2)).choose(3 * WEEK)
        assert {one.candidate.never for one in tried} == expected


def test_the_exact_model_comes_to_the_same() -> None:
    past = history(lambda chance: [*by_clock(chance, "a", 5, 8, 14), *steady(chance, "b", 3, size=2)])
    advised = adviser(past, team("a", 3, 100), team("b", 4, 50))
    work = past.between(0, 6 * DAY)
    for candidate in (AS_IT_IS, Candidate(Rule.EQUAL, 500), Candidate(Rule.USE, 100, fair=False)):
        example = replace(advised.proof(candidate, Split(0, WEEK, 2 * WEEK)), candidate=candidate)
        _, terms, _ = advised.inputs_of(example)
        assert replay_exactly(terms, work, 300) == Player(300)(terms, work)


def test_the_result_of_teams_by_themselves_is_kept_apart_from_that_of_teams_that_share() -> None:
    past = history(lambda chance: [*by_clock(chance, "day", 6, 8, 14), *by_clock(chance, "night", 6, 18, 24)])
    advised, split = adviser(past, team("day", 3, 100), team("night", 3, 100)), Split(0, WEEK, 2 * WEEK)
    for _ in range(2):
        shared, by_themselves = (advised.result(AS_IT_IS, split, by_itself=apart) for apart in (False, True))
        assert shared.mean_wait < 0.8 * by_themselves.mean_wait


def test_jobs_that_the_fast_replay_does_not_follow_are_refused_each_time() -> None:
    past, player = Past.of([Piece("a", 0.0, HOUR, 2**60)]), Player(300)
    terms, _, _ = adviser(past, team("a", 2)).inputs_of(adviser(past, team("a", 2)).proof(AS_IT_IS, Split(0, 1, 2)))
    for _ in range(2):
        with pytest.raises(ValueError, match="the fast replay does not follow this"):
            player(terms, past.pieces)
