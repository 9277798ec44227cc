"""`make bench-when`: estimates at the moments of the rules, with what was known then; a row of the table for a size."""

from __future__ import annotations

import argparse
import random
from copy import copy
from math import inf
from typing import TYPE_CHECKING

import pytest

from benchmarks.when import KNOWN, Truth, measured, moments, timed
from benchmarks.when_score import PARTS, Kept, errors, figures, given_of, ranges, table
from taskgov.advice.candidates import TeamTerms, Terms
from taskgov.advice.past import Past, Piece
from taskgov.advice.playing import setting_of
from taskgov.estimates.requests import sound

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86400.0


@pytest.fixture(scope="module")
def truth() -> Truth:
    chance = random.Random(4)  # noqa: S311 -- the same each time, no secret
    at, pieces = 0.0, []
    while at < 8 * DAY:
        at += chance.expovariate(1 / 1500)
        pieces.append(Piece(chance.choice("ab"), at, chance.expovariate(1 / 7200), chance.choice((1, 1, 2))))
    terms = Terms(tuple((team, TeamTerms(3, 3, 10, never=False)) for team in "ab"), fair=True)
    return Truth(Past.of(pieces), setting_of(terms, 60))


def test_estimates_are_made_at_submission_at_60_s_and_at_each_full_hour_while_a_job_waits(truth: Truth) -> None:
    jobs = truth.waiting(0, 8 * DAY)
    assert jobs
    for job in jobs[:40]:
        came, start = truth.pieces[job].arrival, truth.first[job]
        made = [(look.at, look.jobs[job]) for look in moments(truth, [job])]
        assert made[0] == (came, 0)
        assert all(came <= at < start for at, _ in made)
        assert [at for at, number in made if number == 1] == ([came + 60] if came + 60 < start else [])
        full = [at for at, number in made if number == 2]
        assert all(at % 3600 == 0 and at > came + 60 for at in full)
        assert len(full) >= (start - came) // 3600 - 1
    everybody = moments(truth, jobs)
    assert [look.at for look in everybody] == sorted({look.at for look in everybody})
    assert max(len(look.jobs) for look in everybody) > 1


def test_what_is_known_at_a_moment_says_nothing_of_later(truth: Truth) -> None:
    for at in (2 * DAY, 5 * DAY):
        history = truth.history(at)
        assert history
        assert all(sound(ran, at) for ran in history)
        jobs, scene = truth.scene(at)
        for job, present in zip(jobs, scene.present, strict=True):
            assert truth.pieces[job].arrival <= at
            assert (present.held is not None) == any(
                stay.start <= scene.now and (stay.end is None or stay.end > scene.now) for stay in truth.of_job[job]
            )
        assert all(coming.after >= 0 for coming in truth.arrivals(at).again(DAY, random.Random(1)))  # noqa: S311


def given_of_bench(folder: Path, futures: int = 15) -> argparse.Namespace:
    return argparse.Namespace(every=4, hours=2, futures=futures, horizon=3.0, seed=1, keep=folder)


