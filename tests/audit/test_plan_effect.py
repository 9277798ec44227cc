"""Which findings the plan remedies: judged by judging again, never by a list."""

from dataclasses import replace

import pytest

from taskgov.allocation.loops import LoopSearch
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.predict import Player
from taskgov.allocation.projection import after as after_plan
from taskgov.audit import findings_work
from taskgov.audit.finding_report import report_findings
from taskgov.audit.findings import audit
from taskgov.audit.plan_effect import PlanEffect, plan_effects
from taskgov.audit.trend import Earlier
from taskgov.findings.of_audit import PREEMPTION_LOOP
from taskgov.policy.document import Guardrails, PolicyDocument
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.world import NOW, document, fixed, nodes, quota, row
from tests.allocation.world import snapshot as world_of
from tests.support.lab import G5, Lab
from tests.support.memory import CLUSTER_ARN
from tests.support.plans import creation, deletion, low_write, plan_of, second_write


def halves(*teams: str) -> PolicyDocument:
    shares = [{"name": team, "share": [{"instanceType": G5, "percent": 100 / len(teams)}]} for team in teams]
    return PolicyDocument.model_validate(
        {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN}, "teams": shares}
    )


def short_of_a_machine() -> Snapshot:
    """Return a cluster of four machines that promises six, with a job that no machine can run."""
    lab = Lab().team("team-a", 3).team("team-b", 3).machines(4)
    lab.policy = halves("team-a", "team-b")
    lab.submit("team-b", "huge", gpus=9)
    return lab.snapshot()


def found(snapshot: Snapshot) -> tuple[PlanEffect, ...]:
    plan = plan_quotas(snapshot, mode="plan")
    return plan_effects(snapshot, plan, audit(snapshot, plan))


def test_what_the_plan_fixes_is_remedied_by_its_changes() -> None:
    by_finding = {(each.code, each.subject): each.changes for each in found(short_of_a_machine())}
    assert by_finding["over-commitment", G5] == (1, 2)
    assert by_finding["quota-drift", "team-a"] == (1,)
    assert by_finding["quota-drift", "team-b"] == (2,)


def test_what_the_plan_does_not_touch_is_not_said_to_be_remedied() -> None:
    snapshot = short_of_a_machine()
    plan = plan_quotas(snapshot, mode="plan")
    assert "request-never-fits" in {each.code for each in audit(snapshot, plan)}
    assert "request-never-fits" not in {each.code for each in found(snapshot)}


def test_what_was_evicted_again_and_again_is_not_said_to_be_remedied() -> None:
    snapshot = short_of_a_machine()
    (huge,) = snapshot.kueue.workloads
    stats = {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 3}]}
    evicted = {**huge, "status": {**huge.get("status", {}), "schedulingStats": stats}}
    snapshot = replace(snapshot, kueue=replace(snapshot.kueue, workloads=(evicted,)))
    assert "eviction-loop" in {each.code for each in audit(snapshot, plan_quotas(snapshot, mode="plan"))}
    assert "eviction-loop" not in {each.code for each in found(snapshot)}


def test_what_the_plan_leaves_is_judged_without_playing_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Guardrails.model_validate({"maxDecreasePercent": 25, "onLimit": "partial"})
    lab = Lab().team("team-a", 8).team("team-b", 0).machines(8)
    lab.policy = halves("team-a", "team-b").model_copy(update={"guardrails": rules})
    lab.submit("team-b", "waits", gpus=4)
    snapshot = lab.snapshot()
    plan = plan_quotas(snapshot, mode="plan")
    assert plan_quotas(after_plan(snapshot, plan), mode="plan").changes
    findings = audit(snapshot, plan)

    def played(*_: object) -> Player:
        raise AssertionError("the scheduler was played")

    monkeypatch.setattr("taskgov.allocation.played.Player", played)
    plan_effects(snapshot, plan, findings)


def test_every_remedied_finding_is_gone_once_the_plan_is_written_and_nothing_is_left_to_change() -> None:
    snapshot = short_of_a_machine()
    after = after_plan(snapshot, plan_quotas(snapshot, mode="plan"))
    again = plan_quotas(after, mode="plan")
    assert again.changes == ()
    left = {(each.code, each.subject) for each in audit(after, again)}
    assert not left & {(each.code, each.subject) for each in found(snapshot)}


