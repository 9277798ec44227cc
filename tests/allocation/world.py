"""Builders for the worlds in which the allocation is tested: quotas, nodes, documents, and what a write does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from taskgov.allocation.plan import ChangeKind, Plan
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.model import ClusterFacts, Node, Snapshot

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
G5 = "ml.g5.8xlarge"
"""1 GPU, 32 vCPU, 128 GiB."""
P5 = "ml.p5.48xlarge"
"""8 GPUs, 192 vCPU, 2,048 GiB."""
G6 = "ml.g6.12xlarge"
"""4 GPUs, 48 vCPU, 192 GiB."""
C5 = "ml.c5.2xlarge"
"""No accelerator, 8 vCPU, 16 GiB."""


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def nodes(count: int, instance_type: str = G5, prefix: str = "", **fields: Any) -> tuple[Node, ...]:
    name = prefix or instance_type.replace(".", "-")
    return tuple(Node(name=f"{name}-{n:04}", instance_type=instance_type, **fields) for n in range(count))


def broken(count: int, instance_type: str = G5, *, since: datetime | None = None) -> tuple[Node, ...]:
    """Nodes that turned unhealthy; long ago unless told."""
    moment = since or NOW - timedelta(days=1)
    return nodes(count, instance_type, f"broken-{instance_type}", health="Unschedulable", unhealthy_since=moment)


def row(instance_type: str = G5, **amounts: Any) -> dict[str, Any]:
    return {"InstanceType": instance_type, **amounts}


def config(*rows: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    return {"ComputeQuotaResources": list(rows), **settings}


def quota(
    team: str, *rows: Mapping[str, Any], version: int = 1, weight: int | None = None, **fields: Any
) -> ComputeQuota:
    settings = fields.pop("settings", {})
    return ComputeQuota(
        compute_quota_id=f"id-{team}",
        name=fields.pop("name", f"{team}-quota"),
        compute_quota_version=version,
        status=fields.pop("status", "Created"),
        compute_quota_config=ComputeQuotaConfig.model_validate(config(*rows, **settings)),
        compute_quota_target=ComputeQuotaTarget(team_name=team, fair_share_weight=weight),
        **fields,
    )


def fixed(team: str, *rows: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A team with a fixed promise; `tier` is the team's, every other field the quota's."""
    return {"name": team, "tier": fields.pop("tier", 1), "quota": config(*rows, **fields)}


def share(team: str, percent: float, instance_type: str = G5, *, tier: int = 1, **bounds: Any) -> dict[str, Any]:
    return {"name": team, "tier": tier, "share": [{"instanceType": instance_type, "percent": percent, **bounds}]}


def document(*teams: Mapping[str, Any], pool: bool = True, **sections: Any) -> PolicyDocument:
    if pool:
        sections.setdefault("sharedPool", {"team": "shared-pool"})
    return PolicyDocument.model_validate(
        {
            "apiVersion": "taskgov/v1",
            "teams": list(teams),
            "cluster": {"name": "ml-cluster", "arn": ARN},
            **sections,
        }
    )


def snapshot(
    policy: PolicyDocument | None = None,
    cluster_nodes: Sequence[Node] = (),
    quotas: Sequence[ComputeQuota] = (),
    **fields: Any,
) -> Snapshot:
    return Snapshot(
        cluster=ClusterFacts(name="ml-cluster", arn=ARN),
        taken_at=fields.pop("now", NOW),
        nodes=tuple(cluster_nodes),
        quotas=tuple(quotas),
        policy=policy,
        policy_version=None if policy is None else "v1",
        **fields,
    )


def counts(plan: Plan, *, after: bool = True) -> dict[str, float]:
    """Team -> its number in the unit of its promise, for plans of one instance type; partitions by their profile."""
    return {
        f"{line.team} {line.unit}" if line.unit.startswith("mig-") else line.team: line.after if after else line.before
        for line in plan.allocations
    }


def applied(world: Snapshot, plan: Plan, *, up_to: int | None = None) -> Snapshot:
    """The world after the first `up_to` changes of the plan were written, as SageMaker would answer."""
    quotas = {each.compute_quota_id: each for each in world.quotas}
    scheduler = world.scheduler_config
    for change in plan.changes[:up_to]:
        match change.kind, change.after:
            case ChangeKind.DELETE_QUOTA, _:
                del quotas[change.resource_id or ""]
            case ChangeKind.DELETE_SCHEDULER_CONFIG, _:
                scheduler = None
            case _, ComputeQuotaConfig() as after:
                quota_id = change.resource_id or f"id-{change.team}"
                before = quotas.get(quota_id)
                version = 0 if before is None else before.compute_quota_version
                assert change.target_version in {None, version}
                quotas[quota_id] = ComputeQuota(
                    compute_quota_id=quota_id,
                    name=change.name,
                    compute_quota_version=version + 1,
                    status="Created" if change.kind is ChangeKind.CREATE_QUOTA else "Updated",
                    compute_quota_config=after,
                    compute_quota_target=change.target_after or ComputeQuotaTarget(team_name=change.team),
                )
            case _, SchedulerConfig() as after:
                scheduler = ClusterSchedulerConfig(
                    cluster_scheduler_config_id=change.resource_id or "scheduler0001",
                    name=change.name,
                    cluster_scheduler_config_version=(change.target_version or 0) + 1,
                    status="Updated",
                    scheduler_config=after,
                )
    by_name = sorted(quotas.values(), key=lambda each: each.name)
    return replace(world, quotas=tuple(by_name), scheduler_config=scheduler)
