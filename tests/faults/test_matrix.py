"""Every call, every fault: what must hold, holds.

`make test-faults-deep` plays all cells, `make test-faults` a seeded sample of them; a few are played every time.
"""

import functools
import os

import pytest
from rich.progress import track

from taskgov_embedded.walkthrough.world import World
from tests.faults import fault_cases, kept, sites
from tests.faults.fault_cases import Clean, Outcome
from tests.faults.sites import KUBERNETES, MACHINE, Kind
from tests.faults.table import failures, table

pytestmark = pytest.mark.long

CELLS = int(os.environ.get("TASKGOV_FAULTS_CELLS", "600"))
PAIRS = CELLS // 10
DEEP_PAIRS = 5_000
PART = os.environ.get("TASKGOV_FAULTS_PART", "1/1")
JOBS = int(os.environ.get("TASKGOV_FAULTS_JOBS", str(os.cpu_count() or 1)))
SEED = int(os.environ.get("TASKGOV_FAULTS_SEED", "20"))
SAMPLE = (
    ("ApplyChangeRole", "UpdateComputeQuota", 2, Kind.EDIT),
    ("ApplyChangeRole", "UpdateComputeQuota", 3, Kind.LIMIT_REACHED),
    (MACHINE, "Apply changes", 3, Kind.STOPPED),
)


def failed(outcomes: list[Outcome]) -> list[str]:
    return [str(outcome) for outcome in outcomes if outcome.mark == "FAIL"]


def test_a_clean_run_keeps_every_rule_that_cells_are_judged_by(clean: Clean) -> None:
    assert clean.problems == ()
    assert clean.preemptions == 1


def test_a_clean_run_calls_every_service_that_reconciling_needs(clean: Clean) -> None:
    services = {call.service for call in clean.calls}
    assert services >= {"sagemaker", "dynamodb", "s3", "lambda", "events", "eks", "stepfunctions", KUBERNETES}


def test_a_sample_of_cells_comes_out_right(world: World, clean: Clean) -> None:
    wanted = [
        cell
        for cell in sites.cells(sites.sites(clean.calls))
        if (cell.site.call.caller, cell.site.call.operation, cell.site.number, cell.kind) in SAMPLE
    ]
    outcomes = list(fault_cases.play(world, clean, [(cell,) for cell in wanted], jobs=2))
    assert len(outcomes) >= len(SAMPLE)
    assert {str(outcome): outcome.problems for outcome in outcomes if outcome.mark == "FAIL"} == {}


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(CELLS, id="a sample", marks=pytest.mark.faults),
        pytest.param(None, id="all", marks=pytest.mark.faults_deep),
    ],
)
def test_the_cells_of_the_matrix_come_out_right(
    world: World, clean: Clean, count: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    where = sites.sites(clean.calls)
    chosen = list(sites.cells(where)) if count is None else sites.sample(where, count, SEED)
    with capsys.disabled():
        played = fault_cases.play(world, clean, [(cell,) for cell in chosen], jobs=JOBS)
        outcomes = list(track(played, "cells", total=len(chosen)))
        print("\n" + "\n".join(table(outcomes)))
    assert failed(outcomes) == []
    assert sum(outcome.twice for outcome in outcomes) <= 2  # docs/faults.md, "Known limits"


@pytest.mark.faults
def test_two_faults_in_one_run_come_out_right(world: World, clean: Clean, capsys: pytest.CaptureFixture[str]) -> None:
    """At most one resync more than a fault alone needs, and everything else that a cell has to keep."""
    drawn = sites.pairs(sites.sites(clean.calls), PAIRS, SEED)
    with capsys.disabled():
        played = fault_cases.play(world, clean, drawn, jobs=JOBS)
        outcomes = list(track(played, "pairs", total=len(drawn)))
        print("\n" + "\n".join(failures(outcomes, "pairs", "of cells")))
    assert failed(outcomes) == []


@pytest.mark.faults_deep
def test_thousands_of_pairs_of_faults_come_out_right(
    world: World, clean: Clean, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for many more. Each outcome is kept: an interrupted run continues where it stopped."""
    drawn = kept.part(sites.pairs(sites.sites(clean.calls), DEEP_PAIRS, SEED), PART)
    play = functools.partial(fault_cases.play, world, clean, jobs=JOBS)
    counts = (lambda _commit: True) if os.environ.get("TASKGOV_FAULTS_COMMITS") == "any" else None
    outcomes = kept.go_on(kept.FOLDER / f"pairs-{SEED}.jsonl", drawn, play, kept.commit_of(), counts)
    with capsys.disabled():
        found = list(track(outcomes, "pairs", total=len(drawn)))
        print("\n" + "\n".join(kept.report(found, "pairs", "of cells")))
    assert [case.case for case in found if case.mark == "FAIL"] == []
