"""On queues whose law is known, estimates are hit as often as they say."""

from __future__ import annotations

import random

import pytest

from taskgov.estimates.scoring import Scored, score
from tests.estimates.calibration import played
from tests.estimates.queues import Kind
from tests.estimates.test_recalibration import corrected_for_days


def test_a_sample_of_queues_is_hit_about_as_often_as_said() -> None:
    hits = played(range(12), futures=25, looks=2)
    assert hits.estimates >= 20
    assert 0.25 <= hits.half <= 0.75
    assert hits.nine >= 0.7


@pytest.mark.estimates
@pytest.mark.parametrize("kind", Kind)
def test_a_hundred_queues_are_hit_within_three_points(kind: Kind) -> None:
    hits = played(range(2000, 2200), futures=60, looks=6, kind=kind)
    assert abs(hits.half - 0.5) <= 0.03
    assert abs(hits.nine - 0.9) <= 0.03


@pytest.mark.estimates
def test_of_a_hundred_histories_with_futures_that_are_off_corrected_estimates_are_hit_within_three_points() -> None:
    scored: list[Scored] = []
    for seed in range(60):
        factor = random.Random(seed).lognormvariate(0, 0.7)  # noqa: S311 -- the same each time, no secret
        for off in (factor, 1 / factor):  # as often too early as too late
            scored += corrected_for_days(random.Random(f"{seed} {off}"), off, days=40, a_day=8)[20 * 8 :]  # noqa: S311
    found = score(scored)
    assert abs(found.half - 0.5) <= 0.03
    assert abs(found.nine - 0.9) <= 0.03
