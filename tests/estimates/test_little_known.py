"""What is assumed where little is known, and how much it counts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.little_known import FLATTEST, STEEPEST, VAGUE, doubt, vague_law, vague_law_of_old
from taskgov.estimates.run_times import LONGEST_KNOWN

SEEN = st.lists(st.tuples(st.floats(0, 1e7), st.booleans()), max_size=30)


@given(st.integers(1, 300))
def test_the_assumption_counts_the_less_the_more_jobs_have_ended(number: int) -> None:
    counts = doubt([(float(seconds), True) for seconds in range(1, number + 1)])
    assert counts(1.0) == pytest.approx(VAGUE / number**2)
    assert counts(float(number)) == pytest.approx(VAGUE / number**2)  # each stands for as many at all ages
    assert counts(number + 1.0) == VAGUE


@given(st.integers(0, 100), st.integers(0, 100))
def test_jobs_that_still_run_are_no_evidence_of_what_comes_after(young: int, ended: int) -> None:
    counts = doubt([*[(100.0, False)] * young, *[(50.0, True)] * ended, (1e6, True)])
    all_of_them = young + ended + 1
    assert counts(1e5) == pytest.approx(VAGUE * (1 - ended / all_of_them) ** 2)


@given(SEEN, st.floats(1, 1e7))
def test_jobs_that_are_older_than_the_known_ones_run_on_for_a_while(seen: list[tuple[float, bool]], age: float) -> None:
    law = vague_law_of_old(age, seen)
    assert law.times[0] >= age
    assert list(law.times) == sorted(law.times)
    twice = 1 - law.below(2 * max(age, 60.0))
    assert 0.5**STEEPEST - 0.01 <= twice <= 0.5**FLATTEST + 0.01


@pytest.mark.parametrize("index", [0.5, 1.0, 1.5])
def test_how_long_the_longest_known_jobs_ran_shows_how_long_older_ones_run(index: float) -> None:
    chance = random.Random(1)  # noqa: S311 -- the same each time, no secret
    found = []
    for _ in range(300):
        longest = sorted((3600 * chance.random() ** (-1 / index), True) for _ in range(400))[-LONGEST_KNOWN:]
        found.append(1 - vague_law_of_old(1e6, longest).below(2e6))
    assert sum(found) / len(found) == pytest.approx(0.5**index, abs=0.05)


def test_without_any_job_run_times_are_from_a_minute_to_a_week() -> None:
    law = vague_law()
    assert law.below(60.0) == pytest.approx(0.0, abs=0.01)
    assert law.below(7 * 86400.0) == pytest.approx(1.0, abs=0.01)
