"""Comparing what the plan wants with what holds."""

from collections.abc import Callable

import pytest

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.plan import Change
from taskgov.allocation.refusals import refused_write
from taskgov.contracts.steps import VerifyPlanRequest, VerifyPlanResult
from taskgov.errors import InvalidRequestError, LockLostError
from taskgov.hyperpod.model import ComputeQuota
from taskgov.ports import LOCK_SECONDS
from taskgov.services.plan_path import Direction
from taskgov.services.verify_plan import VerifyPlan
from taskgov.snapshot.records import RefusalError
from taskgov.snapshot.unreadable import COMPUTE_QUOTA, SCHEDULER_CONFIG, UnreadableObject, UnreadableObjectError
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


@pytest.fixture
def hyperpod() -> InMemoryHyperPod:
    hyperpod = InMemoryHyperPod()
    hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(1), target("team-a"))
    return hyperpod


def verify(
    hyperpod: InMemoryHyperPod,
    *changes: Change,
    direction: Direction = Direction.APPLY,
    state: InMemoryState | None = None,
) -> VerifyPlanResult:
    documents = InMemoryDocuments()
    pointer = documents.put("plans/x.json", plan_to_json(plan_of(*changes)), "application/json")
    request = VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=pointer)
    return VerifyPlan(hyperpod, documents, state or InMemoryState(), FixedClock())(request, direction)


def fits(result: VerifyPlanResult) -> bool:
    """Say whether all has settled as it was written."""
    return result == VerifyPlanResult(settled=True)


def set_status(hyperpod: InMemoryHyperPod, status: str, reason: str | None = None) -> None:
    (quota,) = hyperpod.quotas(CLUSTER_ARN)
    changed = quota.model_copy(update={"status": status, "failure_reason": reason})
    hyperpod.stored[quota.compute_quota_id] = changed


CHANGE = update(0, "team-a", "quota0000001", 2, 1)


def test_a_settled_quota_that_holds_what_was_written_matches(hyperpod: InMemoryHyperPod) -> None:
    assert verify(hyperpod, CHANGE) == VerifyPlanResult(settled=True)


def test_items_of_the_table_that_cannot_be_read_do_not_hold_up_the_others(hyperpod: InMemoryHyperPod) -> None:
    assert verify(hyperpod, CHANGE, state=InMemoryState(unreadable=UNREADABLE)) == VerifyPlanResult(settled=True)


ODD_ELSEWHERE = UnreadableObject(COMPUTE_QUOTA, "quota0000009", "ComputeQuotaConfig: 7 is no structure")


def test_a_quota_that_cannot_be_read_does_not_hold_up_the_others(hyperpod: InMemoryHyperPod) -> None:
    hyperpod.odd.append(ODD_ELSEWHERE)
    gone = deletion(1, "team-b", "quota0000008", 1)
    assert verify(hyperpod, CHANGE, gone) == VerifyPlanResult(settled=True)


def test_of_a_quota_that_cannot_be_read_it_is_not_known_whether_it_took_effect(
    hyperpod: InMemoryHyperPod, monkeypatch: pytest.MonkeyPatch
) -> None:
    hyperpod.create_quota(CLUSTER_ARN, "team-b", instances(1), target("team-b"))
    ((_, mine), (_, other)) = hyperpod.stored.items()
    hyperpod.odd.append(UnreadableObject(COMPUTE_QUOTA, mine.compute_quota_id, "odd"))
    monkeypatch.setattr(hyperpod, "quota", unreadable_quota(hyperpod, mine.compute_quota_id))
    del hyperpod.stored[mine.compute_quota_id]
    for change in (CHANGE, deletion(0, "team-a", mine.compute_quota_id, 1)):
        result = verify(hyperpod, change, update(1, "team-b", other.compute_quota_id, 2, 1))
        text = f"team-a: it is not known what stands: ComputeQuota {mine.compute_quota_id}: odd (it cannot be read)"
        assert result == VerifyPlanResult(settled=True, problems=(text,))


def test_what_was_created_and_has_no_record_may_be_the_quota_that_cannot_be_read(hyperpod: InMemoryHyperPod) -> None:
    hyperpod.odd.append(ODD_ELSEWHERE)
    assert "not known what stands: ComputeQuota quota0000009" in verify(hyperpod, creation(0, "team-c", 1)).problems[0]


