"""What failed is recovered as documented: by an update again, or by deleting and creating it anew."""

import pytest

from taskgov.allocation.plan import ChangeKind, Outcome, Plan, Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, SchedulerConfig
from taskgov.kueue.record import FOREIGN
from taskgov.policy.document import PolicyDocument
from tests.allocation.world import ARN, document, fixed, nodes, quota, row, snapshot

TO_DELETE = ["CreateFailed", "CreateRollbackFailed", "UpdateRollbackFailed", "DeleteFailed", "DeleteRollbackFailed"]
"""Each of which HyperPod's guide says to delete (again); after that the document's promise is created."""


def plan(policy: PolicyDocument, *quotas: ComputeQuota, scheduler: ClusterSchedulerConfig | None = None) -> Plan:
    return plan_quotas(snapshot(policy, nodes(5), list(quotas), scheduler_config=scheduler), mode="apply")


@pytest.mark.parametrize("status", TO_DELETE)
def test_a_quota_that_failed_is_deleted_and_created_again_in_the_same_run(status: str) -> None:
    policy = document(fixed("b", row(Count=2)), pool=False)
    first = plan(policy, quota("b", row(Count=2), status=status, failure_reason="no add-on"))
    deletion, creation = first.changes
    assert (deletion.kind, deletion.reason, deletion.team) == (ChangeKind.DELETE_QUOTA, Reason.RECOVERY, "b")
    assert deletion.because == f"status {status}: no add-on; it is deleted, and created again once it is gone"
    assert (creation.kind, creation.name, creation.team) == (ChangeKind.CREATE_QUOTA, deletion.name, "b")
    assert (deletion.wave, creation.wave) == (1, 2)
    assert [finding.code for finding in first.findings] == ["quota-status-stuck"]
    assert first.recheck_at is None
    (created,) = plan(policy).changes
    assert created.after == creation.after


def test_a_quota_that_is_created_again_keeps_the_settings_that_the_document_does_not_say() -> None:
    settings = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 70}, "PreemptTeamTasks": "Never"}
    failed = quota("b", row(Count=2), status="UpdateRollbackFailed", weight=40, settings=settings)
    creation = plan(document(fixed("b", row(Count=2)), pool=False), failed).changes[1]
    assert creation.after.to_api() == {"ComputeQuotaResources": [row(Count=2)], **settings}
    assert creation.target_after == failed.compute_quota_target


def test_a_quota_whose_creation_failed_takes_nothing_from_anybody_when_it_is_deleted() -> None:
    strict = document(
        fixed("b", row(Count=2)), pool=False, guardrails={"minimumQuota": {"b": 1}, "maxDecreasePercent": 0}
    )
    assert plan(strict, quota("b", row(Count=2), status="CreateFailed")).outcome is Outcome.APPLY


def test_the_queues_of_somebody_else_are_not_deleted() -> None:
    policy = document(fixed("b", row(Count=2)), pool=False)
    assert plan(policy, quota("b", row(Count=2), status=FOREIGN)).changes == ()


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
    assert [(change.kind, change.wave) for change in made.changes] == [
        (ChangeKind.DELETE_SCHEDULER_CONFIG, 1),
        (ChangeKind.CREATE_SCHEDULER_CONFIG, 2),
    ]
    again = plan(policy, quota("b", row(Count=2)))
    assert [change.after for change in again.changes] == [made.changes[1].after]
