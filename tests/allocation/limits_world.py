"""Builders for the tests of limits: a quota that moves, what was written of it, and what stops the plan."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from taskgov.allocation.plan import GuardrailVerdict, Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.world import NOW, document, fixed, nodes, quota, row, snapshot

HOUR = timedelta(hours=1)
A100 = "ml.p4d.24xlarge"
"""8 GPUs, 96 vCPU, 1,152 GiB."""
UNKNOWN = "ml.x99.large"
"""A type whose numbers nobody knows."""


def moving(before: Mapping[str, Any], after: Mapping[str, Any], **guardrails: Any) -> Snapshot:
    """team-a has `before` and is promised `after`; there is more than enough of every type."""
    plenty = {"overcommitPercent": 1000}
    policy = document(fixed("team-a", after), guardrails=guardrails, capacity=plenty, pool=False)
    types = {before["InstanceType"], after["InstanceType"]}
    enough = tuple(node for name in sorted(types) for node in nodes(20, name))
    return snapshot(policy, enough, [quota("team-a", before)])


def failed(plan: Plan) -> list[GuardrailVerdict]:
    return [verdict for verdict in plan.guardrails if not verdict.passed]


def stopped_by(world: Snapshot) -> list[str]:
    plan = plan_quotas(world, mode="apply")
    assert (plan.outcome in {Outcome.BLOCKED, Outcome.NEEDS_APPROVAL}) == bool(failed(plan))
    return [verdict.guardrail for verdict in failed(plan)]


def mig(profile: str, count: int) -> dict[str, Any]:
    return row(A100, AcceleratorPartition={"Type": profile, "Count": count})


def record(
    each: ComputeQuota, *, hours: float = 2, leased: Mapping[str, int] | None = None, **fields: Any
) -> AppliedQuota:
    return AppliedQuota(
        compute_quota_id=each.compute_quota_id,
        version=each.compute_quota_version,
        config=each.compute_quota_config,
        target=each.compute_quota_target,
        plan_id="plan-1",
        at=NOW - hours * HOUR,
        leased=leased,
        **fields,
    )
