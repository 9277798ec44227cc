"""What failed is recovered as documented: by an update again, or by deleting and creating it anew."""

import pytest

from taskgov.allocation.plan import ChangeKind, Outcome, Plan, Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, SchedulerConfig
from taskgov.policy.document import PolicyDocument
from tests.allocation.world import ARN, NOW, document, fixed, nodes, quota, row, snapshot

TO_DELETE = ["CreateFailed", "CreateRollbackFailed", "UpdateRollbackFailed", "DeleteFailed", "DeleteRollbackFailed"]
"""Each of which HyperPod's guide says to delete (again); after that the document's promise is created."""


def plan(policy: PolicyDocument, *quotas: ComputeQuota, scheduler: ClusterSchedulerConfig | None = None) -> Plan:
    return plan_quotas(snapshot(policy, nodes(5), list(quotas), scheduler_config=scheduler), mode="apply")


@pytest.mark.parametrize("status", TO_DELETE)
def test_a_quota_that_failed_is_deleted_and_the_next_plan_creates_it_again(status: str) -> None:
    policy = document(fixed("b", row(Count=2)), pool=False)
    first = plan(policy, quota("b", row(Count=2), status=status, failure_reason="no add-on"))
    (change,) = first.changes
    assert (change.kind, change.reason, change.team) == (ChangeKind.DELETE_QUOTA, Reason.RECOVERY, "b")
    assert change.because == f"status {status}: no add-on; it is deleted now, and created again once it is gone"
    assert [finding.code for finding in first.findings] == ["quota-status-stuck"]
    assert first.recheck_at is not None
    assert (first.recheck_at - NOW).total_seconds() == 60
    again = plan(policy)
    assert [(each.kind, each.team) for each in again.changes] == [(ChangeKind.CREATE_QUOTA, "b")]


def test_a_quota_whose_creation_failed_takes_nothing_from_anybody_when_it_is_deleted() -> None:
    strict = document(
        fixed("b", row(Count=2)), pool=False, guardrails={"minimumQuota": {"b": 1}, "approveAbove": {"changedGpus": 0}}
    )
    assert plan(strict, quota("b", row(Count=2), status="CreateFailed")).outcome is Outcome.APPLY


def test_a_quota_that_may_still_be_in_force_is_deleted_within_the_guardrails() -> None:
    strict = document(fixed("b", row(Count=2)), pool=False, guardrails={"minimumQuota": {"b": 1}})
    assert plan(strict, quota("b", row(Count=2), status="UpdateRollbackFailed")).outcome is Outcome.BLOCKED


def test_what_nobody_governs_is_not_deleted() -> None:
    others = quota("not-mine", row(Count=1), status="CreateFailed")
    frozen = document(fixed("b", row(Count=2)), pool=False, guardrails={"freeze": ["b"]})
    assert plan(frozen, others, quota("b", row(Count=2), status="CreateFailed")).changes == ()


def test_what_is_being_deleted_is_waited_for() -> None:
    policy = document(fixed("b", row(Count=2)), pool=False)
    assert plan(policy, quota("b", row(Count=2), status="Deleting")).changes == ()


@pytest.mark.parametrize("status", TO_DELETE)
def test_a_cluster_policy_that_failed_is_deleted_first_too(status: str) -> None:
    wanted = {"PriorityClasses": [{"Name": "training", "Weight": 70}]}
    policy = document(fixed("b", row(Count=2)), pool=False, schedulerConfig=wanted)
    failed = ClusterSchedulerConfig(
        cluster_scheduler_config_id="schedconf001",
        name="policy",
        cluster_scheduler_config_version=1,
        status=status,
        scheduler_config=SchedulerConfig.model_validate(wanted),
        cluster_arn=ARN,
    )
    made = plan(policy, quota("b", row(Count=2)), scheduler=failed)
    assert [change.kind for change in made.changes] == [ChangeKind.DELETE_SCHEDULER_CONFIG]
    again = plan(policy, quota("b", row(Count=2)))
    assert [change.kind for change in again.changes] == [ChangeKind.CREATE_SCHEDULER_CONFIG]
