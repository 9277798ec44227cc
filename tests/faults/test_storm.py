"""Thousands of events and fifty edits: few runs write, nothing is written twice, nobody's edit is lost."""

import os

import pytest

from tests.faults import storm
from tests.faults.storm import EDITS, Weather

pytestmark = pytest.mark.long

EVENTS = int(os.environ.get("TASKGOV_FAULTS_EVENTS", "10000"))


def weather(events: int, edits: int, capsys: pytest.CaptureFixture[str]) -> Weather:
    with storm.storm_world() as world:
        found = storm.rage(world, events, edits)
    with capsys.disabled():
        print(f"\n{found}")
    return found


@pytest.mark.parametrize(
    ("events", "edits"),
    [pytest.param(20, 10, id="a squall"), pytest.param(EVENTS, EDITS, id="a storm", marks=pytest.mark.faults)],
)
def test_a_burst_of_events_amid_edits_writes_what_changed_once_and_no_edit_over(
    events: int, edits: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = weather(events, edits, capsys)
    assert found.problems == ()
    assert found.messages > events
    assert found.edits == edits
    assert 1 <= found.writing <= 3
    assert found.written == found.changed > 0
