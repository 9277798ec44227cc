"""What a plan does after a restore, and on a cluster that another stack governs."""

from dataclasses import replace

import pytest

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.doubts import still_restored, unreadable_findings
from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.recovered import recovered
from taskgov.findings import Severity
from taskgov.snapshot.identity import Claim, Loss, RestoredState, StateStamp
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota, QuotaEdit
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableObject
from tests.allocation.world import NOW, document, fixed, minutes, nodes, quota, row, snapshot

STAMP = StateStamp("own", 7, NOW)


def record(team: str, count: int, version: int = 1) -> AppliedQuota:
    made = quota(team, row(Count=count), version=version)
    return AppliedQuota(
        made.compute_quota_id,
        version,
        made.compute_quota_config,
        made.compute_quota_target,
        "plan-1",
        NOW - minutes(600),
    )


def world(has: int, promised: int, loss: Loss, *, taken_over: bool = False, version: str | None = None) -> Snapshot:
    policy = document(
        fixed("team-a", row(Count=promised)),
        fixed("team-b", row(Count=2)),
        guardrails={"maxDecreasePercent": 100},
        pool=False,
    )
    held = snapshot(policy, nodes(10), [quota("team-a", row(Count=has)), quota("team-b", row(Count=1))])
    restored = RestoredState(loss, NOW, "the table is at 3, the bucket has seen 7", policy_version=version)
    applied = replace(record("team-a", has), taken_over=taken_over)
    return replace(held, state=replace(STAMP, restored=restored), applied=(applied,), policy_version="v1")


def held_by(plan: Plan) -> list[str]:
    return [verdict.guardrail for verdict in plan.guardrails if not verdict.passed]


def test_a_quota_whose_record_was_lost_is_lowered_by_a_person_only() -> None:
    plan = plan_quotas(world(4, 3, Loss.TABLE_BEHIND, taken_over=True), mode="apply")
    assert (plan.outcome, held_by(plan)) == (Outcome.NEEDS_APPROVAL, ["state-restored"])
    approved = plan_quotas(
        world(4, 3, Loss.TABLE_BEHIND, taken_over=True), mode="apply", approved_changes=changes_sha256(plan)
    )
    assert approved.outcome is Outcome.APPLY


@pytest.mark.parametrize(
    ("has", "promised", "taken_over"),
    [
        pytest.param(4, 5, True, id="it is raised"),
        pytest.param(4, 3, False, id="its record was recovered"),
    ],
)
def test_a_table_that_was_restored_holds_up_nothing_else(has: int, promised: int, taken_over: bool) -> None:
    plan = plan_quotas(world(has, promised, Loss.TABLE_BEHIND, taken_over=taken_over), mode="apply")
    assert plan.outcome is Outcome.APPLY
    (finding,) = (each for each in plan.findings if each.code == "state-restored")
    assert finding.severity is Severity.INCIDENT
    assert "docs/runbooks/restored-state.md" in finding.remedy


@pytest.mark.parametrize("loss", [Loss.BUCKET_BEHIND, Loss.BUCKET_EMPTY, Loss.BOTH_BEHIND])
def test_a_document_that_may_be_old_changes_nothing_until_there_is_another(loss: Loss) -> None:
    assert plan_quotas(world(4, 5, loss, version="v1"), mode="apply").outcome is Outcome.NEEDS_APPROVAL
    assert plan_quotas(world(4, 5, loss, version="v0"), mode="apply").outcome is Outcome.APPLY


def test_a_loss_is_reported_for_a_day_and_as_long_as_something_is_in_doubt() -> None:
    known, unknown = (world(4, 4, Loss.TABLE_EMPTY, taken_over=each) for each in (False, True))
    assert known.state is not None
    restored = known.state.restored
    for seen, hours, shown in ((known, 23, True), (known, 24, False), (unknown, 24, True)):
        later = replace(seen, taken_at=NOW + minutes(60 * hours))
        assert (still_restored(restored, later) is not None) is shown
    assert still_restored(None, known) is None


def test_the_younger_stack_stands_down_whatever_it_would_write() -> None:
    claims = (Claim("elder", NOW - minutes(60)), Claim("own", NOW))
    held = replace(world(4, 5, Loss.TABLE_EMPTY), state=STAMP, claims=claims)
    plan = plan_quotas(held, mode="apply")
    (finding,) = (each for each in plan.findings if each.code == "other-stack")
    assert (plan.outcome, finding.severity) == (Outcome.BLOCKED, Severity.INCIDENT)
    assert "elder" in finding.because
    assert "own" in finding.because
    idle = plan_quotas(replace(held, quotas=(), policy=None), mode="apply")
    assert idle.outcome is Outcome.BLOCKED


def test_a_stack_that_only_plans_does_not_stand_down() -> None:
    held = replace(world(4, 5, Loss.TABLE_EMPTY), state=STAMP, claims=(Claim("elder", NOW),))
    plan = plan_quotas(held, mode="plan")
    assert plan.outcome is Outcome.PLANNED
    assert [each.severity for each in plan.findings if each.code == "other-stack"] == [Severity.INFO]


