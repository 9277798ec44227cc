"""Writing some changes of a plan in one call, and taking them back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from taskgov.allocation.codec import plan_to_json
from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangesResult
from taskgov.errors import ConflictError, InvalidRequestError, LockLostError
from taskgov.services.apply_change import ApplyChange, ApplyChanges
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.wording import MOST_SENTENCES
from taskgov.snapshot.identity import StateStamp
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    InMemoryDocuments,
    InMemoryHyperPod,
    InMemoryState,
    InMemoryTags,
)
from tests.support.plans import instances, low_write, plan_of, second_write, target, update

TEAMS = ("team-a", "team-b", "team-c", "team-d", "team-e")


class World:
    """Five quotas of two instances, and a plan that takes one from each."""

    def __init__(self) -> None:
        self.hyperpod = InMemoryHyperPod()
        self.documents = InMemoryDocuments()
        self.state = InMemoryState(lock={CLUSTER_ARN: ("run-1", 5, float("inf"))})
        self.ids = [
            self.hyperpod.create_quota(CLUSTER_ARN, team, instances(2), target(team)).resource_id for team in TEAMS
        ]
        self.hyperpod.writes.clear()
        changes = [update(index, team, self.ids[index], 2, 1) for index, team in enumerate(TEAMS)]
        self.plan = self.documents.put("plans/x.json", plan_to_json(plan_of(*changes)), "application/json")
        self.state.record_stamp(CLUSTER_ARN, StateStamp("own", 1, NOON))
        self.tags = InMemoryTags()
        self.use_case = ApplyChanges(
            ApplyChange(self.hyperpod, self.documents, self.state, FixedClock()),
            ClaimCluster(self.tags, self.state, FixedClock()),
        )

    def run(
        self,
        index: int,
        count: int,
        is_late: Callable[[], bool] = lambda: False,
        token: int = 5,
    ) -> ApplyChangesResult:
        request = ApplyChangeRequest(
            cluster_arn=CLUSTER_ARN,
            plan=self.plan,
            index=index,
            count=count,
            lock_owner="run-1",
            fencing_token=token,
        )
        return self.use_case(request, is_late)

    def edit(self, index: int) -> None:
        version = self.hyperpod.quota(self.ids[index]).compute_quota_version
        self.hyperpod.update_quota(self.ids[index], version, instances(9), target(TEAMS[index]))
        self.hyperpod.writes.clear()


@pytest.fixture
def world() -> World:
    return World()


def test_of_many_refused_writes_the_first_are_named_and_the_others_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidRequestError("no" * 1000)

    changes = [update(index, f"team-{index}", world.ids[0], 2, 1) for index in range(50)]
    world.plan = world.documents.put("plans/x.json", plan_to_json(plan_of(*changes)), "application/json")
    monkeypatch.setattr(world.hyperpod, "update_quota", refuse)
    refused = world.run(0, 50).refused
    assert (len(refused), refused[-1]) == (MOST_SENTENCES + 1, "and 30 more")
    assert max(map(len, refused)) < 400


def test_as_many_are_written_as_were_asked_for_in_plan_order(world: World) -> None:
    assert world.run(1, 3) == ApplyChangesResult(next=4, written=3, changes=(1, 2, 3), wave_ends=False)
    assert world.hyperpod.writes == ["update team-b", "update team-c", "update team-d"]


def test_the_last_call_ends_with_the_plan(world: World) -> None:
    assert world.run(3, 25) == ApplyChangesResult(next=5, written=2, changes=(3, 4))


def test_an_index_beyond_the_plan_is_refused(world: World) -> None:
    with pytest.raises(InvalidRequestError, match="there is no number 5"):
        world.run(5, 2)


def test_what_the_first_change_raises_is_raised(world: World) -> None:
    world.edit(0)
    with pytest.raises(ConflictError):
        world.run(0, 3)
    assert world.hyperpod.writes == []


def test_an_error_of_a_later_change_ends_the_call_before_it(world: World) -> None:
    world.edit(2)
    assert world.run(0, 5) == ApplyChangesResult(next=2, written=2, changes=(0, 1), wave_ends=False)
    with pytest.raises(ConflictError):
        world.run(2, 5)


def test_a_call_that_is_tried_again_finds_its_writes_done(world: World) -> None:
    assert (
        world.run(0, 3) == world.run(0, 3) == ApplyChangesResult(next=3, written=3, changes=(0, 1, 2), wave_ends=False)
    )
    assert len(world.hyperpod.writes) == 3


def test_a_call_whose_time_runs_out_ends_after_the_change_at_hand(world: World) -> None:
    assert world.run(0, 5, is_late=lambda: True) == ApplyChangesResult(next=1, written=1, changes=(0,), wave_ends=False)


def test_a_lock_lost_between_two_changes_ends_the_writing(world: World) -> None:
    def lose() -> bool:
        world.state.lock[CLUSTER_ARN] = ("run-2", 6, float("inf"))
        return False

    assert world.run(0, 5, is_late=lose) == ApplyChangesResult(next=1, written=1, changes=(0,), wave_ends=False)
    with pytest.raises(LockLostError):
        world.run(1, 4)


def test_a_write_that_is_refused_for_good_keeps_no_other_from_being_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = world.hyperpod.update_quota

    def update_quota(quota_id: str, *about: object) -> object:
        if quota_id in {world.ids[0], world.ids[3]}:
            raise InvalidRequestError("the account has no more")
        return own(quota_id, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(world.hyperpod, "update_quota", update_quota)
    refused = tuple(f"{team} (validation): the account has no more" for team in ("team-a", "team-d"))
    assert world.run(0, 25) == ApplyChangesResult(next=5, written=3, changes=(1, 2, 4), refused=refused)
    assert [one.name for one in world.state.refusals(CLUSTER_ARN)] == ["team-a", "team-d"]
    assert world.run(0, 25).refused == refused, "a call that comes twice says the same"


class TestWaves:
    """Team A is written twice (changes 0 and 3), team B and C once in between: waves of two, one and one changes."""

    @pytest.fixture
    def waves(self) -> World:
        world = World()
        changes = [
            low_write(0, "team-a", world.ids[0], 2, 1),
            replace(update(1, "team-b", world.ids[1], 2, 1), wave=1),
            replace(update(2, "team-c", world.ids[2], 2, 3), wave=2),
            second_write(3, "team-a", world.ids[0], 1, 3, wave=3),
        ]
        world.plan = world.documents.put("plans/x.json", plan_to_json(plan_of(*changes)), "application/json")
        return world

    def test_a_call_never_leaves_its_wave_and_a_quota_that_is_written_twice_counts_once(self, waves: World) -> None:
        assert waves.run(0, 25) == ApplyChangesResult(next=2, written=2, changes=(0, 1), wave_ends=True)
        assert waves.run(2, 25) == ApplyChangesResult(next=3, written=1, changes=(2,), wave_ends=True)
        assert waves.run(3, 25) == ApplyChangesResult(next=4, written=0, wave_ends=True)
        assert waves.hyperpod.writes == [f"update {team}" for team in ("team-a", "team-b", "team-c", "team-a")]

    def test_a_call_may_end_within_its_wave(self, waves: World) -> None:
        assert waves.run(0, 1) == ApplyChangesResult(next=1, written=1, changes=(0,), wave_ends=False)
        assert waves.run(1, 1) == ApplyChangesResult(next=2, written=1, changes=(1,), wave_ends=True)

    def test_a_second_write_before_the_first_has_settled_is_refused(self, waves: World) -> None:
        waves.hyperpod.settles = False
        waves.run(0, 25)
        waves.run(2, 25)
        with pytest.raises(ConflictError, match="in status Updating"):
            waves.run(3, 25)

    def test_a_plan_that_was_stored_before_there_were_waves_is_one(self, world: World) -> None:
        assert world.run(0, 25) == ApplyChangesResult(next=5, written=5, changes=(0, 1, 2, 3, 4), wave_ends=True)