@pytest.mark.parametrize("with_loop", [False, True])
def test_loops_are_searched_again_only_where_there_is_one_today(
    with_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = short_of_a_machine()
    plan = plan_quotas(snapshot, mode="plan")
    loop = PREEMPTION_LOOP.about("ml-cluster", {}, workloads="a/b, a/c", preemptors="a/d", teams="a", advice="wait")
    findings = (*audit(snapshot, plan), *([loop] if with_loop else []))
    searched: list[Snapshot] = []

    def search(supposed: Snapshot) -> LoopSearch:
        searched.append(supposed)
        return LoopSearch()

    monkeypatch.setattr(findings_work, "search_loop", search)
    remedied = {effect.identity for effect in plan_effects(snapshot, plan, findings)}
    assert len(searched) == with_loop
    assert (loop.identity in remedied) == with_loop


@pytest.mark.parametrize("promised", [1, 2])
def test_a_plan_without_changes_remedies_nothing(promised: int) -> None:
    lab = Lab().team("team-a", promised).team("team-b", promised).machines(2 * promised)
    lab.policy = halves("team-a", "team-b")
    lab.submit("team-b", "huge", gpus=9)
    assert found(lab.snapshot()) == ()


def test_a_queue_that_cannot_be_made_means_that_nothing_is_claimed_and_why_is_said() -> None:
    snapshot = short_of_a_machine()
    plan = plan_quotas(snapshot, mode="plan")
    unknown = replace(plan.changes[0], name="quota-team-a", resource_id="no-such-quota")
    told = report_findings(snapshot, replace(plan, changes=(unknown,)), audit(snapshot, plan), Earlier())
    (why,) = [each for each in told.findings if each.code == "remedies-unknown"]
    assert (why.severity, why.subject) == ("info", "ml-cluster")
    assert "no-such-quota" in why.because
    assert {each.plan for each in told.findings} == {None}


@pytest.mark.parametrize(("rule", "mended"), [("putRight", True), ("keep", False)])
def test_an_edit_by_hand_is_remedied_where_the_document_says_to_put_it_right(rule: str, mended: bool) -> None:
    policy = document(fixed("team-a", row(Count=2)), pool=False, handEdits=rule)
    ours = quota("team-a", row(Count=2))
    record = AppliedQuota("id-team-a", 1, ours.compute_quota_config, ours.compute_quota_target, "plan-1", NOW)
    world = world_of(policy, nodes(2), [quota("team-a", row(Count=1), version=2)], applied=(record,))
    assert ("edited-by-hand" in {each.code for each in found(world)}) is mended


def test_a_quota_that_is_written_twice_is_supposed_to_be_as_the_second_write_says() -> None:
    before = world_of(None, nodes(4), [quota("team-a", row(Count=4))])
    low, last = low_write(0, "team-a", "id-team-a", 4, 1), second_write(1, "team-a", "id-team-a", 1, 3)
    after = after_plan(before, plan_of(low, last))
    [written], [record] = after.quotas, after.applied
    assert (written.compute_quota_config, written.compute_quota_version) == (last.after, 3)
    assert (record.config, record.version, record.began_from) == (last.after, 3, None)
    assert [each.config for each in record.history or ()] == [low.before]


def test_a_quota_that_is_deleted_and_created_again_is_supposed_to_be_new() -> None:
    failed = quota("team-a", row(Count=2), status="DeleteFailed")
    before = world_of(None, nodes(4), [failed])
    after = after_plan(before, plan_of(deletion(0, "team-a", "id-team-a", 2), creation(1, "team-a", 2)))
    [written], [record] = after.quotas, after.applied
    assert (
        (written.compute_quota_id, written.status) == (record.compute_quota_id, "Created") == ("new-team-a", "Created")
    )
    assert not {each.code for each in audit(after, plan_quotas(after, mode="plan"))} & {"quota-status-stuck"}


def test_a_quota_that_failed_is_remedied_by_both_its_writes() -> None:
    policy = document(fixed("team-a", row(Count=2)), pool=False)
    world = world_of(policy, nodes(2), [quota("team-a", row(Count=2), status="DeleteFailed")])
    by_finding = {(each.code, each.subject): each.changes for each in found(world)}
    assert by_finding["quota-status-stuck", "team-a"] == (1, 2)
