"""What is wrong with the quotas: drift, stuck statuses, limits and weights that cannot work, numbers too big."""

from collections.abc import Iterable, Mapping

from taskgov.allocation.governed import NO_UPDATE_MENDS
from taskgov.allocation.plan import POLICY_KINDS, Plan
from taskgov.findings import Evidence, Finding
from taskgov.findings.of_audit import (
    BORROW_LIMIT_UNUSABLE,
    NOMINAL_ABOVE_ALLOCATABLE,
    POLICY_DRIFT,
    POLICY_STATUS_STUCK,
    QUEUE_DRIFT,
    QUOTA_DRIFT,
    QUOTA_HELD_WITHOUT_NODES,
    WEIGHT_ZERO,
)
from taskgov.findings.of_plan import QUOTA_STATUS_STUCK
from taskgov.hyperpod.borrowing import borrow_limit_findings, borrow_percent, flavor_quotas, sharing_of
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota, SharingStrategy, Switch
from taskgov.hyperpod.names import cluster_queue_of
from taskgov.hyperpod.ratio import Amounts
from taskgov.quantities import CPU, EFA, GIBIBYTE, MEMORY
from taskgov.scheduling.objects import split
from taskgov.scheduling.reading import orchestrator_of, read_cluster_queue
from taskgov.snapshot.model import Snapshot

RECOVERY: Mapping[str, str] = {**NO_UPDATE_MENDS, "UpdateFailed": "update it again"}
"""Status that a person has to fix -> how (HyperPod developer guide, "Troubleshoot")."""


def quota_findings(snapshot: Snapshot, plan: Plan) -> Iterable[Finding]:
    """Return the findings about quotas and the cluster policy."""
    table = snapshot.instance_types
    quotas = sorted(snapshot.quotas, key=_team)
    known = [quota for quota in quotas if _is_known(quota, table)]
    yield from _drift(plan)
    yield from _queue_drift(snapshot, known, table)
    yield from _stuck(snapshot, quotas)
    yield from _without_nodes(plan, quotas)
    for quota in known:
        yield from borrow_limit_findings(_team(quota), quota.compute_quota_config, table)
    yield from _nothing_to_borrow(known, table)
    yield from _zero_weights(snapshot, quotas)
    yield from _above_allocatable(snapshot, known, table)


def _team(quota: ComputeQuota) -> str:
    return quota.compute_quota_target.team_name


def _is_known(quota: ComputeQuota, table: InstanceTypeTable) -> bool:
    return all(row.instance_type in table for row in quota.compute_quota_config.compute_quota_resources)


def _drift(plan: Plan) -> Iterable[Finding]:
    """Report what the plan would change: SageMaker holds something else than the document and the capacity ask for."""
    for change in plan.changes:
        evidence: dict[str, str | float] = {
            "reason": change.reason.value,
            "gpusNow": change.gpus_before,
            "gpusPlanned": change.gpus_after,
        }
        if change.kind in POLICY_KINDS:
            yield POLICY_DRIFT.about(change.team or change.name, evidence, because=change.because)
        else:
            yield QUOTA_DRIFT.about(change.team or change.name, evidence, team=change.team, because=change.because)


def _queue_drift(snapshot: Snapshot, quotas: Iterable[ComputeQuota], table: InstanceTypeTable) -> Iterable[Finding]:
    """Report queues that hold another nominal quota than the compute quota they are made from."""
    queues = {queue["metadata"]["name"]: queue for queue in snapshot.kueue.cluster_queues}
    for quota in quotas:
        queue = queues.get(cluster_queue_of(_team(quota)))
        if queue is None or orchestrator_of(queue):
            continue
        actual = {key: held.nominal for key, held in read_cluster_queue(queue).quotas.items() if held.nominal}
        wanted = _nominal(quota, table)
        # How many EFA interfaces a part of an instance brings is not documented: no difference is read into it.
        keys = (key for key in sorted(actual.keys() | wanted.keys()) if split(key)[1] != EFA)
        different = next((key for key in keys if wanted.get(key, 0) != actual.get(key, 0)), None)
        if different is not None:
            yield _queue_finding(quota, different, wanted.get(different, 0), actual.get(different, 0))


def _nominal(quota: ComputeQuota, table: InstanceTypeTable) -> dict[str, int]:
    return {
        f"{flavor.instance_type}/{resource}": amount
        for flavor in flavor_quotas(quota.compute_quota_config, table)
        for resource, amount in flavor.nominal.items()
        if amount
    }


def _queue_finding(quota: ComputeQuota, key: str, wanted: int, held: int) -> Finding:
    team, (instance_type, resource) = _team(quota), split(key)
    return QUEUE_DRIFT.about(
        team,
        {"instanceType": instance_type, "resource": resource, "wanted": wanted, "actual": held},
        team=team,
        instance_type=instance_type,
        resource=resource,
        held=_amount(resource, held),
        wanted=_amount(resource, wanted),
    )