@pytest.mark.long
def test_a_run_that_was_ended_continues_and_comes_to_the_same(truth: Truth, tmp_path: Path) -> None:
    given = given_of_bench(tmp_path)
    whole = measured(truth, 4 * DAY, 8 * DAY, given, tmp_path / "whole")
    lines = (tmp_path / "whole").read_text().splitlines(keepends=True)
    assert len(lines) == len(whole) > 40
    cut = next(place for place in range(len(lines) // 2, len(lines)) if whole[place].at != whole[place - 1].at)
    (tmp_path / "part").write_text("".join(lines[:cut]))
    again = measured(truth, 4 * DAY, 8 * DAY, given, tmp_path / "part")
    assert [(one.at, one.job) for one in again] == [(one.at, one.job) for one in whole]
    assert [tuple(one.waits) for one in again] == [one.waits for one in whole]
    read = [Kept.read(line) for line in lines]
    assert [one.raw() for one in read] == [one.raw() for one in whole]
    rows = list(table("6 GPUs", whole, 4 * DAY, "1 s"))
    scored = sum(one.came >= 4 * DAY for one in whole)  # the others only correct
    assert rows[0].startswith(f"| 6 GPUs: {scored} estimates of")
    assert all(row.count("|") == 7 for row in rows if row.startswith("|"))


def kept(at: float, waited: float, half: float = 600.0, **more: object) -> Kept:
    waits = [half * (0.2 + part) for part in PARTS]
    one = Kept(at, int(at), "a", 0, at, at + waited, waits, (waited, 2 * waited, 3 * waited), 50, 0.1)
    return one._replace(**more)  # type: ignore[arg-type]


def test_estimates_are_corrected_by_what_was_known_and_by_nothing_else() -> None:
    late = [kept(1000.0 * place, 6000.0) for place in range(80)]
    given = given_of(late)
    raw = late[0].raw()
    assert [one.scored.estimate for one in given[:20]] == [raw] * 20
    assert raw.half < given[-1].scored.estimate.half < 3 * raw.half  # of one day: they were 14 times as late
    assert given[-1].scored.estimate.nine > 2 * raw.nine
    changed = [*late[:60], *(one._replace(start=one.at + 1.0) for one in late[60:])]
    assert [one.scored.estimate for one in given_of(changed)[:61]] == [one.scored.estimate for one in given[:61]]
    assert {one.scored.estimate for one in given_of(late, correct=False)} == {raw}


def test_the_error_stands_beside_that_of_the_best_baseline() -> None:
    own, best = errors(given_of([kept(1000.0 * place, 500.0) for place in range(10)], correct=False))
    assert own == pytest.approx(abs(600 * 0.7 - 500))
    assert best == 0.0


def test_a_team_whose_jobs_all_start_beyond_the_horizon_is_not_the_worst() -> None:
    beyond = [kept(1000.0 * place, 500.0, inf, team="0") for place in range(100)]
    late = [kept(1000.0 * place, 6000.0 if place < 20 else 500.0) for place in range(100)]
    rows = list(table("6 GPUs", [*beyond, *late], 0.0, "1 s"))
    assert rows[4].endswith("| 80% |")
    assert "0: 100 estimates, P50 covers n/a, P90 covers n/a" in rows


def test_a_range_is_as_wide_as_its_spans_differ() -> None:
    alike = given_of([kept(DAY * place, 300.0 if place % 2 else 500.0) for place in range(120)], correct=False)
    half, *_ = ranges(alike)
    assert half[0] == pytest.approx(0.5, abs=0.06)
    assert half[1] == pytest.approx(0.5, abs=0.06)
    # Spans of 3 days share their fate: 40 of them, half of which are late.
    bursts = given_of([kept(DAY * place, 300.0 if place // 3 % 2 else 500.0) for place in range(120)], correct=False)
    low, high = ranges(bursts)[0]
    assert 0.5 - 2.2 * (0.25 / 40) ** 0.5 < low < 0.5 - 1.1 * (0.25 / 40) ** 0.5
    assert 0.5 + 1.1 * (0.25 / 40) ** 0.5 < high < 0.5 + 2.2 * (0.25 / 40) ** 0.5
    assert ranges(bursts) == ranges(bursts)


def test_ranges_of_the_same_estimates_everywhere_are_points() -> None:
    given = given_of([kept(DAY * place, 500.0) for place in range(120)], correct=False)
    for (low, high), value in zip(ranges(given, samples=20), figures(given), strict=True):
        assert (low, high) == pytest.approx((value, value), nan_ok=True)


def test_without_estimates_there_is_no_range() -> None:
    assert "| P50 covers | 45 to 55 % |  | n/a | n/a to n/a | n/a |" in list(table("6 GPUs", [], 0.0, "1 s"))


def test_the_futures_of_a_full_queue_are_timed(truth: Truth, monkeypatch: pytest.MonkeyPatch) -> None:
    assert timed(truth, 0.0, 8 * DAY, 2) == "never 250 jobs wait"
    monkeypatch.setattr("benchmarks.when.WAITING", 3)
    assert " s for the last of " in timed(truth, 0.0, 8 * DAY, 2)


@pytest.mark.plots
def test_two_pictures_are_drawn_for_each_size(tmp_path: Path) -> None:
    from benchmarks.when_plot import plot

    chance = random.Random(1)  # noqa: S311 -- the same each time, no secret
    some = [kept(1000.0 * place, chance.uniform(10, 90_000)) for place in range(300)]
    plot("made up", [(6, some, 0.0), (7, some[:50], 0.0)], tmp_path / "a.svg")
    assert "7 GPUs: median error of P50" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize("known", KNOWN)
def test_estimates_may_be_given_the_true_run_times_of_present_jobs(truth: Truth, known: str) -> None:
    told = copy(truth)
    told.known = known
    jobs, scene = told.scene(5 * DAY)
    for job, present in zip(jobs, scene.present, strict=True):
        is_told = known in {"all", "waiting" if present.held is None else "running"}
        assert present.fixed == (truth.pieces[job].run_time if is_told else None)
    assert {present.held is None for present in scene.present} == {True, False}


def test_with_run_times_of_near_jobs_those_that_come_next_are_in_turn_with_those_that_ran_last(truth: Truth) -> None:
    told, at = copy(truth), 5 * DAY
    told.known = "near"
    last = sorted(truth.history(at), key=lambda ran: ran.started, reverse=True)
    coming = truth.pieces[truth.came_by(at) :][: len(last)]
    history = sorted(told.history(at), key=lambda ran: ran.started, reverse=True)
    assert [ran.seconds for ran in history[:20:2]] == [piece.run_time for piece in coming[:10]]
    assert [ran.seconds for ran in history[1:20:2]] == [ran.seconds for ran in last[:10]]
    assert len(history) == len(last) + len(coming)
