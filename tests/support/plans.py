"""Plans for tests of the steps that store, apply and verify them."""

from dataclasses import replace
from datetime import UTC, datetime

from taskgov.allocation.plan import Change, ChangeKind, Outcome, Plan, Prediction, Reason
from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    PriorityClass,
    SchedulerConfig,
)
from tests.support.memory import CLUSTER_ARN


def instances(count: int, instance_type: str = "ml.g5.8xlarge") -> ComputeQuotaConfig:
    """Return a quota of whole instances."""
    return ComputeQuotaConfig(compute_quota_resources=(ComputeQuotaResource(instance_type=instance_type, count=count),))


def policy(**weights: int) -> SchedulerConfig:
    """Return a cluster policy with these priority classes."""
    classes = tuple(PriorityClass(name=name, weight=weight) for name, weight in weights.items())
    return SchedulerConfig(priority_classes=classes)


def target(team: str, weight: int = 10) -> ComputeQuotaTarget:
    return ComputeQuotaTarget(team_name=team, fair_share_weight=weight)


def update(index: int, team: str, quota_id: str, before: int, after: int, version: int = 1) -> Change:
    """Return the change of a team's quota from one number of instances to another."""
    return Change(
        index=index,
        kind=ChangeKind.UPDATE_QUOTA,
        team=team,
        resource_id=quota_id,
        name=team,
        target_version=version,
        before=instances(before),
        after=instances(after),
        target_before=target(team),
        target_after=target(team),
        gpus_before=before,
        gpus_after=after,
        reason=Reason.SHARE,
        because=f"{team} {before} -> {after}",
    )


def low_write(
    index: int, team: str, quota_id: str, before: int, low: int, *, version: int = 1, wave: int = 1
) -> Change:
    """Return the first of two writes of a team's quota, which gives."""
    return replace(update(index, team, quota_id, before, low, version), wave=wave, is_low=True)


def second_write(index: int, team: str, quota_id: str, low: int, after: int, *, wave: int = 2) -> Change:
    """Return the second of two writes of a team's quota, which takes."""
    return replace(update(index, team, quota_id, low, after), wave=wave, target_version=None)


def creation(index: int, team: str, count: int) -> Change:
    """Return the creation of a team's quota."""
    return Change(
        index=index,
        kind=ChangeKind.CREATE_QUOTA,
        team=team,
        resource_id=None,
        name=team,
        target_version=None,
        before=None,
        after=instances(count),
        target_before=None,
        target_after=target(team),
        gpus_before=0,
        gpus_after=count,
        reason=Reason.PROMISE,
        because=f"{team} gets {count}",
    )


def deletion(index: int, team: str, quota_id: str, count: int, version: int = 1) -> Change:
    """Return the deletion of a team's quota that failed."""
    change = update(index, team, quota_id, count, 0, version)
    return replace(change, kind=ChangeKind.DELETE_QUOTA, after=ComputeQuotaConfig(), reason=Reason.RECOVERY)


def policy_change(
    index: int, before: SchedulerConfig | None, after: SchedulerConfig, version: int | None = None
) -> Change:
    """Return the creation (nothing before) or the update of the cluster policy."""
    return Change(
        index=index,
        kind=ChangeKind.UPDATE_SCHEDULER_CONFIG if before else ChangeKind.CREATE_SCHEDULER_CONFIG,
        team="",
        resource_id="schedconf001" if before else None,
        name="cluster-policy",
        target_version=version,
        before=before,
        after=after,
        target_before=None,
        target_after=None,
        gpus_before=0,
        gpus_after=0,
        reason=Reason.POLICY_CHANGED,
        because="the document says so",
    )


def plan_of(*changes: Change, outcome: Outcome = Outcome.APPLY) -> Plan:
    """Return a plan with these changes and nothing else."""
    return Plan(
        plan_id="plan-1",
        cluster_name="ml-cluster",
        cluster_arn=CLUSTER_ARN,
        snapshot_sha256="0" * 64,
        policy_version="v1",
        mode="apply",
        outcome=outcome,
        taken_at=datetime(2026, 11, 20, 12, 0, tzinfo=UTC),
        capacity=(),
        allocations=(),
        changes=changes,
        guardrails=(),
        findings=(),
        prediction=Prediction(simulated=False),
        recheck_at=None,
    )
