"""Loops of a cluster with quotas: told in the words of teams, and ended by what is written to the quotas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.allocation import loops
from taskgov.allocation.loops import Loop, loop_in
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.projection import Projection
from taskgov.audit.findings import audit
from taskgov.audit.report_build import audit_report
from taskgov.audit.report_html import report_html
from taskgov.scheduling import Budget, settle
from tests.support.lab import Lab, workload
from tests.support.memory import NOON

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov.snapshot.model import Snapshot


def task(team: str, name: str, pods: int, priority: int) -> dict[str, Any]:
    item = workload(team, name, 1, pods=pods)
    item["metadata"]["labels"] = {}
    item["spec"]["priority"] = priority
    return item


def mixed_sizes(**team_a: Any) -> Snapshot:
    """team-a's small task reclaims from team-b, its large one takes the small one, team-b's comes before that."""
    lab = Lab(fair_share=False).team("team-a", 2, borrow=200, **team_a).team("team-b", 4, borrow=50).machines(6)
    lab.put(task("team-a", "own", 1, 0)).put(task("team-a", "big", 6, 1)).put(task("team-b", "rich", 6, 2))
    return lab.snapshot()


def weight_zero(weight: int = 0) -> Snapshot:
    """team-a has no weight; what is taken from it is within its quota then, and comes back first."""
    lab = Lab().team("team-a", 4, weight=weight).team("team-b", 4, weight=10).machines(8)
    lab.put(task("team-a", "first", 1, 2)).put(task("team-a", "home", 3, 1)).put(task("team-a", "late", 4, 0))
    settle(lab.world, NOON)
    return lab.put(task("team-b", "big", 5, 0)).put(task("team-b", "huge", 5, 1)).snapshot()


def borrowing(limit: int) -> dict[str, Any]:
    return {"Strategy": "LendAndBorrow", "BorrowLimit": limit}


def loop_of(snapshot: Snapshot) -> Loop:
    loop = loop_in(snapshot)
    assert loop is not None
    return loop


def test_mixed_sizes_are_reported_with_their_teams_and_with_what_ends_it() -> None:
    loop = loop_of(mixed_sizes())
    assert loop.workloads == ("team-a/big", "team-a/own", "team-b/rich")
    assert loop.teams == ("team-a", "team-b")
    assert [(remedy.words, remedy.waiting) for remedy in loop.remedies] == [
        ("PreemptTeamTasks of team-a: Never", ("team-a/big", "team-b/rich")),
        ("BorrowLimit of team-a: 100 %", ("team-a/big", "team-b/rich")),
    ]


def test_a_weight_of_zero_is_reported_with_the_weight_that_ends_it() -> None:
    loop = loop_of(weight_zero())
    assert (loop.workloads, loop.preemptors) == (
        ("team-a/home", "team-a/late"),
        ("team-b/big", "team-b/huge"),
    )
    assert [remedy.words for remedy in loop.remedies] == [
        "FairShareWeight of team-a: 10",
        "BorrowLimit of team-a: 50 %",
    ]


@pytest.mark.parametrize(
    ("mended", "quota"),
    [
        pytest.param(mixed_sizes, {"preempt_team_tasks": "Never"}, id="PreemptTeamTasks"),
        pytest.param(mixed_sizes, {"resource_sharing_config": borrowing(100)}, id="limit"),
        pytest.param(weight_zero, {"resource_sharing_config": borrowing(50)}, id="weight zero"),
    ],
)
def test_the_quota_that_is_proposed_ends_it_as_hyperpod_renders_it(
    mended: Callable[[], Snapshot], quota: dict[str, Any]
) -> None:
    snapshot = mended()
    first, *others = snapshot.quotas
    config = type(first.compute_quota_config).model_validate({**first.compute_quota_config.model_dump(), **quota})
    better = first.model_copy(update={"compute_quota_config": config})
    cluster = Projection.of(replace(snapshot, quotas=(better, *others)), teams=("team-a",))
    assert cluster.settle(Budget(10_000)).settled


def test_the_weight_that_is_proposed_ends_it() -> None:
    assert loop_in(weight_zero(weight=10)) is None


def test_queues_without_a_quota_are_reported_in_kueues_words() -> None:
    loop = loop_of(replace(mixed_sizes(), quotas=()))
    assert [remedy.words for remedy in loop.remedies] == [
        "preemption.withinClusterQueue of ClusterQueue hyperpod-ns-team-a-clusterqueue: Never",
        "every borrowingLimit of ClusterQueue hyperpod-ns-team-a-clusterqueue: 100 % of its nominal quota",
    ]


def test_the_audit_reports_the_loop_before_it_happens() -> None:
    snapshot = mixed_sizes()
    [finding] = [
        found for found in audit(snapshot, plan_quotas(snapshot, mode="plan")) if found.code == "preemption-loop"
    ]
    assert finding.because == (
        "Workloads would preempt one another forever if nothing else happened (team-a, team-b): team-a/big, "
        "team-a/own, team-b/rich would be preempted and come back, again and again, for team-a/big, team-a/own, "
        "team-b/rich."
    )
    assert finding.remedy == (
        "in the model any of these ends it: PreemptTeamTasks of team-a: Never; or BorrowLimit of team-a: 100 %"
    )
    assert finding.identity == "preemption-loop ml-cluster"


def test_the_page_has_a_row_for_each_remedy() -> None:
    report = audit_report(mixed_sizes())
    assert report.loops == (loop_of(mixed_sizes()),)
    page = report_html(report).decode()
    assert "Jobs that would preempt each other forever" in page
    assert "PreemptTeamTasks of team-a: Never" in page


def test_a_cluster_without_a_loop_has_no_section_about_one() -> None:
    report = audit_report(Lab().team("team-a", 4).machines(4).submit("team-a", "one").snapshot())
    assert report.loops == ()
    assert '<section id="loops"' not in report_html(report).decode()


def test_the_audit_says_where_the_search_ended_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = mixed_sizes()
    plan = plan_quotas(snapshot, mode="plan")
    monkeypatch.setattr(loops, "steps_for", lambda _: 2)
    [finding] = [found for found in audit(snapshot, plan) if found.code.startswith("preemption-loop")]
    assert (finding.code, finding.severity, finding.evidence) == ("preemption-loop-unknown", "info", {"steps": 2})
    assert finding.because.startswith("Whether workloads would preempt one another forever is not known: after 2 model")
    assert loop_in(snapshot) is None


@pytest.mark.parametrize(
    "snapshot",
    [mixed_sizes(), Lab().team("team-a", 4).machines(4).submit("team-a", "one").snapshot(), Lab().snapshot()],
    ids=["a loop", "comes to rest", "nobody waits"],
)
def test_a_search_with_an_answer_says_nothing_of_its_end(snapshot: Snapshot) -> None:
    found = {finding.code for finding in audit(snapshot, plan_quotas(snapshot, mode="plan"))}
    assert "preemption-loop-unknown" not in found


def test_a_remedy_search_that_ended_says_that_not_all_was_tried() -> None:
    told = Loop(("a/x",), ("b/y",), ("a", "b"), (), 12, searched=False).advice
    assert told.endswith("(not all settings were tried: the search has an end)")


def test_a_loop_that_nothing_ends_says_what_was_tried() -> None:
    advice = Loop(("a/x",), ("b/y",), ("a", "b"), (), 12, searched=True).advice
    assert advice.startswith("no weight, preemption of own tasks or borrow limit ends it in the model (12 tried)")


def test_objects_that_cannot_be_read_make_no_loop() -> None:
    snapshot = mixed_sizes()
    broken = replace(snapshot.kueue, cluster_queues=({"metadata": {"name": "x"}, "spec": {"resourceGroups": [{}]}},))
    assert loop_in(replace(snapshot, kueue=broken)) is None


def test_the_search_for_a_loop_takes_the_steps_of_a_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "steps_for", lambda _model: 1)
    assert loop_in(mixed_sizes()) is None
