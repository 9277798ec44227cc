"""On queues whose law is known, estimates are hit as often as they say."""

from __future__ import annotations

import pytest

from tests.estimates.calibration import played


def test_a_sample_of_queues_is_hit_about_as_often_as_said() -> None:
    hits = played(range(12), futures=25, looks=2)
    assert hits.estimates >= 20
    assert 0.25 <= hits.half <= 0.75
    assert hits.nine >= 0.7


@pytest.mark.estimates
@pytest.mark.parametrize("heavy", [False, True], ids=["exponential run times", "lognormal run times"])
def test_a_hundred_queues_are_hit_within_three_points(heavy: bool) -> None:
    hits = played(range(2000, 2200), futures=60, looks=6, heavy=heavy)
    assert abs(hits.half - 0.5) <= 0.03
    assert abs(hits.nine - 0.9) <= 0.03
