"""Quotas that failed, beside a plan that limits cut back; and quotas whose last write has not settled."""

from datetime import timedelta
from typing import Any

import pytest

from taskgov.allocation.plan import ChangeKind, Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota
from tests.allocation.world import ARN, NOW, document, fixed, nodes, quota, row, snapshot

STEPS = {"onLimit": "partial", "maxDecreasePercent": 25, "maxDecreaseInstances": 1}


def named(quota_id: str, team: str, count: int, **fields: Any) -> ComputeQuota:
    return quota(team, row(Count=count), name=quota_id, **fields).model_copy(update={"compute_quota_id": quota_id})


def test_what_is_given_is_taken_beside_a_kept_quota_whose_creation_failed() -> None:
    """The cluster is full with the failed one: b takes what a gives, and no more than that."""
    policy = document(fixed("a", row(Count=2)), fixed("b", row(Count=2)), pool=False, guardrails=STEPS)
    kept = quota("yak", row(Count=4), status="CreateFailed")
    plan = plan_quotas(snapshot(policy, nodes(8), [quota("a", row(Count=4)), quota("b"), kept]), mode="apply")
    assert plan.outcome is Outcome.APPLY
    assert {line.team: line.after for line in plan.allocations if line.team != "yak"} == {"a": 3, "b": 1}
    assert [change.team for change in plan.changes] == ["a", "b"]


def test_a_failed_quota_that_limits_keep_is_named_with_its_numbers() -> None:
    policy = document(fixed("a", row(Count=2)), fixed("b", row(Count=2)), pool=False, guardrails=STEPS)
    quotas = [quota("a", row(Count=4), status="UpdateRollbackFailed"), quota("b", row(Count=4))]
    plan = plan_quotas(snapshot(policy, nodes(8), quotas), mode="apply")
    assert [(change.team, change.kind) for change in plan.changes] == [("b", ChangeKind.UPDATE_QUOTA)]
    (finding,) = [each for each in plan.findings if each.code == "held-back"]
    assert (finding.subject, finding.evidence) == ("a", {"quota": "a-quota"})
    assert "held back by guardrails.maxDecreasePercent" in finding.because
    assert {line.team: (line.before, line.after) for line in plan.allocations} == {"a": (4, 4), "b": (4, 3)}


def test_a_second_failed_quota_of_a_team_holds_nothing_up() -> None:
    policy = document(fixed("a", row(Count=2)), fixed("b", row(Count=2)), pool=False, guardrails=STEPS)
    quotas = [named("one", "a", 4), named("two", "a", 4, status="DeleteFailed"), named("bee", "b", 4)]
    plan = plan_quotas(snapshot(policy, nodes(16), quotas), mode="apply")
    assert plan.outcome is Outcome.APPLY
    assert [(line.team, line.before, line.after) for line in plan.allocations] == [
        ("a", 4, 3),
        ("a", 4, 4),
        ("b", 4, 3),
    ]


def test_two_failed_quotas_of_a_team_are_judged_each() -> None:
    policy = document(fixed("a", row(Count=2)), fixed("b", row(Count=2)), pool=False, guardrails=STEPS)
    failed = {"status": "DeleteFailed"}
    quotas = [named("one", "a", 1, **failed), named("two", "a", 4, **failed), named("bee", "b", 4)]
    plan = plan_quotas(snapshot(policy, nodes(16), quotas), mode="apply")
    assert plan.outcome is Outcome.APPLY
    deleted = [change.resource_id for change in plan.changes if change.kind is ChangeKind.DELETE_QUOTA]
    assert deleted == ["one"]
    assert [finding.evidence for finding in plan.findings if finding.code == "held-back"] == [{"quota": "two"}]


@pytest.mark.parametrize("status", ["Creating", "Updating", "Pending"])
def test_a_quota_whose_last_write_has_not_settled_waits(status: str) -> None:
    policy = document(fixed("a", row(Count=2)), fixed("b", row(Count=3)), pool=False)
    quotas = [quota("a", row(Count=4), status=status), quota("b", row(Count=2))]
    plan = plan_quotas(snapshot(policy, nodes(8), quotas), mode="apply")
    assert [change.team for change in plan.changes] == ["b"]
    assert [(each.code, each.subject) for each in plan.findings] == [("quota-in-flight", "a")]
    assert plan.recheck_at == NOW + timedelta(minutes=5)


def test_a_queue_that_kueue_has_not_taken_in_takes_a_write() -> None:
    eks = ARN.replace("sagemaker", "eks").replace("abcdefghijkl", "ml-cluster")
    cluster = {"name": "ml-cluster", "arn": eks, "backend": "kueue"}
    policy = document(fixed("a", row(Count=2)), pool=False, cluster=cluster)
    plan = plan_quotas(snapshot(policy, nodes(8), [quota("a", row(Count=4), status="Updating")]), mode="apply")
    assert [change.team for change in plan.changes] == ["a"]
