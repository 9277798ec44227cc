"""How the work of each row of `make bench` grows: counted calls and requests, which no busy machine changes."""

from __future__ import annotations

import cProfile
import pstats
from math import ceil
from typing import TYPE_CHECKING

import pytest

from benchmarks.scale import rows, serving, writing
from benchmarks.scale.measured import AIMS, ON_A_CLUSTER, exponent
from benchmarks.scale.world import CHANGED, PAGE, SAGEMAKER_PAGE, Size
from taskgov.services import read_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow

SIZES = 4, 8, 16


class Work:
    """What each row did at each size: function calls, counts, and requests by what was asked for."""

    def __init__(self, folders: Mapping[int, Path]) -> None:
        self.folders = folders
        self._done: dict[tuple[str, int], tuple[int, dict[str, float], dict[str, int]]] = {}

    def of(self, row: str, teams: int) -> tuple[int, dict[str, float], dict[str, int]]:
        if (row, teams) not in self._done:
            if row in writing.ROWS and not (self.folders[teams] / rows.PLAN).exists():
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
                figures = ON_A_CLUSTER[row](self.folders[teams])
            self._done[row, teams] = (calls[-1], figures, dict(serving.REQUESTS))
        return self._done[row, teams]

    def exponent(self, row: str) -> float:
        found = exponent((teams, self.of(row, teams)[0]) for teams in SIZES)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    folders = {teams: tmp_path_factory.mktemp(f"teams-{teams}") for teams in SIZES}
    for teams, folder in folders.items():
        rows.prepare(folder, teams)
    return Work(folders)


BELOW_THEIR_BUDGET = {"plan_quotas": 2.0, "audit_cluster": 2.0, "what-if": 2.0}
"""Rows that play the model within a budget of steps, which these sizes do not use up, and how they grow at most here.

Their aims are exponents at full size; that they are met there is not shown. Each of them makes a plan, and how many
paths a plan tries depends on the world: `what-if` tries eight with 8 teams, and fewer with 4 and with 16.
"""


@pytest.mark.parametrize("row", ON_A_CLUSTER)
def test_calls_grow_no_faster_than_the_aim(work: Work, row: str) -> None:
    aim = AIMS[row].exponent
    assert aim is not None
    assert work.exponent(row) <= BELOW_THEIR_BUDGET.get(row, aim)


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
    figures = rows.estimate_starts_after_a_minute(work.folders[teams])
    size = Size(teams).workloads
    assert figures["waiting"] == size / 2
    listed, watched = (ceil(size / PAGE), 0) if size <= most else (1, 1)
    assert (serving.REQUESTS["workloads"], serving.REQUESTS["watch"]) == (listed, watched)


@pytest.mark.parametrize("teams", SIZES)
def test_the_end_of_a_run_reads_each_page_once_and_writes_one_for_each_team(work: Work, teams: int) -> None:
    _, figures, requests = work.of("end_of_run", teams)
    assert figures["pages"] == teams
    assert requests["workloads"] == ceil(Size(teams).workloads / PAGE)


@pytest.mark.parametrize("teams", SIZES)
def test_a_plan_changes_every_quota_and_a_call_writes_a_part_of_its_first_wave(work: Work, teams: int) -> None:
    plan = work.of("plan_quotas", teams)[1]
    assert teams <= plan["changes"] <= 2 * teams
    assert 1 <= work.of("apply_change", teams)[1]["written"] <= min(teams, writing.PER_CALL)
    assert work.of("verify_plan", teams)[1]["settled"]
    assert work.of("verify_plan", teams)[2] == {"ListComputeQuotas": 1}


def test_the_report_and_the_log_stay_within_what_is_promised(work: Work) -> None:
    assert work.of("audit_cluster", SIZES[-1])[1]["pageBytes"] <= 3_000_000
    assert work.of("publish_usage", SIZES[-1])[1]["logBytes"] <= 800_000
