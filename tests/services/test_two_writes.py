"""A quota that is written twice by one plan: at which version, once, and what is kept of it."""

import json
from dataclasses import replace

import pytest

from taskgov.adapters.dynamodb import APPLIED
from taskgov.allocation.plan import Change
from taskgov.allocation.promises import hand_edit
from taskgov.errors import ConflictError, ThrottledError
from taskgov.ports import Written
from taskgov.services.plan_path import Direction, path_of
from taskgov.services.write_records import WriteRecords
from taskgov.snapshot.records import AppliedQuota, began_from
from tests.services.test_apply_change import ForgetfulState, World
from tests.support.memory import CLUSTER_ARN
from tests.support.plans import instances, low_write, plan_of, second_write, target, update


@pytest.fixture
def world() -> World:
    return World()


def both(world: World) -> tuple[Change, Change]:
    """Return team A's way from 2 over 1 to 3 instances."""
    low, second = low_write(0, "team-a", world.a, 2, 1), second_write(1, "team-a", world.a, 1, 3)
    return replace(low, leased={"ml.g5.8xlarge": -1}), replace(second, leased={"ml.g5.8xlarge": 1})


def record(world: World) -> AppliedQuota:
    (applied,) = world.state.applied_quotas(CLUSTER_ARN)
    return applied


def standing(world: World) -> tuple[int | None, int]:
    quota = world.hyperpod.quota(world.a)
    return world.count_of(world.a), quota.compute_quota_version


def test_the_second_write_is_made_at_the_version_that_the_first_returned(world: World) -> None:
    world.run(*both(world))
    result = world.run(*both(world), index=1)
    assert (result.version_before, result.version_after) == (2, 3)
    assert standing(world) == (3, 3)


def test_the_second_write_is_made_once_however_often_it_is_called_for(world: World) -> None:
    world.run(*both(world))
    results = [world.run(*both(world), index=1) for _ in range(3)]
    assert {result.version_after for result in results} == {3}
    assert world.hyperpod.writes == ["update team-a"] * 2


def test_a_second_write_whose_record_was_lost_is_known_by_the_one_that_tries_again(world: World) -> None:
    world.run(*both(world))
    forgetful = ForgetfulState(lock=world.state.lock, applied=world.state.applied, owners=world.state.owners)
    kept = world.use_case
    world.use_case = replace(kept, state=forgetful)
    with pytest.raises(ThrottledError):
        world.run(*both(world), index=1)
    assert not hand_edit(world.hyperpod.quota(world.a), record(world))
    world.use_case = kept
    assert world.run(*both(world), index=1).version_after == 3
    assert world.hyperpod.writes == ["update team-a"] * 2
    assert (record(world).version, record(world).config) == (3, instances(3))


def test_a_first_write_that_comes_again_after_the_second_is_a_conflict(world: World) -> None:
    world.run(*both(world))
    world.run(*both(world), index=1)
    with pytest.raises(ConflictError):
        world.run(*both(world))
    assert standing(world) == (3, 3)
    assert (record(world).version, record(world).announced) == (3, None)


def test_an_edit_between_the_two_writes_is_a_conflict_and_stays(world: World) -> None:
    world.run(*both(world))
    world.hyperpod.update_quota(world.a, 2, instances(9), target("team-a"))
    with pytest.raises(ConflictError):
        world.run(*both(world), index=1)
    assert standing(world) == (9, 3)
    assert hand_edit(world.hyperpod.quota(world.a), record(world))


def test_a_second_write_without_the_record_of_the_first_is_a_conflict(world: World) -> None:
    with pytest.raises(ConflictError, match="not on record"):
        world.run(*both(world), index=1)
    world.run(*both(world))
    world.state.record_applied(CLUSTER_ARN, replace(record(world), plan_id="plan-0"))
    with pytest.raises(ConflictError, match="not on record"):
        world.run(*both(world), index=1)
    world.state.record_applied(CLUSTER_ARN, replace(record(world), plan_id="plan-1", config=instances(8)))
    with pytest.raises(ConflictError, match="neither the first nor the second"):
        world.run(*both(world), index=1)
    assert world.hyperpod.writes == ["update team-a"]


def test_the_low_config_is_no_part_of_the_past(world: World) -> None:
    world.run(*both(world))
    assert record(world).began_from == instances(2)
    world.clock.advance(hours=1)
    world.run(*both(world), index=1)
    applied = record(world)
    assert applied.history is not None
    assert [(past.config, past.until.hour) for past in applied.history] == [(instances(2), 12)]
    assert (applied.began_from, applied.leased) == (None, {"ml.g5.8xlarge": 1})


