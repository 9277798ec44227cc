"""Comparing what the plan wants with what holds."""

import pytest

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.plan import Change
from taskgov.contracts.steps import Direction, VerifyPlanRequest, VerifyPlanResult
from taskgov.errors import LockLostError
from taskgov.ports import LOCK_SECONDS
from taskgov.services.verify_plan import VerifyPlan
from tests.support.memory import CLUSTER_ARN, FixedClock, InMemoryDocuments, InMemoryHyperPod, InMemoryState
from tests.support.plans import creation, deletion, instances, plan_of, policy, policy_change, target, update


@pytest.fixture
def hyperpod() -> InMemoryHyperPod:
    hyperpod = InMemoryHyperPod()
    hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(1), target("team-a"))
    return hyperpod


def verify(hyperpod: InMemoryHyperPod, *changes: Change, direction: Direction = Direction.APPLY) -> VerifyPlanResult:
    documents = InMemoryDocuments()
    pointer = documents.put("plans/x.json", plan_to_json(plan_of(*changes)), "application/json")
    request = VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=pointer, direction=direction)
    return VerifyPlan(hyperpod, documents, InMemoryState(), FixedClock())(request)


def set_status(hyperpod: InMemoryHyperPod, status: str, reason: str | None = None) -> None:
    (quota,) = hyperpod.quotas(CLUSTER_ARN)
    changed = quota.model_copy(update={"status": status, "failure_reason": reason})
    hyperpod.stored[quota.compute_quota_id] = changed


CHANGE = update(0, "team-a", "quota0000001", 2, 1)


def test_a_settled_quota_that_holds_what_was_written_matches(hyperpod: InMemoryHyperPod) -> None:
    assert verify(hyperpod, CHANGE) == VerifyPlanResult(settled=True, matches=True, pending=0, standing=1)


@pytest.mark.parametrize("status", ["Creating", "Updating", "Deleting"])
def test_a_status_in_flight_is_waited_for(status: str, hyperpod: InMemoryHyperPod) -> None:
    set_status(hyperpod, status)
    assert verify(hyperpod, CHANGE) == VerifyPlanResult(settled=False, matches=False, pending=1, standing=1)


@pytest.mark.parametrize("status", ["UpdateFailed", "CreateFailed", "UpdateRollbackFailed"])
def test_a_failed_status_is_a_problem_with_the_service_s_reason(status: str, hyperpod: InMemoryHyperPod) -> None:
    set_status(hyperpod, status, "the add-on did not answer")
    result = verify(hyperpod, CHANGE)
    assert (result.settled, result.matches) == (True, False)
    assert result.problems == (f"team-a: status {status}: the add-on did not answer; team-a holds 1 x ml.g5.8xlarge",)


def test_another_configuration_than_the_plan_s_is_a_problem(hyperpod: InMemoryHyperPod) -> None:
    result = verify(hyperpod, update(0, "team-a", "quota0000001", 2, 7))
    assert result.problems == ("team-a holds 1 x ml.g5.8xlarge, and not what it should",)


def test_defaults_that_the_service_spells_out_are_no_difference(hyperpod: InMemoryHyperPod) -> None:
    spelled_out = instances(1).model_validate(
        {
            **instances(1).to_api(),
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
            "PreemptTeamTasks": "LowerPriority",
        }
    )
    hyperpod.update_quota("quota0000001", 1, spelled_out, target("team-a"))
    assert verify(hyperpod, CHANGE).matches


def test_a_quota_that_should_have_been_created_and_is_not_there_is_a_problem(hyperpod: InMemoryHyperPod) -> None:
    assert verify(hyperpod, creation(0, "team-c", 1)).problems == ("team-c: it does not exist",)


def test_after_a_roll_back_what_stood_before_is_what_matches(hyperpod: InMemoryHyperPod) -> None:
    undone = update(0, "team-a", "quota0000001", 1, 5)
    assert verify(hyperpod, undone, creation(1, "team-c", 1), direction=Direction.RESTORE).matches
    assert not verify(hyperpod, undone).matches


def test_the_cluster_policy_is_compared_too(hyperpod: InMemoryHyperPod) -> None:
    hyperpod.create_scheduler_config(CLUSTER_ARN, "cluster-policy", policy(training=70))
    assert verify(hyperpod, policy_change(0, None, policy(training=70))).matches
    assert not verify(hyperpod, policy_change(0, None, policy(training=71))).matches


def test_a_deletion_is_awaited_until_the_quota_is_gone(hyperpod: InMemoryHyperPod) -> None:
    change = deletion(0, "team-a", "quota0000001", 1)
    set_status(hyperpod, "Deleting")
    assert verify(hyperpod, change) == VerifyPlanResult(settled=False, matches=False, pending=1)
    set_status(hyperpod, "DeleteFailed", "in use")
    assert verify(hyperpod, change).problems == ("team-a: it is not deleted: status DeleteFailed: in use",)
    assert verify(hyperpod, change, direction=Direction.RESTORE).matches
    hyperpod.delete_quota("quota0000001")
    assert verify(hyperpod, change) == VerifyPlanResult(settled=True, matches=True, pending=0, standing=1)


def test_what_a_state_cannot_carry_is_cut_and_counted(hyperpod: InMemoryHyperPod) -> None:
    result = verify(hyperpod, *(creation(index, f"{index:040d}" * 20, 1) for index in range(60)))
    assert len(result.problems) == 51
    assert result.problems[-1] == "and 10 more"
    assert max(map(len, result.problems)) <= 504


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
