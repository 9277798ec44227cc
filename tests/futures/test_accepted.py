"""What clusters hold is accepted by the fast replay, and goes on from there as the exact model goes on."""

from pathlib import Path

import pytest

from benchmarks.futures import Tally, both, main, played, stored
from benchmarks.worlds import world
from taskgov.advice.past import DAY
from taskgov.allocation.projection import model_of
from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli.replay_traces import Job, Trace, read_trace
from taskgov_embedded.walkthrough.model import HERE

pytestmark = pytest.mark.long

SHARED = Path(__file__).parents[3] / "shared"
WORLDS = SHARED / "plan-worlds"
AIM = 0.6
"""The part of the worlds that is to be accepted at least."""


@pytest.mark.parametrize("family", ["path", "squeeze", "drift"])
def test_worlds_with_work_are_accepted_and_continue_alike(family: str) -> None:
    tally = Tally(family)
    for number in range(12):
        tally.add(model_of(world(family, 3, number)))
    assert tally.with_jobs > 6
    assert tally.accepted_with_jobs >= AIM * tally.with_jobs
    assert (tally.differences, tally.worlds) == (0, 12)


@pytest.mark.skipif(not WORLDS.is_dir(), reason="the stored worlds are not beside this checkout")
def test_the_stored_worlds_are_accepted_and_continue_alike() -> None:
    tally = Tally("stored")
    for model in stored(WORLDS):
        tally.add(model)
    assert tally.accepted_with_jobs >= AIM * tally.with_jobs > 0
    assert tally.differences == 0


def test_a_walkthrough_of_the_demo_is_accepted_after_each_step() -> None:
    tally = Tally("demo")
    for model in played([HERE / "08-lend-and-borrow.yaml"]):
        tally.add(model)
    assert tally.accepted == tally.worlds > 2
    assert tally.with_jobs > 0


def test_what_is_refused_is_printed_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_bytes(snapshot_to_json(world("path", 3, number)))
    assert main([str(tmp_path), "--no-demo"]) == 0
    assert f"| {tmp_path.name} | 3 of 3 (100 %) |" in capsys.readouterr().out


TRACE = SHARED / "traces" / "philly-2017" / "philly.csv"


@pytest.mark.skipif(not TRACE.is_file(), reason="the trace of Philly is not beside this checkout")
def test_philly_is_replayed_alike_for_21_days_on_300_gpus() -> None:
    found = both(read_trace(TRACE).between(0, 21 * DAY), gpus=300)
    assert (found.jobs, found.differences) == (1571, 0)
    assert found.preempted > 100


def test_a_trace_is_replayed_alike_by_both_models() -> None:
    jobs = tuple(Job(f"team-{n % 3}", 600.0 * n, 3600.0 * (1 + n % 5), 1 + n % 4) for n in range(60))
    found = both(Trace("made", jobs, 0), gpus=8)
    assert (found.jobs, found.differences) == (60, 0)
    assert found.preempted > 0
    assert found.sentence().startswith("60 jobs, ")
