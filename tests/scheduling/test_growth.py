"""How the model's work grows: counted function calls, which no busy machine changes."""

from __future__ import annotations

import cProfile
import math
import pstats

import pytest

from benchmarks.scale import models

pytestmark = pytest.mark.slow


def _calls_a_cycle(row: str, number: int) -> float:
    profile = cProfile.Profile()
    with profile:
        figures = models.measure(row, number)
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return calls / max(figures["cycles"], 1)


@pytest.mark.parametrize(
    ("row", "number", "aim"),
    [
        ("model: shapes that do not fit", 100, 1.25),
        ("model: queues with fair sharing", 20, 1.25),
        ("model: deep trees", 16, 1.25),
        ("model: flavors", 20, 1.25),
        ("model: victims", 200, 1.25),
    ],
)
def test_a_cycle_grows_no_faster_than_the_aim(row: str, number: int, aim: float) -> None:
    """A cycle looks at one head of each queue, so that it may grow as the number of queues does."""
    smallest, largest = _calls_a_cycle(row, number), _calls_a_cycle(row, 4 * number)
    assert math.log(largest / smallest, 4) <= aim
