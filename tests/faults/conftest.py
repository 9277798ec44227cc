"""The prepared world of the matrix: opened once for all cells, since one stack at a time is open in a process."""

from collections.abc import Iterator

import pytest

from taskgov_embedded.walkthrough.world import World
from tests.faults import fault_cases, scenario
from tests.faults.fault_cases import Clean


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with scenario.matrix_world() as opened:
        scenario.prepare(opened)
        yield opened


@pytest.fixture(scope="module")
def clean(world: World) -> Clean:
    return fault_cases.record(world)