def _stuck(snapshot: Snapshot, quotas: Iterable[ComputeQuota]) -> Iterable[Finding]:
    for quota in quotas:
        if quota.status in RECOVERY and quota.status != "Deleting":
            yield QUOTA_STATUS_STUCK.about(
                _team(quota),
                {"quota": quota.name, "status": quota.status},
                quota=quota.name,
                status=quota.status,
                reason=quota.failure_reason or "no reason given",
                recovery=RECOVERY[quota.status],
            )
    config = snapshot.scheduler_config
    if config is not None and config.status in RECOVERY and config.status != "Deleting":
        failed = [part for part, status in sorted((config.status_details or {}).items()) if status in RECOVERY]
        yield POLICY_STATUS_STUCK.about(
            config.name,
            {"status": config.status, "parts": ", ".join(failed) or "none named"},
            status=config.status,
            reason=config.failure_reason or "no reason given",
            parts=f" ({', '.join(failed)})" if failed else "",
            recovery=RECOVERY[config.status],
        )


def _without_nodes(plan: Plan, quotas: Iterable[ComputeQuota]) -> Iterable[Finding]:
    missing = {line.instance_type for line in plan.capacity if not line.nodes}
    holders: dict[str, list[str]] = {}
    for quota in quotas:
        for row in quota.compute_quota_config.compute_quota_resources:
            empty = not any((row.count, row.accelerators, row.vcpu, row.memory_in_gib, row.accelerator_partition))
            if row.instance_type in missing and not empty:
                holders.setdefault(row.instance_type, []).append(_team(quota))
    for instance_type, teams in sorted(holders.items()):
        named = ", ".join(teams)
        evidence = {"instanceType": instance_type, "teams": named}
        yield QUOTA_HELD_WITHOUT_NODES.about(instance_type, evidence, teams=named, instance_type=instance_type)


def _nothing_to_borrow(quotas: Iterable[ComputeQuota], table: InstanceTypeTable) -> Iterable[Finding]:
    """Report teams that may borrow, of types that nobody else in the cohort lends."""
    lenders: dict[str, set[str]] = {}
    flavors = {_team(quota): flavor_quotas(quota.compute_quota_config, table) for quota in quotas}
    sharing = {_team(quota): sharing_of(quota.compute_quota_config) for quota in quotas}
    for team, held in flavors.items():
        if sharing[team].strategy is not SharingStrategy.DONT_LEND:
            for flavor in held:
                if any(flavor.nominal.values()):
                    lenders.setdefault(flavor.instance_type, set()).add(team)
    for team, held in flavors.items():
        for flavor in held:
            others = lenders.get(flavor.instance_type, set()) - {team}
            if borrow_percent(sharing[team]) and not others:
                name, percent = flavor.instance_type, borrow_percent(sharing[team])
                evidence: Evidence = {"instanceType": name, "borrowLimit": percent}
                yield BORROW_LIMIT_UNUSABLE.about(team, evidence, team=team, instance_type=name)
                break


def _zero_weights(snapshot: Snapshot, quotas: Iterable[ComputeQuota]) -> Iterable[Finding]:
    """Report borrowers of weight 0 beside borrowers with a weight: they are served last, whatever they need."""
    config = snapshot.scheduler_config
    if config is None or config.scheduler_config.fair_share is Switch.DISABLED:
        return
    borrowers = [quota for quota in quotas if borrow_percent(sharing_of(quota.compute_quota_config))]
    weights = {_team(quota): quota.compute_quota_target.fair_share_weight or 0 for quota in borrowers}
    if any(weights.values()):
        for team in (team for team, weight in weights.items() if not weight):
            yield WEIGHT_ZERO.about(team, {"weight": 0, "highestWeight": max(weights.values())}, team=team)


def _above_allocatable(
    snapshot: Snapshot, quotas: Iterable[ComputeQuota], table: InstanceTypeTable
) -> Iterable[Finding]:
    """Report types whose quotas promise more vCPU or memory than their nodes offer to pods.

    Quotas count nominal numbers; the kubelet, one thread per core and tiered storage take their part. What is promised
    beyond is admitted and never runs.
    """
    offered: dict[str, Amounts] = {}
    for node in snapshot.nodes:
        total = offered.setdefault(node.instance_type, {CPU: 0, MEMORY: 0})
        for resource in total:
            total[resource] += node.allocatable.get(resource, 0)
    promised: dict[str, Amounts] = {}
    for quota in quotas:
        for flavor in flavor_quotas(quota.compute_quota_config, table):
            total = promised.setdefault(flavor.instance_type, {CPU: 0, MEMORY: 0})
            for resource in total:
                total[resource] += flavor.nominal.get(resource, 0)
    for instance_type, total in sorted(offered.items()):
        wanted = promised.get(instance_type, {})
        over = [resource for resource in total if 0 < total[resource] < wanted.get(resource, 0)]
        if over:
            yield _allocatable_finding(instance_type, over, wanted, total)


def _allocatable_finding(instance_type: str, over: list[str], wanted: Amounts, offered: Amounts) -> Finding:
    words = " and ".join(f"{_amount(r, wanted[r])} {_unit(r)} (nodes offer {_amount(r, offered[r])})" for r in over)
    percent = max(round(wanted[r] * 100 / offered[r]) for r in over)
    return NOMINAL_ABOVE_ALLOCATABLE.about(
        instance_type,
        {"instanceType": instance_type, "percent": percent},
        amounts=words,
        instance_type=instance_type,
        percent=percent,
    )


def _amount(resource: str, amount: int) -> str:
    scale = {CPU: 1000, MEMORY: GIBIBYTE}.get(resource, 1)
    return f"{amount / scale:.6g}"


def _unit(resource: str) -> str:
    return {CPU: "vCPU", MEMORY: "GiB"}.get(resource, resource)
