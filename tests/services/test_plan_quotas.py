"""Planning from a stored snapshot: how a plan is stored and summed up. What it says is tested with `allocation`."""

from dataclasses import replace

import pytest

from taskgov.allocation import planner
from taskgov.allocation.codec import plan_from_json
from taskgov.allocation.plan import Outcome
from taskgov.contracts.steps import PlanQuotasRequest
from taskgov.findings import Finding, Severity
from taskgov.services.plan_path import wave_ends
from taskgov.services.plan_quotas import LEFT, SUMMARY_CHANGES, PlanQuotas, summary
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import ClusterFacts, Snapshot
from taskgov.violations import Violation
from tests.allocation.test_golden_plans import SCENARIOS
from tests.support.memory import CLUSTER_ARN, NOON, InMemoryDocuments
from tests.support.plans import low_write, plan_of, second_write, update


def request_for(documents: InMemoryDocuments, snapshot: Snapshot) -> PlanQuotasRequest:
    pointer = documents.put("snapshots/x.json", snapshot_to_json(snapshot), "application/json")
    return PlanQuotasRequest(snapshot=pointer, apply_mode="apply", needs_approver=False)


def test_the_plan_is_stored_and_the_same_snapshot_gives_the_same_bytes() -> None:
    documents = InMemoryDocuments()
    request = request_for(documents, Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON))
    first, again = (PlanQuotas(documents)(request) for _ in range(2))
    assert first == again
    assert first.plan.key == f"plans/ml-cluster/{first.plan_id}/{first.plan.sha256[:16]}.json"
    assert plan_from_json(documents.get(first.plan)).plan_id == first.plan_id


def test_the_digest_of_the_snapshot_is_that_of_its_pointer_and_not_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = InMemoryDocuments()
    request = request_for(documents, Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON))
    monkeypatch.setattr(planner, "snapshot_sha256", pytest.fail)
    stored = documents.get(PlanQuotas(documents)(request).plan)
    assert plan_from_json(stored).snapshot_sha256 == request.snapshot.sha256


def test_a_cluster_with_nothing_to_govern_has_nothing_to_do() -> None:
    documents = InMemoryDocuments()
    result = PlanQuotas(documents)(request_for(documents, Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON)))
    assert (result.outcome, result.change_count) == ("nothing-to-do", 0)


def test_a_call_that_does_not_say_that_it_may_be_applied_gets_a_plan_only() -> None:
    pointer = request_for(InMemoryDocuments(), Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON)).snapshot
    parsed = PlanQuotasRequest.parse({"snapshot": pointer.to_json()})
    assert parsed.apply_mode == "plan"


def test_a_document_that_breaks_rules_blocks_and_the_summary_names_each_of_them() -> None:
    documents = InMemoryDocuments()
    violations = (
        Violation("apiVersion", "'taskgov/v9'", "taskgov/v1"),
        Violation("teams[0].name", "'A B'", "no blanks"),
    )
    snapshot = Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON, policy_violations=violations)
    result = PlanQuotas(documents)(request_for(documents, snapshot))
    assert (result.outcome, result.change_count) == ("blocked", 0)
    assert "apiVersion" in result.summary
    assert "teams[0].name" in result.summary


def test_a_summary_stays_short_however_many_changes_there_are() -> None:
    changes = [update(index, f"team-{index}", f"quota{index:07}", 2, 1) for index in range(1000)]
    lines = summary(plan_of(*changes)).splitlines()
    assert len(lines) == 1 + SUMMARY_CHANGES + 1
    assert lines[-1] == "- and 980 more changes"


def test_a_summary_has_one_line_for_a_quota_that_is_written_twice() -> None:
    second = replace(second_write(2, "team-a", "quota0000001", 2, 5), because="guaranteed 5")
    lines = summary(plan_of(low_write(0, "team-a", "quota0000001", 4, 2), second)).splitlines()
    assert lines[1:] == ["- team-a: guaranteed 5"]


def test_a_plan_without_progress_says_why() -> None:
    finding = Finding("no-progress", Severity.ERROR, "ml-cluster", "it was written before, and stands")
    plan = replace(plan_of(outcome=Outcome.NO_PROGRESS), findings=(finding,))
    assert "! ml-cluster: it was written before, and stands" in summary(plan)


@pytest.mark.parametrize(
    ("waves", "want"),
    [((0, 0, 0), (3,)), ((1, 1, 2), (2, 3)), ((1, 2, 3), (1, 2, 3)), ((), ())],
    ids=["stored before there were waves", "two waves", "each by itself", "nothing to write"],
)
def test_the_ends_of_the_waves_travel_with_the_plan(waves: tuple[int, ...], want: tuple[int, ...]) -> None:
    changes = [replace(update(index, f"team-{index}", "q", 2, 1), wave=wave) for index, wave in enumerate(waves)]
    assert wave_ends(changes) == want


def test_a_finding_of_a_plan_that_is_not_blocked_is_no_line_of_its_summary() -> None:
    finding = Finding("drift", Severity.WARNING, "team-a", "it differs")
    plan = replace(plan_of(outcome=Outcome.NOTHING_TO_DO), findings=(finding,))
    assert "it differs" not in summary(plan)


@pytest.mark.parametrize("mode", ["apply", "plan"])
def test_a_run_on_the_machine_of_a_release_before_waves_plans_and_leaves_the_writes_to_the_next_run(mode: str) -> None:
    documents = InMemoryDocuments()
    pointer = documents.put("snapshots/x.json", snapshot_to_json(SCENARIOS["approval"]), "application/json")
    payload = {"snapshot": pointer.to_json(), "applyMode": mode, "approvedChanges": None}
    result = PlanQuotas(documents)(PlanQuotasRequest.parse(payload))
    assert result.change_count > 0
    ends = mode == "apply"
    assert (result.outcome, LEFT in result.summary) == ("blocked" if ends else "planned", ends)
    assert result.recheck_at is not None or not ends
