"""Which findings would the plan remedy? Those that are gone when the cluster is judged again as the plan leaves it.

Called for the report. Quotas, cluster policy and their queues are as the plan writes them; nodes and work are as they
are: what would become of work is the plan's own prediction, and no finding is said to be remedied by it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from taskgov.allocation.applied import remember
from taskgov.allocation.plan import Change, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.written import quotas_after
from taskgov.audit.findings import audit
from taskgov.findings import Finding
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.kueue.render import render
from taskgov.snapshot.model import KubernetesObject, Snapshot


@dataclass(frozen=True, slots=True)
class Remedied:
    """A finding that the plan would remedy, and the changes of the plan that are about its subject (else all)."""

    code: str
    subject: str
    plan_id: str
    changes: tuple[int, ...]
    """Places in the plan, from 1."""
    identity: str = ""
    """The finding's: a team may have one of this code on each of several instance types."""


class NotSupposedError(Exception):
    """A plan names what the snapshot does not have, or a queue of it cannot be made; the message says which."""


def remedied(snapshot: Snapshot, plan: Plan, findings: Iterable[Finding]) -> tuple[Remedied, ...]:
    """Return the findings that the plan would remedy, in the order in which they were given.

    Raises NotSupposedError when the cluster as the plan leaves it cannot be put together: nothing is claimed then.
    """
    if not plan.changes:
        return ()
    try:
        supposed = after_plan(snapshot, plan)
    except (KeyError, ValueError) as error:
        raise NotSupposedError(f"{type(error).__name__}: {error}") from error
    left = {each.identity for each in audit(supposed, plan_quotas(supposed, mode="plan"))}
    return tuple(
        Remedied(each.code, each.subject, plan.plan_id, _about(each, plan.changes), each.identity)
        for each in findings
        if each.identity not in left
    )


def after_plan(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot as it were if the plan had been written and had settled at the same moment."""
    written, scheduler = quotas_after(snapshot.quotas, plan.changes)
    changed = {change.name: change for change in plan.changes if not isinstance(change.after, SchedulerConfig)}
    quotas = tuple(_settled(quota) if quota.name in changed else quota for quota in written)
    remembered = {each.compute_quota_id: each for each in snapshot.applied}
    for quota in quotas:
        if quota.name in changed and changed[quota.name].target_after is not None:
            remembered[quota.compute_quota_id] = remember(
                changed[quota.name],
                remembered.get(quota.compute_quota_id),
                quota_id=quota.compute_quota_id,
                version=quota.compute_quota_version,
                plan_id=plan.plan_id,
                now=snapshot.taken_at,
            )
    config = snapshot.scheduler_config
    if config is not None and scheduler is not None:
        config = config.model_copy(update={"scheduler_config": scheduler, "status": "Updated"})
    queues = _queues(snapshot, [quota for quota in quotas if quota.name in changed], scheduler)
    return replace(
        snapshot,
        quotas=quotas,
        applied=tuple(remembered.values()),
        scheduler_config=config,
        kueue=replace(snapshot.kueue, cluster_queues=queues),
    )


def _settled(quota: ComputeQuota) -> ComputeQuota:
    return quota.model_copy(
        update={"compute_quota_version": quota.compute_quota_version + 1, "status": "Updated", "failure_reason": None}
    )


def _queues(
    snapshot: Snapshot, quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig | None
) -> tuple[KubernetesObject, ...]:
    """Return the cluster's queues; those of changed quotas have the spec of the rendering and keep their status."""
    table = snapshot.policy.instance_type_table() if snapshot.policy else InstanceTypeTable()
    made: Mapping[str, KubernetesObject] = {
        each["metadata"]["name"]: each for each in render(quotas, scheduler, table).cluster_queues
    }
    return tuple(
        {**queue, "spec": made[name]["spec"]} if (name := queue["metadata"]["name"]) in made else queue
        for queue in snapshot.kueue.cluster_queues
    )


def _about(finding: Finding, changes: Iterable[Change]) -> tuple[int, ...]:
    own = tuple(change.index + 1 for change in changes if finding.subject in {change.team, change.name})
    return own or tuple(change.index + 1 for change in changes)