def test_of_a_cluster_policy_that_cannot_be_read_it_is_not_known_whether_it_took_effect(
    hyperpod: InMemoryHyperPod,
) -> None:
    hyperpod.odd.append(UnreadableObject(SCHEDULER_CONFIG, "policy000001", "odd"))
    result = verify(hyperpod, CHANGE, policy_change(1, None, policy(training=70)))
    assert ["ClusterSchedulerConfig policy000001: odd" in problem for problem in result.problems] == [True]


def test_a_quota_that_is_listed_and_cannot_be_described_is_judged_by_the_list(
    hyperpod: InMemoryHyperPod, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_status(hyperpod, "UpdateFailed", "the add-on did not answer")
    monkeypatch.setattr(hyperpod, "quota", unreadable_quota(hyperpod, "quota0000001"))
    assert len(verify(hyperpod, CHANGE).refused) == 1


def unreadable_quota(hyperpod: InMemoryHyperPod, quota_id: str) -> Callable[[str], ComputeQuota]:
    """Return how quotas are described of which one has another form."""
    described = hyperpod.quota

    def quota(compute_quota_id: str) -> ComputeQuota:
        if compute_quota_id == quota_id:
            raise UnreadableObjectError(UnreadableObject(COMPUTE_QUOTA, quota_id, "odd"))
        return described(compute_quota_id)

    return quota


@pytest.mark.parametrize("status", ["Creating", "Updating", "Deleting"])
def test_a_status_in_flight_is_waited_for(status: str, hyperpod: InMemoryHyperPod) -> None:
    set_status(hyperpod, status)
    pending = (f"team-a has status {status} at version 1",)
    assert verify(hyperpod, CHANGE) == VerifyPlanResult(settled=False, pending=pending)


@pytest.mark.parametrize("status", ["UpdateFailed", "CreateFailed", "UpdateRollbackFailed"])
def test_a_failed_status_is_a_refusal_with_the_service_s_reason_and_is_recorded(
    status: str, hyperpod: InMemoryHyperPod
) -> None:
    set_status(hyperpod, status, "the add-on did not answer")
    documents, state = InMemoryDocuments(), InMemoryState()
    pointer = documents.put("plans/x.json", plan_to_json(plan_of(CHANGE)), "application/json")
    use_case = VerifyPlan(hyperpod, documents, state, FixedClock())
    request = VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=pointer)
    result = use_case(request)
    assert (result.settled, result.problems) == (True, ())
    text = f"team-a has status {status}: the add-on did not answer; it holds 1 x ml.g5.8xlarge"
    assert result.refused == (text,)
    (refused,) = state.refusals(CLUSTER_ARN)
    assert (refused.subject, refused.error, refused.because) == ("team-a/team-a", "failed-to-settle", text)
    assert use_case(request) == result, "a look that comes twice says the same"


@pytest.mark.parametrize("error", list(RefusalError))
def test_what_was_refused_when_it_was_written_is_not_waited_for(
    error: RefusalError, hyperpod: InMemoryHyperPod
) -> None:
    documents, state = InMemoryDocuments(), InMemoryState()
    plan = plan_of(update(0, "team-a", "quota0000001", 1, 9))
    pointer = documents.put("plans/x.json", plan_to_json(plan), "application/json")
    state.record_refusal(CLUSTER_ARN, refused_write(plan, plan.changes[0], error=error, because="no", at=NOON))
    request = VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=pointer)
    result = VerifyPlan(hyperpod, documents, state, FixedClock())(request)
    assert fits(result) == (error is not RefusalError.FAILED_TO_SETTLE)


def test_another_configuration_than_the_plan_s_is_a_problem(hyperpod: InMemoryHyperPod) -> None:
    result = verify(hyperpod, update(0, "team-a", "quota0000001", 2, 7))
    assert result.problems == ("team-a holds 1 x ml.g5.8xlarge, and not what was written",)


