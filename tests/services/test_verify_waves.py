"""Verifying wave by wave: per quota, by the last write made, at the version that its call returned."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.plan import Change, ChangeKind, Reason
from taskgov.contracts.steps import VerifyPlanRequest, VerifyPlanResult
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.ports import OnUnreadableObject
from taskgov.services.plan_path import Direction
from taskgov.services.verify_plan import VerifyPlan
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota
from tests.support.memory import CLUSTER_ARN, FixedClock, InMemoryDocuments, InMemoryHyperPod, InMemoryState
from tests.support.plans import (
    creation,
    deletion,
    instances,
    low_write,
    plan_of,
    policy,
    policy_change,
    second_write,
    target,
    update,
)

A, B = "quota0000001", "quota0000002"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PATH = (
    low_write(0, "team-a", A, 2, 1),
    replace(update(1, "team-b", B, 1, 2), wave=2),
    second_write(2, "team-a", A, 1, 3, wave=3),
)


class World:
    """Two quotas, of 2 and 1 instances, and what is on record of writes to them."""

    def __init__(self) -> None:
        self.hyperpod, self.state, self.documents = InMemoryHyperPod(), InMemoryState(), InMemoryDocuments()
        self.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(2), target("team-a"))
        self.hyperpod.create_quota(CLUSTER_ARN, "team-b", instances(1), target("team-b"))

    def write(self, quota_id: str, count: int) -> None:
        quota = self.hyperpod.quota(quota_id)
        self.hyperpod.update_quota(quota_id, quota.compute_quota_version, instances(count), quota.compute_quota_target)

    def verify(self, *changes: Change, following: int | None, back: bool = False) -> VerifyPlanResult:
        pointer = self.documents.put("plans/x.json", plan_to_json(plan_of(*changes)), "application/json")
        request = VerifyPlanRequest(
            cluster_arn=CLUSTER_ARN,
            plan=pointer,
            next=following,
        )
        return VerifyPlan(self.hyperpod, self.documents, self.state, FixedClock())(
            request, Direction.RESTORE if back else Direction.APPLY
        )

    def set_status(self, quota_id: str, status: str) -> None:
        stored = self.hyperpod.stored
        stored[quota_id] = stored[quota_id].model_copy(update={"status": status})

    def record(self, quota_id: str, version: int, count: int, team: str = "team-a") -> None:
        applied = AppliedQuota(quota_id, version, instances(count), target(team), "plan-1", NOON)
        self.state.record_applied(CLUSTER_ARN, applied)


def fits(result: VerifyPlanResult) -> bool:
    """Say whether all has settled as it was written."""
    return result == VerifyPlanResult(settled=True)


@pytest.fixture
def world() -> World:
    return World()


def test_only_the_wave_that_was_gone_over_is_judged(world: World) -> None:
    world.write(A, 1)
    assert fits(world.verify(*PATH, following=1))
    assert world.verify(*PATH, following=2).problems == ("team-b holds 1 x ml.g5.8xlarge, and not what was written",)
    world.write(B, 2)
    assert fits(world.verify(*PATH, following=2))
    world.write(A, 9)  # somebody's, since: its second write will meet it
    assert fits(world.verify(*PATH, following=2))
    assert not fits(world.verify(*PATH, following=3))


def test_the_whole_plan_is_judged_by_the_last_write_of_each_quota(world: World) -> None:
    world.write(A, 1)
    world.write(B, 2)
    assert not fits(world.verify(*PATH, following=None))
    world.write(A, 3)
    assert fits(world.verify(*PATH, following=None))


def test_going_back_a_wave_is_judged_by_what_stood_before_it(world: World) -> None:
    world.write(A, 1)
    world.write(B, 2)
    assert fits(world.verify(*PATH, following=1, back=True))
    assert not fits(world.verify(*PATH, following=0, back=True))
    world.write(B, 1)
    assert fits(world.verify(*PATH, following=0, back=True))
    assert not fits(world.verify(*PATH, following=-1, back=True))
    world.write(A, 2)
    assert fits(world.verify(*PATH, following=-1, back=True))
    assert fits(world.verify(*PATH, following=None, back=True))


class ListsLate(InMemoryHyperPod):
    """A service whose list shows what was there before; Describe is up to date."""

    shown: tuple[ComputeQuota, ...] = ()

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        return self.shown or super().quotas(cluster_arn, on_unreadable)


@pytest.fixture
def late(world: World) -> ListsLate:
    late = ListsLate(stored=world.hyperpod.stored, made=2)
    world.hyperpod = late
    return late


@pytest.mark.parametrize("back", [False, True])
def test_where_a_list_shows_an_older_version_describing_decides(world: World, late: ListsLate, back: bool) -> None:
    late.shown = late.quotas(CLUSTER_ARN)
    change = update(0, "team-a", A, 3, 9) if back else update(0, "team-a", A, 2, 3)
    world.write(A, 3)
    world.record(A, 2, 3)
    assert fits(world.verify(change, following=-1 if back else 1, back=back))
    world.set_status(A, "Updating")
    assert not world.verify(change, following=-1 if back else 1, back=back).settled


def test_a_version_that_is_not_to_be_seen_yet_is_pending_and_not_wrong(world: World) -> None:
    world.record(A, 2, 3)
    pending = ("team-a shows version 1, and version 2 was written",)
    assert world.verify(update(0, "team-a", A, 2, 3), following=1) == VerifyPlanResult(settled=False, pending=pending)


def test_the_older_version_of_an_equal_config_is_pending_too(world: World) -> None:
    """The retry of a failed update writes what stands: only the version says that it has settled."""
    change = replace(update(0, "team-a", A, 2, 2), wave=1, reason=Reason.RECOVERY)
    world.record(A, 2, 2)
    assert not world.verify(change, following=1).settled
    world.write(A, 2)
    assert fits(world.verify(change, following=1))


def test_a_creation_that_the_list_does_not_show_yet_is_described(world: World, late: ListsLate) -> None:
    late.shown = late.quotas(CLUSTER_ARN)
    created = late.create_quota(CLUSTER_ARN, "team-c", instances(1), target("team-c"))
    change = creation(0, "team-c", 1)
    assert world.verify(change, following=1).problems == ("team-c does not exist",)
    world.record(created.resource_id, 1, 1, "team-c")
    assert fits(world.verify(change, following=1))


def test_a_look_asks_for_a_hundred_quotas_and_waits_for_the_others(world: World, late: ListsLate) -> None:
    late.shown = late.quotas(CLUSTER_ARN)
    teams = [f"team-{number}" for number in range(110)]
    for team in teams:
        created = late.create_quota(CLUSTER_ARN, team, instances(1), target(team))
        world.record(created.resource_id, 1, 1, team)
    changes = [creation(index, team, 1) for index, team in enumerate(teams)]
    result = world.verify(*changes, following=110)
    assert (len(result.pending), result.edited, result.problems) == (10, (), ())


def test_a_deletion_that_the_list_does_not_show_yet_is_made(world: World, late: ListsLate) -> None:
    world.set_status(A, "CreateFailed")
    late.shown = late.quotas(CLUSTER_ARN)
    change = deletion(0, "team-a", A, 2)
    assert not fits(world.verify(change, following=1))
    late.delete_quota(A)
    assert fits(world.verify(change, following=1))


@pytest.mark.parametrize("status", ["Updated", "Updating", "UpdateFailed"])
def test_what_somebody_wrote_since_is_an_edit_whatever_becomes_of_it(world: World, status: str) -> None:
    world.write(A, 1)
    world.record(A, 2, 1)
    world.write(A, 9)
    world.set_status(A, status)
    edited = ("team-a was changed by somebody since: version 3",)
    assert world.verify(*PATH, following=1) == VerifyPlanResult(settled=True, edited=edited)


def test_what_the_service_keeps_instead_of_what_was_written_is_a_problem(world: World) -> None:
    world.write(A, 4)
    world.record(A, 2, 1)
    problems = ("team-a holds 4 x ml.g5.8xlarge, and not what was written",)
    assert world.verify(*PATH, following=1) == VerifyPlanResult(settled=True, problems=problems)


class TestDeletedAndCreatedAgain:
    """A quota that failed is deleted in one wave and created again, under another id, in a later one."""

    CHANGES = (
        replace(deletion(0, "team-a", A, 2), wave=1),
        replace(creation(1, "team-a", 3), wave=2),
    )

    @pytest.fixture
    def failed(self, world: World) -> World:
        world.set_status(A, "UpdateRollbackFailed")
        world.hyperpod.settles = False
        return world

    def test_each_step_is_judged_by_itself(self, failed: World) -> None:
        assert not fits(failed.verify(*self.CHANGES, following=1))
        failed.hyperpod.delete_quota(A)
        assert len(failed.verify(*self.CHANGES, following=1).pending) == 1
        failed.hyperpod.settle()
        assert fits(failed.verify(*self.CHANGES, following=1))
        assert failed.verify(*self.CHANGES, following=2).problems == ("team-a does not exist",)
        failed.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(3), target("team-a"))
        assert len(failed.verify(*self.CHANGES, following=2).pending) == 1
        failed.hyperpod.settle()
        assert fits(failed.verify(*self.CHANGES, following=2))
        assert fits(failed.verify(*self.CHANGES, following=1)), "what was created again is not what was deleted"

    def test_the_way_back_makes_it_again(self, failed: World) -> None:
        failed.hyperpod.delete_quota(A)
        failed.hyperpod.settle()
        created = failed.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(3), target("team-a"))
        failed.hyperpod.settle()
        assert not fits(failed.verify(*self.CHANGES, following=0, back=True))
        failed.hyperpod.delete_quota(created.resource_id)
        failed.hyperpod.settle()
        assert fits(failed.verify(*self.CHANGES, following=0, back=True))
        assert failed.verify(*self.CHANGES, following=-1, back=True).problems == ("team-a does not exist",)
        failed.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(2), target("team-a"))
        failed.hyperpod.settle()
        assert fits(failed.verify(*self.CHANGES, following=-1, back=True))

    def test_what_never_was_in_force_stays_away(self, failed: World) -> None:
        changes = (replace(self.CHANGES[0], before=None), self.CHANGES[1])
        failed.hyperpod.delete_quota(A)
        failed.hyperpod.settle()
        assert fits(failed.verify(*changes, following=-1, back=True))
        failed.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(3), target("team-a"))
        failed.hyperpod.settle()
        assert not fits(failed.verify(*changes, following=None, back=True))


def test_the_cluster_policy_is_deleted_and_created_again(world: World) -> None:
    world.hyperpod.create_scheduler_config(CLUSTER_ARN, "cluster-policy", policy(training=70))
    changes = (
        replace(
            policy_change(0, policy(training=70), policy(), version=1),
            kind=ChangeKind.DELETE_SCHEDULER_CONFIG,
            reason=Reason.RECOVERY,
            wave=1,
        ),
        replace(policy_change(1, None, policy(training=70)), wave=2),
    )
    assert not fits(world.verify(*changes, following=1))
    world.hyperpod.delete_scheduler_config("schedconf001")
    assert fits(world.verify(*changes, following=1))
    assert not fits(world.verify(*changes, following=2))
    world.hyperpod.create_scheduler_config(CLUSTER_ARN, "cluster-policy", policy(training=70))
    assert fits(world.verify(*changes, following=2))
    assert fits(world.verify(*changes, following=1))


def test_a_weight_that_was_not_taken_over_is_a_problem(world: World) -> None:
    heavier = replace(
        update(0, "team-a", A, 2, 3), target_after=target("team-a").model_copy(update={"fair_share_weight": 50})
    )
    world.write(A, 3)
    assert world.verify(heavier, following=1).problems == ("team-a holds 3 x ml.g5.8xlarge, and not what was written",)


def test_a_quota_that_somebody_deleted_is_not_waited_for(world: World) -> None:
    world.write(A, 3)
    world.record(A, 2, 3)
    world.hyperpod.stored.pop(A)
    assert world.verify(update(0, "team-a", A, 2, 3), following=1).edited == ("team-a was deleted by somebody since",)


def test_a_cluster_policy_that_this_plan_created_and_the_list_does_not_show_yet_is_waited_for(world: World) -> None:
    change = policy_change(0, None, policy(training=70))
    assert world.verify(change, following=1).problems == (f"{change.name} does not exist",)
    assert isinstance(change.after, SchedulerConfig)
    world.state.record_policy(CLUSTER_ARN, AppliedPolicy("policy000001", 1, change.after, "plan-1", NOON))
    assert len(world.verify(change, following=1).pending) == 1
