"""The prepared world of the matrix: opened once for all cells, since one stack at a time is open in a process."""

from collections.abc import Iterator

import pytest

from taskgov_embedded.matrix import cells, scenario
from taskgov_embedded.matrix.cells import Clean
from taskgov_embedded.walkthrough.world import World


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with scenario.matrix_world() as opened:
        scenario.prepare(opened)
        yield opened


@pytest.fixture(scope="module")
def clean(world: World) -> Clean:
    return cells.record(world)