def test_the_older_stack_continues_and_says_that_there_is_another() -> None:
    held = replace(world(4, 5, Loss.TABLE_EMPTY), state=STAMP, claims=(Claim("own", NOW), Claim("young", NOW)))
    plan = plan_quotas(held, mode="apply")
    assert plan.outcome is Outcome.APPLY
    assert [each.severity for each in plan.findings if each.code == "other-stack-younger"] == [Severity.WARNING]


def seen(
    *quotas: tuple[str, int, int], applied: tuple[AppliedQuota, ...] = (), edits: tuple[QuotaEdit, ...] = ()
) -> Snapshot:
    held = [quota(team, row(Count=count), version=version) for team, count, version in quotas]
    return replace(snapshot(None, nodes(10), held), applied=applied, edits=edits)


def test_the_records_of_the_last_look_come_back_for_quotas_that_have_not_changed_since() -> None:
    copy = replace(record("team-a", 3, version=3), leased={"ml.g5.8xlarge": 1})
    now = seen(("team-a", 3, 3), applied=(record("team-a", 2),))
    found = recovered(now, seen(("team-a", 3, 3), applied=(copy,)), NOW)
    assert found.applied == (copy,)
    assert found.taken_over == ()


def test_an_edit_that_the_last_look_saw_stays_an_edit_whether_its_event_came_or_not() -> None:
    old = record("team-a", 2)
    found = recovered(seen(("team-a", 5, 2), applied=(old,)), seen(("team-a", 5, 2), applied=(old,)), NOW)
    assert (found.applied, found.taken_over) == ((old,), ())


def test_an_edit_on_record_explains_a_quota_without_a_last_look() -> None:
    old = record("team-a", 2)
    edit = QuotaEdit("id-team-a", "ana", NOW, "UpdateComputeQuota")
    found = recovered(seen(("team-a", 5, 2), applied=(old,), edits=(edit,)), None, NOW)
    assert (found.applied, found.edits, found.taken_over) == ((old,), (edit,), ())


def test_what_nothing_explains_is_taken_over_with_its_past() -> None:
    old = replace(record("team-a", 2), leased={"ml.g5.8xlarge": 1})
    found = recovered(seen(("team-a", 5, 9), ("team-b", 1, 4), applied=(old,)), None, NOW)
    a, b = found.applied
    assert found.taken_over == ("team-a-quota", "team-b-quota")
    assert [(each.version, each.taken_over, each.leased) for each in (a, b)] == [(9, True, None), (4, True, None)]
    assert a.history is not None
    assert [(past.config, past.leased) for past in a.history] == [(old.config, old.leased)]


def test_a_quota_whose_record_cannot_be_read_is_left_alone_and_the_others_continue() -> None:
    item = UnreadableItem("CLUSTER#arn", "QUOTA#id-team-a", "its schema is 9; this release reads schemas up to 1")
    plan = plan_quotas(
        replace(world(4, 3, Loss.TABLE_EMPTY), state=STAMP, applied=(), unreadable=(item,)), mode="apply"
    )
    assert (plan.outcome, [change.team for change in plan.changes]) == (Outcome.APPLY, ["team-b"])
    (finding,) = (each for each in plan.findings if each.code == "unreadable-item")
    assert (finding.severity, finding.subject) == (Severity.ERROR, "QUOTA#id-team-a")
    assert "its schema is 9" in finding.because


def test_ten_quotas_whose_records_were_lost_are_named_and_the_others_counted() -> None:
    restored = RestoredState(
        Loss.TABLE_EMPTY, NOW, "the table is empty", taken_over=tuple(f"q-{n:02}" for n in range(12))
    )
    held = replace(world(4, 4, Loss.TABLE_EMPTY), state=replace(STAMP, restored=restored))
    (finding,) = (each for each in plan_quotas(held, mode="apply").findings if each.code == "state-restored")
    assert "q-08, q-09 and 2 more; present values were taken over." in finding.because


@pytest.mark.parametrize(("count", "end"), [(1, "node-00: no name"), (10, "node-09: no name"), (12, "; and 2 more")])
def test_ten_objects_of_a_kind_that_cannot_be_read_are_named_and_the_others_counted(count: int, end: str) -> None:
    odd = [UnreadableObject("Node", f"node-{number:02}", "no name") for number in range(count)]
    (found,) = unreadable_findings([*odd])
    assert f"{end}. The machine counts as" in found.because
    assert found.because.count("no name") == min(count, 10)
    assert found.evidence == {"count": count}


def test_objects_that_cannot_be_read_are_reported_kind_by_kind() -> None:
    odd = [UnreadableObject("Workload", "job", "no spec", "team-a"), UnreadableObject("Node", "n", "no name")]
    assert [(each.subject, each.severity) for each in unreadable_findings(odd)] == [
        ("Node", Severity.WARNING),
        ("Workload", Severity.WARNING),
    ]