def test_neither_write_is_taken_for_a_person_s(world: World) -> None:
    for index in (0, 1):
        world.run(*both(world), index=index)
        assert not hand_edit(world.hyperpod.quota(world.a), record(world))


def test_a_path_that_ended_at_its_low_write_continues_from_where_it_began(world: World) -> None:
    world.run(*both(world))
    world.run(low_write(0, "team-a", world.a, 1, 0, version=2))  # the next plan gives more
    assert record(world).began_from == instances(2)
    world.run(update(0, "team-a", world.a, 0, 4, version=3))  # and the one after it takes
    applied = record(world)
    assert applied.history is not None
    assert [past.config for past in applied.history] == [instances(2)]
    assert applied.began_from is None


def test_restoring_goes_back_over_the_low_config(world: World) -> None:
    world.run(*both(world))
    world.run(*both(world), index=1)
    assert world.run(*both(world), index=1, direction=Direction.RESTORE).version_after == 4
    assert standing(world) == (1, 4)
    assert (record(world).began_from, record(world).leased) == (instances(2), {"ml.g5.8xlarge": -1})
    assert world.run(*both(world), direction=Direction.RESTORE).version_after == 5
    assert standing(world) == (2, 5)
    assert (record(world).config, record(world).began_from, record(world).leased) == (instances(2), None, None)
    assert not hand_edit(world.hyperpod.quota(world.a), record(world))


def test_restoring_a_second_write_that_was_not_made_writes_nothing(world: World) -> None:
    world.run(*both(world))
    assert not world.run(*both(world), index=1, direction=Direction.RESTORE).written
    assert world.run(*both(world), direction=Direction.RESTORE).written
    assert standing(world) == (2, 3)


def test_a_record_that_was_kept_before_there_were_two_writes_is_read(world: World) -> None:
    world.run(update(0, "team-a", world.a, 2, 1))
    kept = json.loads(APPLIED.kept(record(world), without_none=True))
    assert not kept.keys() & {"began_from", "leased"}
    read = APPLIED.read(json.dumps(kept))
    assert (read.began_from, read.leased) == (None, None)


def test_a_path_that_was_broken_off_stays_known_when_the_plan_after_it_is_taken_back(world: World) -> None:
    """Plan 1 ends at its low write of 1; plan 2 writes 3 and is rolled back: limits still judge from 2."""
    world.run(*both(world))
    onward = replace(update(0, "team-a", world.a, 1, 3), target_version=2, began_from=instances(2))
    world.run(onward)
    assert record(world).began_from is None
    world.run(onward, direction=Direction.RESTORE)
    assert (record(world).config, record(world).began_from) == (instances(1), instances(2))


def test_a_low_write_whose_record_was_lost_is_known_by_its_announcement(world: World) -> None:
    world.run(replace(update(0, "team-a", world.a, 2, 4)))
    low = replace(low_write(0, "team-a", world.a, 4, 1), target_version=2)
    forgetful = ForgetfulState(lock=world.state.lock, applied=world.state.applied, owners=world.state.owners)
    world.use_case = replace(world.use_case, state=forgetful)
    with pytest.raises(ThrottledError):
        world.run(low)
    quota = world.hyperpod.quota(world.a)
    assert (world.count_of(world.a), record(world).version) == (1, 2)
    assert not hand_edit(quota, record(world))
    assert began_from(record(world), quota.compute_quota_version) == instances(4)


def test_a_restored_low_write_whose_record_was_lost_is_recorded_by_the_one_that_tries_again(world: World) -> None:
    world.run(*both(world))
    world.run(*both(world), index=1)
    kept = world.use_case
    forgetful = ForgetfulState(lock=world.state.lock, applied=world.state.applied, owners=world.state.owners)
    world.use_case = replace(kept, state=forgetful)
    with pytest.raises(ThrottledError):
        world.run(*both(world), index=1, direction=Direction.RESTORE)
    world.use_case = kept
    world.run(*both(world), index=1, direction=Direction.RESTORE)
    assert (record(world).config, record(world).began_from) == (instances(1), instances(2))


def test_a_quota_that_is_made_anew_at_a_version_that_it_had_before_is_recorded(world: World) -> None:
    """The `kueue` backend has one id for a team, and versions begin at 1 again."""
    world.run(*both(world))
    world.state.record_applied(CLUSTER_ARN, replace(record(world), version=2, plan_id="plan-0", config=instances(9)))
    WriteRecords(world.state, world.clock).remember(
        plan_of(*both(world)), both(world)[0], path_of(both(world), both(world)[0]), Written(world.a, 2)
    )
    assert record(world).config == instances(1)
