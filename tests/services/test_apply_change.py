"""Writing one change of a plan, and taking it back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.plan import Change, MassLoss
from taskgov.allocation.promises import hand_edit
from taskgov.allocation.refusals import refused_write
from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangeResult
from taskgov.errors import (
    ConflictError,
    GovernanceError,
    InvalidRequestError,
    LockLostError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)
from taskgov.ports import LOCK_SECONDS
from taskgov.services.apply_change import ApplyChange
from taskgov.services.plan_path import Direction
from taskgov.snapshot.records import AppliedQuota, RefusalError
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    UNREADABLE,
    FixedClock,
    InMemoryDocuments,
    InMemoryHyperPod,
    InMemoryState,
)
from tests.support.plans import creation, deletion, instances, plan_of, policy, policy_change, target, update


class World:
    """A cluster with two quotas and the lock held by run-1, and the use case over it."""

    def __init__(self) -> None:
        self.hyperpod = InMemoryHyperPod()
        self.documents = InMemoryDocuments()
        self.state = InMemoryState(lock={CLUSTER_ARN: ("run-1", 5, float("inf"))})
        self.clock = FixedClock()
        self.a = self.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(2), target("team-a")).resource_id
        self.b = self.hyperpod.create_quota(CLUSTER_ARN, "team-b", instances(2), target("team-b")).resource_id
        self.hyperpod.writes.clear()
        self.use_case = ApplyChange(self.hyperpod, self.documents, self.state, self.clock)

    def run(
        self, *changes: Change, index: int = 0, direction: Direction = Direction.APPLY, token: int = 5
    ) -> ApplyChangeResult:
        plan = self.documents.put("plans/x.json", plan_to_json(plan_of(*changes)), "application/json")
        do = self.use_case.restore if direction is Direction.RESTORE else self.use_case
        return do(
            ApplyChangeRequest(
                cluster_arn=CLUSTER_ARN,
                plan=plan,
                index=index,
                lock_owner="run-1",
                fencing_token=token,
            )
        )

    def count_of(self, quota_id: str) -> int | None:
        return self.hyperpod.quota(quota_id).compute_quota_config.compute_quota_resources[0].count


@pytest.fixture
def world() -> World:
    return World()


def test_an_update_is_written_at_the_version_of_the_plan_and_recorded(world: World) -> None:
    result = world.run(update(0, "team-a", world.a, 2, 1))
    assert (result.written, result.version_before, result.version_after) == (True, 1, 2)
    assert world.count_of(world.a) == 1
    (applied,) = world.state.applied_quotas(CLUSTER_ARN)
    assert (applied.compute_quota_id, applied.version, applied.plan_id) == (world.a, 2, "plan-1")
    assert world.state.cluster_of(world.a) == CLUSTER_ARN


def test_items_of_the_table_that_cannot_be_read_do_not_hold_up_the_others(world: World) -> None:
    world.state.unreadable = UNREADABLE
    assert world.run(update(0, "team-a", world.a, 2, 1)).written


def test_the_losses_that_were_approved_with_the_plan_are_recorded(world: World) -> None:
    loss = MassLoss("ml.g5.8xlarge", ("n-0", "n-1"), 2, NOON, NOON)
    plan = replace(plan_of(update(0, "team-a", world.a, 2, 1)), losses=(loss,))
    pointer = world.documents.put("plans/x.json", plan_to_json(plan), "application/json")
    request = ApplyChangeRequest(cluster_arn=CLUSTER_ARN, plan=pointer, index=0, lock_owner="run-1", fencing_token=5)
    world.use_case(request)
    (applied,) = world.state.applied_quotas(CLUSTER_ARN)
    assert applied.accepted_losses == {"ml.g5.8xlarge": NOON}


def test_a_retry_of_a_change_that_was_written_writes_nothing_more(world: World) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    first, again = world.run(change), world.run(change)
    assert first.version_after == again.version_after == 2
    assert world.hyperpod.writes == ["update team-a"]


def test_a_retry_of_a_creation_finds_what_it_created(world: World) -> None:
    first, again = world.run(creation(0, "team-c", 1)), world.run(creation(0, "team-c", 1))
    assert first.resource_id == again.resource_id
    assert world.hyperpod.writes == ["create team-c"]


def test_what_a_quota_was_before_is_recorded_once_for_each_write(world: World) -> None:
    down, up = update(0, "team-a", world.a, 2, 1), update(0, "team-a", world.a, 1, 2, version=2)
    world.run(down)
    world.run(down)  # a retry
    world.clock.advance(hours=1)
    world.run(up)
    (applied,) = world.state.applied_quotas(CLUSTER_ARN)
    assert applied.history is not None
    assert [past.config for past in applied.history] == [instances(2), instances(1)]
    assert [past.until.hour for past in applied.history] == [12, 13]


def test_a_restoration_is_recorded_like_a_write(world: World) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    world.run(change)
    world.run(change, direction=Direction.RESTORE)
    (applied,) = world.state.applied_quotas(CLUSTER_ARN)
    assert (applied.version, applied.config) == (3, instances(2))


def test_an_edit_by_somebody_else_is_a_conflict_and_stays(world: World) -> None:
    world.hyperpod.update_quota(world.a, 1, instances(9), target("team-a"))
    with pytest.raises(ConflictError):
        world.run(update(0, "team-a", world.a, 2, 1))
    assert world.count_of(world.a) == 9
    assert world.state.applied_quotas(CLUSTER_ARN) == ()


def test_a_quota_of_the_same_name_that_somebody_else_made_is_a_conflict(world: World) -> None:
    world.hyperpod.create_quota(CLUSTER_ARN, "team-c", instances(7), target("team-c"))
    with pytest.raises(ConflictError):
        world.run(creation(0, "team-c", 1))


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("token", [4, 6])
def test_who_lost_the_lock_writes_nothing_and_takes_nothing_back(
    world: World, token: int, direction: Direction
) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    if direction is Direction.RESTORE:
        world.run(change)
        world.hyperpod.writes.clear()
    with pytest.raises(LockLostError):
        world.run(change, token=token, direction=direction)
    assert world.hyperpod.writes == []


@pytest.mark.parametrize("direction", list(Direction))
def test_writing_and_taking_back_renew_the_lock(world: World, direction: Direction) -> None:
    world.state.lock[CLUSTER_ARN] = ("run-1", 5, NOON.timestamp() + 10)
    world.run(update(0, "team-a", world.a, 2, 1), direction=direction)
    assert world.state.lock[CLUSTER_ARN][2] == NOON.timestamp() + LOCK_SECONDS


def test_an_index_beyond_the_plan_is_refused_with_its_number(world: World) -> None:
    with pytest.raises(InvalidRequestError, match="there is no number 3"):
        world.run(update(0, "team-a", world.a, 2, 1), index=3)


def test_restoring_writes_what_stood_before(world: World) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    world.run(change)
    result = world.run(change, direction=Direction.RESTORE)
    assert (result.written, result.version_before, result.version_after) == (True, 2, 3)
    assert world.count_of(world.a) == 2


def test_restoring_what_was_never_written_writes_nothing(world: World) -> None:
    assert not world.run(update(0, "team-a", world.a, 2, 1), direction=Direction.RESTORE).written
    assert world.hyperpod.writes == []


def test_restoring_leaves_what_somebody_else_wrote_since(world: World) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    world.run(change)
    world.hyperpod.update_quota(world.a, 2, instances(9), target("team-a"))
    with pytest.raises(ConflictError, match="somebody else"):
        world.run(change, direction=Direction.RESTORE)
    assert world.count_of(world.a) == 9


def test_restoring_a_change_of_the_weight_alone_gives_the_weight_back(world: World) -> None:
    change = replace(update(0, "team-a", world.a, 2, 2), target_after=target("team-a", 90))
    world.run(change)
    assert world.hyperpod.quota(world.a).compute_quota_target == target("team-a", 90)
    assert world.run(change, direction=Direction.RESTORE).written
    assert world.hyperpod.quota(world.a).compute_quota_target == target("team-a")


def test_restoring_leaves_a_weight_that_somebody_else_changed_since(world: World) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    world.run(change)
    world.hyperpod.update_quota(world.a, 2, instances(1), target("team-a", 77))
    with pytest.raises(ConflictError, match="somebody else"):
        world.run(change, direction=Direction.RESTORE)


def test_restoring_a_creation_deletes_what_was_created(world: World) -> None:
    world.run(creation(0, "team-c", 1))
    assert world.run(creation(0, "team-c", 1), direction=Direction.RESTORE).written
    assert [quota.name for quota in world.hyperpod.quotas(CLUSTER_ARN)] == ["team-a", "team-b"]


def test_a_creation_that_never_happened_has_nothing_to_take_back(world: World) -> None:
    assert not world.run(creation(0, "team-c", 1), direction=Direction.RESTORE).written


def test_the_cluster_policy_is_created_updated_and_restored(world: World) -> None:
    first, second = policy(training=70), policy(training=70, inference=90)
    world.run(policy_change(0, None, first))
    change = policy_change(0, first, second, version=1)
    assert world.run(change).version_after == 2
    assert world.run(change).version_after == 2  # a retry
    assert world.run(change, direction=Direction.RESTORE).version_after == 3
    assert world.hyperpod.config is not None
    assert world.hyperpod.config.scheduler_config == first


def test_a_policy_that_somebody_else_changed_is_not_restored(world: World) -> None:
    first, second = policy(training=70), policy(training=70, inference=90)
    world.run(policy_change(0, None, first))
    change = policy_change(0, first, second, version=1)
    world.run(change)
    world.hyperpod.update_scheduler_config("schedconf001", 2, policy(other=1))
    with pytest.raises(ConflictError, match="somebody else"):
        world.run(change, direction=Direction.RESTORE)


class ForgetfulState(InMemoryState):
    """A table that takes announcements, and loses the record of the write after them."""

    def record_applied(self, cluster_arn: str, applied: AppliedQuota) -> None:
        if applied.announced is None:
            raise ThrottledError("write QUOTA#")
        super().record_applied(cluster_arn, applied)


@pytest.mark.parametrize("direction", list(Direction))
def test_a_write_is_announced_so_that_it_is_known_when_its_record_is_lost(world: World, direction: Direction) -> None:
    change = update(0, "team-a", world.a, 2, 1)
    world.run(change)
    again = change if direction is Direction.RESTORE else update(0, "team-a", world.a, 1, 3, version=2)
    forgetful = ForgetfulState(lock=world.state.lock, applied=world.state.applied, owners=world.state.owners)
    world.use_case = replace(world.use_case, state=forgetful)
    with pytest.raises(ThrottledError):
        world.run(again, direction=direction)
    (applied,) = forgetful.applied_quotas(CLUSTER_ARN)
    assert not hand_edit(world.hyperpod.quota(world.a), applied)


OTHER_ARN = CLUSTER_ARN[:-1] + "m"


@pytest.mark.parametrize("direction", list(Direction))
def test_a_plan_of_one_cluster_is_not_written_or_taken_back_under_the_lock_of_another(
    world: World, direction: Direction
) -> None:
    """Two writers: one holds the lock of the plan's cluster, the other a lock of its own."""
    change = update(0, "team-a", world.a, 2, 1)
    if direction is Direction.RESTORE:
        world.run(change)
        world.hyperpod.writes.clear()
    world.state.lock[OTHER_ARN] = ("run-2", 1, float("inf"))
    plan = world.documents.put("plans/x.json", plan_to_json(plan_of(change)), "application/json")
    request = ApplyChangeRequest(cluster_arn=OTHER_ARN, plan=plan, index=0, lock_owner="run-2", fencing_token=1)
    with pytest.raises(InvalidRequestError, match=f"is of {CLUSTER_ARN}, the lock is of {OTHER_ARN}"):
        (world.use_case.restore if direction is Direction.RESTORE else world.use_case)(request)
    assert world.hyperpod.writes == []


