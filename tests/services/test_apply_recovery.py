"""Deleting what failed, creating it again, and taking either back: each once, and only when nothing is settling."""

from dataclasses import replace

import pytest

from taskgov.allocation.plan import Change, ChangeKind, Reason
from taskgov.errors import ConflictError
from taskgov.hyperpod.model import ResourceSharingConfig
from taskgov.services.plan_path import Direction
from tests.services.test_apply_change import World
from tests.support.memory import CLUSTER_ARN
from tests.support.plans import creation, deletion, instances, policy, policy_change, target, update


@pytest.fixture
def world() -> World:
    return World()


def failed(world: World, quota_id: str, status: str) -> None:
    stored = world.hyperpod.stored
    stored[quota_id] = stored[quota_id].model_copy(update={"status": status})


@pytest.mark.parametrize("status", ["CreateFailed", "CreateRollbackFailed", "UpdateRollbackFailed", "DeleteFailed"])
def test_a_quota_that_failed_is_deleted_and_a_retry_finds_it_gone(world: World, status: str) -> None:
    failed(world, world.a, status)
    world.run(deletion(0, "team-a", world.a, 2))
    world.run(deletion(0, "team-a", world.a, 2))
    assert world.hyperpod.writes == ["delete team-a"]
    assert world.state.applied_quotas(CLUSTER_ARN) == ()


def test_a_quota_that_works_by_now_is_not_deleted(world: World) -> None:
    with pytest.raises(ConflictError, match="status Created and version 1 by now; it is not deleted"):
        world.run(deletion(0, "team-a", world.a, 2))
    failed(world, world.a, "CreateFailed")
    with pytest.raises(ConflictError):
        world.run(deletion(0, "team-a", world.a, 2, version=7))
    assert world.hyperpod.writes == []


def test_a_quota_that_is_being_deleted_already_is_left_to_it(world: World) -> None:
    failed(world, world.a, "Deleting")
    world.run(deletion(0, "team-a", world.a, 2))
    assert world.hyperpod.writes == []


def test_restoring_does_not_make_again_what_never_was_in_force(world: World) -> None:
    failed(world, world.a, "CreateFailed")
    change = replace(deletion(0, "team-a", world.a, 2), before=None)
    world.run(change)
    result = world.run(change, direction=Direction.RESTORE)
    assert (result.written, world.hyperpod.writes) == (False, ["delete team-a"])


def test_restoring_makes_again_once_what_was_deleted_and_held_something(world: World) -> None:
    failed(world, world.a, "UpdateRollbackFailed")
    change = deletion(0, "team-a", world.a, 2)
    world.run(change)
    first = world.run(change, direction=Direction.RESTORE)
    again = world.run(change, direction=Direction.RESTORE)
    assert first.written
    assert first.resource_id == again.resource_id != world.a
    assert world.hyperpod.writes == ["delete team-a", "create team-a"]
    assert world.count_of(first.resource_id) == 2
    assert world.state.cluster_of(first.resource_id) == CLUSTER_ARN
    (applied,) = world.state.applied_quotas(CLUSTER_ARN)
    assert (applied.compute_quota_id, applied.version, applied.config) == (first.resource_id, 1, instances(2))


def test_what_is_made_again_keeps_what_borrowing_returns_to(world: World) -> None:
    stop = ResourceSharingConfig(borrow_limit=0)
    stopped = instances(2).model_copy(update={"resource_sharing_config": stop})
    within = ResourceSharingConfig(borrow_limit=200)
    world.run(replace(update(0, "team-a", world.a, 2, 2), after=stopped, sharing_within_budget=within))
    failed(world, world.a, "UpdateRollbackFailed")
    change = replace(deletion(0, "team-a", world.a, 2, version=2), before=stopped)
    world.run(change)
    made = world.run(change, direction=Direction.RESTORE)
    record = world.state.applied_quota(CLUSTER_ARN, made.resource_id)
    assert record is not None
    assert record.sharing_within_budget == within


def test_restoring_waits_for_what_is_still_being_deleted(world: World) -> None:
    failed(world, world.a, "DeleteFailed")
    change = deletion(0, "team-a", world.a, 2)
    world.hyperpod.settles = False
    world.run(change)
    assert world.run(change, direction=Direction.RESTORE).in_flight
    world.hyperpod.settle()
    assert world.run(change, direction=Direction.RESTORE).written


def test_restoring_a_deletion_that_was_not_made_leaves_the_quota(world: World) -> None:
    failed(world, world.a, "DeleteFailed")
    result = world.run(deletion(0, "team-a", world.a, 2), direction=Direction.RESTORE)
    assert (result.written, result.in_flight, world.hyperpod.writes) == (False, False, [])


