"""How the work of each row of `make bench` grows: counted calls and requests, which no busy machine changes."""

from __future__ import annotations

import cProfile
import pstats
from functools import cache
from math import ceil
from typing import TYPE_CHECKING

import pytest

from benchmarks.scale import rows, serving, writing
from benchmarks.scale.measured import AIMS, ON_A_CLUSTER, exponent
from benchmarks.scale.world import CHANGED, PAGE, SAGEMAKER_PAGE, Size
from taskgov.services import read_queue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

SIZES = 4, 8, 16
LARGER = 64, 125
"""Sizes at which rows that play the model use up their budget of steps, if they ever do, and plans have waves alike.

Below, their work grows faster than the aim: up to six writes are played in every order, and several paths are tried.
"""
WITH_A_BUDGET = "plan_quotas", "plan_quotas: one shape", "audit_cluster", "what-if"
OF_LARGER = WITH_A_BUDGET + tuple(writing.ROWS)
"""Rows that make a plan, or write one that is made at that size."""


class Work:
    """What each row did at each size: function calls, counts, and requests by what was asked for."""

    def __init__(self, make: Callable[[int], Path]) -> None:
        self.folder = cache(make)
        self._done: dict[tuple[str, int], tuple[int, dict[str, float], dict[str, int]]] = {}

    def of(self, row: str, teams: int) -> tuple[int, dict[str, float], dict[str, int]]:
        if (row, teams) not in self._done:
            folder = self.folder(teams)
            if row in writing.ROWS and not (folder / rows.PLAN).exists():
                self.of("plan_quotas", teams)
            calls: list[int] = []

            def counted(work: Callable[[], dict[str, float]]) -> dict[str, float]:
                profile = cProfile.Profile()
                serving.REQUESTS.clear()
                with profile:
                    figures = work()
                calls.append(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
                return {"cpuSeconds": 0, **figures}

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rows, "measured", counted)
                patch.setattr(writing, "measured", counted)
                figures = ON_A_CLUSTER[row](folder)
            self._done[row, teams] = (calls[-1], figures, dict(serving.REQUESTS))
        return self._done[row, teams]

    def exponent(self, row: str) -> float:
        sizes = LARGER if row in OF_LARGER else SIZES
        found = exponent((teams, self.of(row, teams)[0]) for teams in sizes)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    def make(teams: int) -> Path:
        folder = tmp_path_factory.mktemp(f"teams-{teams}")
        rows.prepare(folder, teams)
        rows.prepare_one_shape(folder, teams)
        return folder

    return Work(make)


@pytest.mark.parametrize("row", ON_A_CLUSTER)
def test_calls_grow_no_faster_than_the_aim(work: Work, row: str) -> None:
    aim = AIMS[row].exponent
    assert aim is not None
    assert work.exponent(row) <= aim


@pytest.mark.parametrize("teams", [SIZES[0], SIZES[-1], *LARGER])
def test_a_plan_is_fully_predicted_where_queues_have_one_shape_of_jobs(work: Work, teams: int) -> None:
    plan = work.of("plan_quotas: one shape", teams)[1]
    assert plan["complete"]
    assert teams <= plan["changes"] <= 2 * teams


CALLS_PER_WORKLOAD = {"status": 145, "explain": 255, "read_snapshot": 205, "publish_usage": 450}
"""Function calls of a row for each further workload, with its part of nodes and quotas; about a tenth is left."""


@pytest.mark.parametrize("row", CALLS_PER_WORKLOAD)
def test_a_further_workload_takes_few_calls(work: Work, row: str) -> None:
    *_, before, calls = (work.of(row, teams)[0] for teams in SIZES)  # the first one imports modules too
    *_, size, largest = (Size(teams).workloads for teams in SIZES)
    assert calls - before <= CALLS_PER_WORKLOAD[row] * (largest - size)


@pytest.mark.parametrize("teams", SIZES)
def test_a_look_makes_a_request_for_each_page(work: Work, teams: int) -> None:
    _, _, requests = work.of("read_snapshot", teams)
    size = Size(teams)
    assert {name: count for name, count in requests.items() if count > 1 or name in PAGED} == {
        "ListClusterNodes": ceil(size.nodes / SAGEMAKER_PAGE),
        "ListComputeQuotas": ceil(teams / SAGEMAKER_PAGE),
        "nodes": ceil(size.nodes / PAGE),
        "workloads": ceil(size.workloads / PAGE),
        "clusterqueues": 1,
        "localqueues": 1,
    }


PAGED = {"ListClusterNodes", "ListComputeQuotas", "nodes", "workloads", "clusterqueues", "localqueues"}


@pytest.mark.parametrize("teams", SIZES)
def test_a_minute_reads_the_workloads_that_changed(work: Work, teams: int) -> None:
    _, figures, requests = work.of("publish_usage", teams)
    assert figures["workloadsRead"] <= 1 + CHANGED
    assert (requests["workloads"], requests["watch"]) == (1, 1)  # what is the version of now; what happened until then


@pytest.mark.parametrize("teams", SIZES)
def test_estimates_list_the_workloads_only_where_they_are_made(
    work: Work, monkeypatch: pytest.MonkeyPatch, teams: int
) -> None:
    most = Size(SIZES[0]).workloads
    monkeypatch.setattr(read_queue, "MOST_PRESENT", most)
    figures = rows.estimate_starts_after_a_minute(work.folder(teams))
    size = Size(teams).workloads
    assert figures["waiting"] == size / 2
    listed, watched = (ceil(size / PAGE), 0) if size <= most else (1, 1)
    assert (serving.REQUESTS["workloads"], serving.REQUESTS["watch"]) == (listed, watched)


@pytest.mark.parametrize("teams", LARGER)
def test_the_end_of_a_run_reads_each_page_once_and_writes_one_for_each_team(work: Work, teams: int) -> None:
    _, figures, requests = work.of("end_of_run", teams)
    assert figures["pages"] == teams
    assert requests["workloads"] == ceil(Size(teams).workloads / PAGE)


@pytest.mark.parametrize("teams", LARGER)
def test_a_plan_changes_every_quota_and_a_call_writes_a_part_of_its_first_wave(work: Work, teams: int) -> None:
    plan = work.of("plan_quotas", teams)[1]
    assert teams <= plan["changes"] <= 2 * teams
    assert 1 <= work.of("apply_change", teams)[1]["written"] <= min(teams, writing.PER_CALL)
    assert work.of("verify_plan", teams)[1]["settled"]
    assert work.of("verify_plan", teams)[2] == {"ListComputeQuotas": ceil(teams / SAGEMAKER_PAGE)}


def test_the_report_and_the_log_stay_within_what_is_promised(work: Work) -> None:
    assert work.of("audit_cluster", LARGER[-1])[1]["pageBytes"] <= 3_000_000
    assert work.of("publish_usage", SIZES[-1])[1]["logBytes"] <= 800_000