@pytest.mark.parametrize("direction", list(Direction))
def test_a_change_of_another_clusters_quota_is_not_written(world: World, direction: Direction) -> None:
    other = world.hyperpod.create_quota(OTHER_ARN, "team-a", instances(2), target("team-a")).resource_id
    world.hyperpod.writes.clear()
    with pytest.raises(InvalidRequestError, match=f"{other} of {OTHER_ARN}"):
        world.run(update(0, "team-a", other, 2, 1), direction=direction)
    world.state.remember_resources(OTHER_ARN, [world.b])  # the table knows it
    with pytest.raises(InvalidRequestError, match=f"{world.b} of {OTHER_ARN}"):
        world.run(update(0, "team-b", world.b, 2, 1), direction=direction)
    assert world.hyperpod.writes == []


@pytest.mark.parametrize("named", ["ml-cluster", "arn:aws:sagemaker:us-east-1:111122223333:cluster/ml-cluster"])
def test_a_request_for_anything_but_the_arn_of_a_cluster_is_refused(world: World, named: str) -> None:
    plan = world.documents.put("plans/x.json", plan_to_json(plan_of()), "application/json")
    given = {"clusterArn": named, "plan": plan.to_json(), "index": 0, "lockOwner": "run-1", "fencingToken": 5}
    with pytest.raises(InvalidRequestError, match=r"clusterArn.*is not the ARN of a HyperPod or EKS cluster"):
        ApplyChangeRequest.parse(given)


