"""Whatever comes in is handled, or refused with an error of the domain, in bounded time."""

import time
from random import Random

import pytest

from taskgov.errors import GovernanceError
from tests.fuzz.worlds import KINDS

SECONDS = 5
"""Of processor time, for one case; the least time that a function has is 60."""
SEED = 20261120


def play(number: int) -> None:
    kind = KINDS[number % len(KINDS)]
    before = time.process_time()
    refused = "not refused"
    try:
        kind(Random(SEED + number))  # noqa: S311 - cases that can be played again
    except GovernanceError as error:
        refused = str(error)
    except Exception as error:
        raise AssertionError(f"case {number} of {kind.__name__}: {type(error).__name__}: {error}") from error
    assert refused, f"case {number} of {kind.__name__} is refused without a reason"
    spent = time.process_time() - before
    assert spent < SECONDS, f"case {number} of {kind.__name__} took {spent:.1f} s"


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.__name__ for kind in KINDS])
def test_a_sample_of_damaged_input_is_handled_or_refused(kind: int) -> None:
    for number in range(kind, 300, len(KINDS)):
        play(number)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(0, 20_000, 1_000))
def test_damaged_input_is_handled_or_refused(start: int) -> None:
    for number in range(start, start + 1_000):
        play(number)