def test_restoring_leaves_a_quota_of_the_name_that_somebody_else_made_since(world: World) -> None:
    failed(world, world.a, "UpdateRollbackFailed")
    change = deletion(0, "team-a", world.a, 2)
    world.run(change)
    world.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(7), target("team-a"))
    with pytest.raises(ConflictError, match="somebody else created a quota team-a"):
        world.run(change, direction=Direction.RESTORE)


@pytest.mark.parametrize("direction", list(Direction))
def test_what_is_still_settling_takes_no_write(world: World, direction: Direction) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    world.hyperpod.settles = False
    world.run(change)
    if direction is Direction.APPLY:
        with pytest.raises(ConflictError, match="in status Updating"):
            world.run(update(0, "team-a", world.a, 1, 3, version=2))
    else:
        result = world.run(change, direction=direction)
        assert (result.in_flight, result.written) == (True, False)
    assert world.hyperpod.writes == ["update team-a"]


def test_a_creation_that_is_still_settling_is_taken_back_later(world: World) -> None:
    world.hyperpod.settles = False
    world.run(creation(0, "team-c", 1))
    assert world.run(creation(0, "team-c", 1), direction=Direction.RESTORE).in_flight
    world.hyperpod.settle()
    assert world.run(creation(0, "team-c", 1), direction=Direction.RESTORE).written
    assert not world.run(creation(0, "team-c", 1), direction=Direction.RESTORE).written  # a retry
    assert world.hyperpod.writes == ["create team-c", "delete team-c"]


def test_a_cluster_policy_that_failed_is_deleted_once(world: World) -> None:
    before = policy(training=70)
    world.hyperpod.create_scheduler_config(CLUSTER_ARN, "cluster-policy", before)
    assert world.hyperpod.config is not None
    world.hyperpod.config = world.hyperpod.config.model_copy(update={"status": "CreateFailed"})
    change = replace(
        policy_change(0, before, policy(), version=1), kind=ChangeKind.DELETE_SCHEDULER_CONFIG, name="cluster-policy"
    )
    world.hyperpod.writes.clear()
    world.run(change)
    world.run(change)
    assert world.hyperpod.config is None
    assert len(world.hyperpod.writes) <= 1


def policy_deletion() -> Change:
    change = policy_change(0, policy(training=70), policy(), version=1)
    return replace(change, kind=ChangeKind.DELETE_SCHEDULER_CONFIG, name="cluster-policy", reason=Reason.RECOVERY)


def fail_policy(world: World) -> None:
    world.hyperpod.create_scheduler_config(CLUSTER_ARN, "cluster-policy", policy(training=70))
    assert world.hyperpod.config is not None
    world.hyperpod.config = world.hyperpod.config.model_copy(update={"status": "UpdateRollbackFailed"})
    world.hyperpod.writes.clear()


def test_a_cluster_policy_that_was_deleted_is_made_again_once_with_what_it_held(world: World) -> None:
    fail_policy(world)
    world.run(policy_deletion())
    assert world.run(policy_deletion(), direction=Direction.RESTORE).written
    assert not world.run(policy_deletion(), direction=Direction.RESTORE).written
    assert world.hyperpod.writes == ["delete cluster-policy", "create cluster-policy"]
    assert world.hyperpod.config is not None
    assert world.hyperpod.config.scheduler_config == policy(training=70)


def test_a_cluster_policy_is_created_again_only_when_the_deleted_one_is_gone(world: World) -> None:
    fail_policy(world)
    world.hyperpod.settles = False
    deleted, created = policy_deletion(), replace(policy_change(1, None, policy(training=70)), wave=2)
    world.run(deleted, created)
    with pytest.raises(ConflictError):
        world.run(deleted, created, index=1)  # what is being deleted holds the same, and is not what was created
    world.hyperpod.settle()
    assert world.run(deleted, created, index=1).resource_id == "schedconf002"


def test_a_failed_quota_is_created_again_under_another_id_after_it_was_deleted(world: World) -> None:
    failed(world, world.a, "CreateFailed")
    changes = deletion(0, "team-a", world.a, 2), replace(creation(1, "team-a", 2), wave=2)
    world.hyperpod.settles = False
    world.run(*changes)
    with pytest.raises(ConflictError):
        world.run(*changes, index=1)
    world.hyperpod.settle()
    first, again = world.run(*changes, index=1), world.run(*changes, index=1)
    assert first.resource_id == again.resource_id != world.a
    world.hyperpod.settle()
    assert world.run(*changes, index=1, direction=Direction.RESTORE).written
    world.hyperpod.settle()
    back = world.run(*changes, direction=Direction.RESTORE)
    assert (back.written, world.count_of(back.resource_id)) == (True, 2)