def denied() -> UpstreamError:
    error = UpstreamError("update compute quota: AccessDeniedException: not authorized")
    error.refusal = "access-denied"
    return error


def at_the_limit() -> InvalidRequestError:
    error = InvalidRequestError("create compute quota: ResourceLimitExceeded: 100 is the most")
    error.refusal = "limit-reached"
    return error


def raising(error: Exception) -> Callable[..., None]:
    def call(*_about: object) -> None:
        raise error

    return call


class TestRefusedForGood:
    """The write goes on record as refused, and is no error of the call."""

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (InvalidRequestError("ValidationException: 0 is no weight"), "validation"),
            (NotFoundError("ResourceNotFound: no such quota"), "not-found"),
            (denied(), "access-denied"),
            (at_the_limit(), "limit-reached"),
        ],
        ids=["validation", "not found", "access denied", "limit reached"],
    )
    def test_it_is_recorded_with_its_kind_and_the_words_of_the_service(
        self, world: World, monkeypatch: pytest.MonkeyPatch, error: GovernanceError, kind: str
    ) -> None:
        monkeypatch.setattr(world.hyperpod, "update_quota", raising(error))
        result = world.run(update(0, "team-a", world.a, 2, 1))
        assert (result.written, result.refused) == (False, f"team-a ({kind}): {error}")
        (refused,) = world.state.refusals(CLUSTER_ARN)
        assert (refused.subject, refused.error, refused.because) == ("team-a/team-a", kind, str(error))
        assert (refused.resource_id, refused.version, refused.plan_id) == (world.a, 1, "plan-1")
        assert world.state.applied_quotas(CLUSTER_ARN) == ()

    @pytest.mark.parametrize("error", [ThrottledError("later"), UpstreamError("down"), ConflictError("newer")])
    def test_what_may_pass_is_an_error_and_not_on_record(
        self, world: World, monkeypatch: pytest.MonkeyPatch, error: GovernanceError
    ) -> None:
        monkeypatch.setattr(world.hyperpod, "update_quota", raising(error))
        with pytest.raises(type(error)):
            world.run(update(0, "team-a", world.a, 2, 1))
        assert world.state.refusals(CLUSTER_ARN) == ()

    def test_a_table_that_is_denied_is_no_refusal_of_the_write(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.run(update(0, "team-a", world.a, 2, 1))
        monkeypatch.setattr(world.state, "record_applied", raising(denied()))
        with pytest.raises(UpstreamError):
            world.run(update(0, "team-a", world.a, 1, 3, version=2))
        assert world.state.refusals(CLUSTER_ARN) == ()

    @pytest.mark.parametrize(("wanted", "stays"), [(1, False), (7, True)], ids=["the same", "something else"])
    def test_a_later_write_of_the_same_forgets_it(self, world: World, wanted: int, stays: bool) -> None:
        other = update(0, "team-a", world.a, 2, wanted)
        at = world.clock.now()
        refused = refused_write(plan_of(other), other, error=RefusalError.VALIDATION, because="no", at=at)
        world.state.record_refusal(CLUSTER_ARN, refused)
        assert world.run(update(0, "team-a", world.a, 2, 1)).written
        assert bool(world.state.refusals(CLUSTER_ARN)) is stays

    def test_a_deletion_can_be_refused_too(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        stuck = world.hyperpod.stored[world.a].model_copy(update={"status": "CreateFailed"})
        world.hyperpod.stored[world.a] = stuck
        monkeypatch.setattr(world.hyperpod, "delete_quota", raising(denied()))
        assert (world.run(deletion(0, "team-a", world.a, 2)).refused or "").startswith("team-a (access-denied): ")
