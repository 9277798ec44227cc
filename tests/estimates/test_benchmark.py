"""`make bench-when`: estimates at the moments of the rules, with what was known then; a row of the table for a size."""

from __future__ import annotations

import argparse
import random

import pytest

from benchmarks.when import COLUMNS, Truth, evenly, looks_at, measured
from taskgov.advice.candidates import TeamTerms, Terms
from taskgov.advice.past import Past, Piece
from taskgov.advice.playing import setting_of
from taskgov.estimates.requests import sound

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


def test_estimates_are_made_at_submission_at_60_s_and_each_hour_while_a_job_waits(truth: Truth) -> None:
    jobs = truth.waiting(0, 8 * DAY)
    assert jobs
    for job in jobs[:40]:
        came, start = truth.pieces[job].arrival, truth.first[job]
        looks = [look.at - came for look in looks_at(truth, [job], 10**4)]
        assert [round(after) for after in looks[:3]] == [0, 60, 3600][: len(looks)]
        assert all(after < start - came for after in looks)
        assert len(looks) >= 1 + (start - came) // 3600
    assert {look.number for look in looks_at(truth, jobs, 1)} == {0}


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


def test_submissions_are_taken_evenly() -> None:
    assert evenly(range(100), 4) == [12, 37, 62, 87]
    assert evenly([1, 2], 5) == [1, 2]


def test_a_size_has_a_row_with_and_one_without_recalibration(truth: Truth) -> None:
    given = argparse.Namespace(half="second", warm=25, sample=12, looks=2, futures=15, horizon=3.0, seed=1, trail=False)
    rows = [line for line in measured(truth, 6, given) if line.startswith("|")]
    assert [row.split("|")[1].strip() for row in rows] == ["6", "6, not recalibrated"]
    assert all(row.count("|") == len(COLUMNS) + 1 for row in rows)
    assert 12 <= int(rows[0].split("|")[2]) <= 24
