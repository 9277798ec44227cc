"""Edits by hand: kept, adopted or put right."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import Plan, Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.findings import Finding
from taskgov.hyperpod.model import ComputeQuotaTarget
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AnnouncedWrite, AppliedQuota, QuotaEdit
from tests.allocation.world import NOW, applied, broken, counts, document, fixed, nodes, quota, row, snapshot

EDIT = QuotaEdit("id-team-a", by="alice", at=NOW - timedelta(minutes=5), event_name="UpdateComputeQuota")


def plan_of(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def governed(rule: str, promised: int = 2, instances: int = 8) -> Snapshot:
    """A world in which the promise was written by us."""
    policy = document(fixed("team-a", row(Count=promised)), handEdits=rule)
    world = snapshot(policy, nodes(instances))
    return run(world)


def run(world: Snapshot) -> Snapshot:
    """Plan, write, and remember what was written."""
    plan = plan_of(world)
    after = applied(world, plan)
    ids = {each.name: each.compute_quota_id for each in after.quotas}
    versions = {each.name: each.compute_quota_version for each in after.quotas}
    kept: dict[str, AppliedQuota] = {each.compute_quota_id: each for each in world.applied}
    for change in plan.changes:
        quota_id = ids[change.name]
        kept[quota_id] = remember(
            change, kept.get(quota_id), quota_id=quota_id, version=versions[change.name], plan_id="p", now=NOW
        )
    return replace(after, applied=tuple(kept[key] for key in sorted(kept)))


def edited(world: Snapshot, **amounts: Any) -> Snapshot:
    """Alice writes another number."""
    others = [each for each in world.quotas if each.compute_quota_target.team_name != "team-a"]
    return replace(world, quotas=(*others, quota("team-a", row(**amounts), version=2, status="Updated")), edits=(EDIT,))


def told(plan: Plan) -> list[Finding]:
    return [finding for finding in plan.findings if finding.code == "edited-by-hand"]


def test_kept_an_edit_stays_is_counted_as_taken_and_said_with_who_did_it() -> None:
    plan = plan_of(edited(governed("keep"), Count=5))
    assert counts(plan) == {"team-a": 5, "shared-pool": 3}
    [finding] = told(plan)
    assert finding.because == (
        "alice (UpdateComputeQuota, 2026-11-20 11:55 UTC) changed the quota team-a-quota by hand "
        "(version 1 -> 2): it is left as it is."
    )


def by_tool(world: Snapshot, rule: str) -> Snapshot:
    """The same edit, made by Terraform, in a document with this rule."""
    policy = document(fixed("team-a", row(Count=2)), handEdits="putRight", coOwned=rule)
    return replace(world, policy=policy, edits=(replace(EDIT, tool="Terraform"),))


def co_owned(plan: Plan) -> list[Finding]:
    return [finding for finding in plan.findings if finding.code == "co-owned-quota"]


def test_a_quota_that_terraform_changed_last_is_left_to_it_and_its_co_owner_is_named() -> None:
    plan = plan_of(by_tool(edited(governed("putRight"), Count=5), "keep"))
    assert (counts(plan), told(plan)) == ({"team-a": 5, "shared-pool": 3}, [])
    [finding] = co_owned(plan)
    assert finding.because == (
        "The quota team-a-quota was last changed by Terraform, as alice (UpdateComputeQuota, 2026-11-20 11:55 UTC), "
        "which would undo what is written here: it is left as it is."
    )
    assert finding.evidence["coOwner"] == "Terraform"


def test_a_co_owned_quota_that_failed_is_not_deleted() -> None:
    world = by_tool(edited(governed("putRight"), Count=5), "keep")
    failed = [each.model_copy(update={"status": "UpdateRollbackFailed"}) for each in world.quotas]
    plan = plan_of(replace(world, quotas=tuple(failed)))
    assert "team-a" not in {change.team for change in plan.changes}


def test_a_co_owned_quota_is_governed_where_the_document_says_so_and_the_co_owner_is_notified() -> None:
    plan = plan_of(by_tool(edited(governed("putRight"), Count=5), "govern"))
    assert counts(plan) == {"team-a": 2, "shared-pool": 6}
    assert [finding.severity for finding in co_owned(plan)] == ["info"]


def test_a_quota_that_a_person_changed_after_terraform_is_nobodys_but_ours() -> None:
    world = edited(governed("putRight"), Count=5)
    assert co_owned(plan_of(replace(by_tool(world, "keep"), edits=(EDIT,)))) == []


def test_a_kept_edit_stays_whatever_the_document_says_later() -> None:
    world = edited(governed("keep"), Count=5)
    later = replace(world, policy=document(fixed("team-a", row(Count=1)), handEdits="keep"))
    assert counts(plan_of(later))["team-a"] == 5


def test_put_right_an_edit_is_written_back() -> None:
    plan = plan_of(edited(governed("putRight"), Count=5))
    assert counts(plan)["team-a"] == 2
    [change] = plan.changes
    assert (change.reason, change.target_version) == (Reason.HAND_EDIT_PUT_RIGHT, 2)
    assert "it is corrected" in told(plan)[0].because


def test_adopted_an_edit_is_the_new_promise() -> None:
    plan = plan_of(edited(governed("adopt"), Count=5))
    assert counts(plan) == {"team-a": 5, "shared-pool": 3}
    assert [change.team for change in plan.changes] == ["shared-pool"]


def test_an_adopted_edit_is_cut_in_a_shortage_and_comes_back_after_it() -> None:
    world = edited(governed("adopt"), Count=5)
    short = run(replace(world, nodes=(*nodes(4), *broken(4))))
    assert counts(plan_of(short), after=False) == {"team-a": 4, "shared-pool": 0}
    well = replace(short, nodes=nodes(8))
    plan = plan_of(well)
    assert counts(plan) == {"team-a": 5, "shared-pool": 3}
    assert plan_of(run(well)).changes == ()


def lent(count: int) -> tuple[Snapshot, Snapshot]:
    """A team that has `count` machines by a lease (below zero: lends them) and is edited; and after the lease."""
    to, giver = ("team-a", "team-b") if count > 0 else ("team-b", "team-a")
    lease = {
        "to": to,
        "from": giver,
        "instanceType": row()["InstanceType"],
        "count": abs(count),
        "start": NOW - timedelta(hours=1),
        "end": NOW + timedelta(hours=1),
        "reason": "a deadline",
    }
    teams = fixed("team-a", row(Count=2)), fixed("team-b", row(Count=4))
    world = run(snapshot(document(*teams, handEdits="adopt", leases=[lease]), nodes(8)))
    during = edited(world, Count=2 + count)
    heavier = [
        each.model_copy(update={"compute_quota_target": ComputeQuotaTarget(team_name="team-a", fair_share_weight=7)})
        if each.compute_quota_target.team_name == "team-a"
        else each
        for each in during.quotas
    ]
    during = replace(during, quotas=tuple(heavier))
    return during, replace(run(during), taken_at=NOW + timedelta(hours=2))


@pytest.mark.parametrize("count", [1, -1])
def test_adopted_an_edit_does_not_promise_what_a_lease_moved(count: int) -> None:
    """Somebody changes only the weight: the lease is still given once, and goes back when it ends."""
    during, after = lent(count)
    assert counts(plan_of(during)) == {"team-a": 2 + count, "team-b": 4 - count, "shared-pool": 2}
    assert counts(plan_of(after)) == {"team-a": 2, "team-b": 4, "shared-pool": 2}
    assert plan_of(run(after)).changes == ()


def test_a_document_that_changes_its_mind_about_the_team_ends_an_adoption() -> None:
    world = edited(governed("adopt"), Count=5)
    later = replace(world, policy=document(fixed("team-a", row(Count=1)), handEdits="adopt"))
    assert counts(plan_of(later))["team-a"] == 1


def test_a_document_that_changes_elsewhere_leaves_an_adoption() -> None:
    world = edited(governed("adopt"), Count=5)
    later = replace(world, policy=document(fixed("team-a", row(Count=2)), fixed("b"), handEdits="adopt"))
    assert counts(plan_of(later))["team-a"] == 5


def test_somebody_nobody_saw_is_somebody() -> None:
    world = replace(edited(governed("keep"), Count=5), edits=())
    assert told(plan_of(world))[0].because.startswith("somebody changed the quota")


def test_an_edit_that_writes_the_same_is_no_edit() -> None:
    assert told(plan_of(edited(governed("keep"), Count=2))) == []


def test_what_was_never_written_by_us_is_no_edit() -> None:
    world = snapshot(
        document(fixed("team-a", row(Count=2)), handEdits="keep"), nodes(8), [quota("team-a", row(Count=5))]
    )
    plan = plan_of(replace(world, edits=(EDIT,)))
    assert told(plan) == []
    assert counts(plan)["team-a"] == 2


def test_a_changed_weight_is_an_edit_too() -> None:
    world = governed("putRight")
    others = [each for each in world.quotas if each.compute_quota_target.team_name != "team-a"]
    world = replace(world, quotas=(*others, quota("team-a", row(Count=2), version=2, weight=90)))
    assert len(told(plan_of(world))) == 1


def test_a_second_quota_of_a_team_is_left_alone() -> None:
    quotas = [quota("team-a", row(Count=1)), quota("team-a", row(Count=3), name="zzz")]
    plan = plan_of(snapshot(document(fixed("team-a", row(Count=2))), nodes(8), quotas))
    assert {finding.code for finding in plan.findings} == {"second-quota"}
    assert [(change.team, change.gpus_after) for change in plan.changes] == [("shared-pool", 3), ("team-a", 2)]


def test_the_reason_distinguishes_a_changed_document_from_changed_capacity() -> None:
    world = governed("keep", promised=6)
    short = plan_of(replace(world, nodes=nodes(4)))
    assert {change.team: change.reason for change in short.changes}["team-a"] is Reason.SHORTAGE
    back = run(replace(world, nodes=nodes(4)))
    again = plan_of(replace(back, nodes=nodes(8)))
    assert {change.team: change.reason for change in again.changes}["team-a"] is Reason.CAPACITY_GREW
    other = plan_of(replace(world, policy=document(fixed("team-a", row(Count=3)))))
    assert {change.team: change.reason for change in other.changes}["team-a"] is Reason.POLICY_CHANGED


def test_a_write_of_its_own_whose_record_was_lost_is_no_edit_by_hand() -> None:
    world = edited(governed("keep"), Count=5)
    (lost,) = [each for each in world.quotas if each.compute_quota_target.team_name == "team-a"]
    announced = AnnouncedWrite(2, lost.compute_quota_config, lost.compute_quota_target)
    known = tuple(
        replace(each, announced=announced) if each.compute_quota_id == lost.compute_quota_id else each
        for each in world.applied
    )
    plan = plan_of(replace(world, applied=known))
    assert told(plan) == []
    assert counts(plan)["team-a"] == 2


def test_an_announcement_does_not_cover_what_a_person_wrote_at_another_version() -> None:
    world = edited(governed("keep"), Count=5)
    (theirs,) = [each for each in world.quotas if each.compute_quota_target.team_name == "team-a"]
    announced = AnnouncedWrite(3, theirs.compute_quota_config, theirs.compute_quota_target)
    known = tuple(replace(each, announced=announced) for each in world.applied)
    assert len(told(plan_of(replace(world, applied=known)))) == 1