def test_defaults_that_the_service_spells_out_are_no_difference(hyperpod: InMemoryHyperPod) -> None:
    spelled_out = instances(1).model_validate(
        {
            **instances(1).to_api(),
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
            "PreemptTeamTasks": "LowerPriority",
        }
    )
    hyperpod.update_quota("quota0000001", 1, spelled_out, target("team-a"))
    assert fits(verify(hyperpod, CHANGE))


def test_a_quota_that_should_have_been_created_and_is_not_there_is_a_problem(hyperpod: InMemoryHyperPod) -> None:
    assert verify(hyperpod, creation(0, "team-c", 1)).problems == ("team-c does not exist",)


def test_after_a_roll_back_what_stood_before_is_what_matches(hyperpod: InMemoryHyperPod) -> None:
    undone = update(0, "team-a", "quota0000001", 1, 5)
    assert fits(verify(hyperpod, undone, creation(1, "team-c", 1), direction=Direction.RESTORE))
    assert not fits(verify(hyperpod, undone))


def test_the_cluster_policy_is_compared_too(hyperpod: InMemoryHyperPod) -> None:
    hyperpod.create_scheduler_config(CLUSTER_ARN, "cluster-policy", policy(training=70))
    assert fits(verify(hyperpod, policy_change(0, None, policy(training=70))))
    assert not fits(verify(hyperpod, policy_change(0, None, policy(training=71))))


def test_a_deletion_is_awaited_until_the_quota_is_gone(hyperpod: InMemoryHyperPod) -> None:
    change = deletion(0, "team-a", "quota0000001", 1)
    set_status(hyperpod, "Deleting")
    assert verify(hyperpod, change).pending == ("team-a has status Deleting",)
    set_status(hyperpod, "DeleteFailed", "in use")
    assert verify(hyperpod, change).refused == ("team-a is not deleted: status DeleteFailed: in use",)
    assert fits(verify(hyperpod, change, direction=Direction.RESTORE))
    hyperpod.delete_quota("quota0000001")
    assert verify(hyperpod, change) == VerifyPlanResult(settled=True)


def test_what_a_state_cannot_carry_is_cut_and_counted(hyperpod: InMemoryHyperPod) -> None:
    result = verify(hyperpod, *(creation(index, f"{index:040d}" * 20, 1) for index in range(60)))
    assert len(result.problems) == 21
    assert result.problems[-1] == "and 40 more"
    assert max(map(len, result.problems)) <= 354


@pytest.mark.parametrize("direction", list(Direction))
def test_a_plan_of_one_cluster_is_not_judged_or_recorded_under_the_lock_of_another(
    hyperpod: InMemoryHyperPod, direction: Direction
) -> None:
    set_status(hyperpod, "UpdateFailed", "the add-on did not answer")
    other = CLUSTER_ARN[:-1] + "m"
    documents, state = InMemoryDocuments(), InMemoryState(lock={other: ("run-2", 1, float("inf"))})
    pointer = documents.put("plans/x.json", plan_to_json(plan_of(CHANGE)), "application/json")
    request = VerifyPlanRequest(cluster_arn=other, plan=pointer, next=1, lock_owner="run-2", fencing_token=1)
    with pytest.raises(InvalidRequestError, match=f"is of {CLUSTER_ARN}, the lock is of {other}"):
        VerifyPlan(hyperpod, documents, state, FixedClock())(request, direction)
    assert state.refused == {}


def test_verifying_renews_the_lock_of_its_run_and_stops_when_it_is_lost(hyperpod: InMemoryHyperPod) -> None:
    documents, state, clock = InMemoryDocuments(), InMemoryState(), FixedClock()
    pointer = documents.put("plans/x.json", plan_to_json(plan_of(CHANGE)), "application/json")
    request = VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=pointer, lock_owner="run-1", fencing_token=4)
    state.lock[CLUSTER_ARN] = ("run-1", 4, clock.now().timestamp() + 10)
    VerifyPlan(hyperpod, documents, state, clock)(request)
    assert state.lock[CLUSTER_ARN][2] == clock.now().timestamp() + LOCK_SECONDS
    state.lock[CLUSTER_ARN] = ("run-2", 5, clock.now().timestamp() + 10)
    with pytest.raises(LockLostError):
        VerifyPlan(hyperpod, documents, state, clock)(request)
