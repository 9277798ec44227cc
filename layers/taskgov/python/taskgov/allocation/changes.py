"""Build one change for each quota that differs: its new value, the reason, and the version that it starts from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from taskgov.allocation.allocations import Allocation
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import accelerators_of, add, need, row_key
from taskgov.allocation.plan import Change, ChangeKind, Reason, TeamAllocation
from taskgov.allocation.promises import Promise
from taskgov.allocation.scheduler import NEEDS_RETRY
from taskgov.allocation.wording import said_setting
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.equality import is_same_config, is_same_target
from taskgov.hyperpod.instance_types import InstanceResources
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, GIBIBYTE, MEMORY
from taskgov.snapshot.records import began_from

MAX_SENTENCES = 3
"""Rows that a change's sentence names; the allocations of the plan have all."""
_BORROWING: Final[Mapping[str, str]] = {
    "stops": "the budget is used up: borrowing stops",
    "resumes": "within its budget the team borrows again",
}

Capacities = Mapping[str, TypeCapacity]


def change_of(allocation: Allocation, capacities: Capacities, names: set[str]) -> Change:
    """Return the whole change of one quota, before it is split into two writes or placed in a wave.

    `names` are those that quotas of the cluster have; the name of a new quota is added to them.
    """
    quota, promise = allocation.promise.quota, allocation.promise
    moved = sorted((line for line in allocation.lines if line.reason is not Reason.UNCHANGED), key=_weight)
    return Change(
        index=0,
        kind=ChangeKind.CREATE_QUOTA if quota is None else ChangeKind.UPDATE_QUOTA,
        team=promise.team,
        resource_id=None if quota is None else quota.compute_quota_id,
        name=_new_name(promise, names) if quota is None else quota.name,
        target_version=None if quota is None else quota.compute_quota_version,
        before=None if quota is None else quota.compute_quota_config,
        after=allocation.config,
        target_before=None if quota is None else quota.compute_quota_target,
        target_after=allocation.target,
        gpus_before=gpus_of(_before(allocation), capacities),
        gpus_after=gpus_of(allocation.config, capacities),
        reason=_reason(allocation, moved),
        because=_sentence(allocation, moved),
        promise=promise.digest,
        adopted=promise.adopted,
        began_from=began_from(promise.applied, None if quota is None else quota.compute_quota_version),
        leased=allocation.leased,
        demand=allocation.demand,
        sharing_within_budget=allocation.within_budget,
        wanted=allocation.wanted,
    )


def deletion_of(quota: ComputeQuota, capacities: Capacities) -> Change:
    """Return the deletion of a quota that failed. One whose creation failed never was in force: it takes nothing."""
    never_held = quota.status in NEVER_IN_FORCE
    why = f"status {quota.status}: {quota.failure_reason or 'no reason given'}"
    return Change(
        index=0,
        kind=ChangeKind.DELETE_QUOTA,
        team=quota.compute_quota_target.team_name,
        resource_id=quota.compute_quota_id,
        name=quota.name,
        target_version=quota.compute_quota_version,
        before=None if never_held else quota.compute_quota_config,
        after=ComputeQuotaConfig(),
        target_before=quota.compute_quota_target,
        target_after=quota.compute_quota_target,
        gpus_before=0 if never_held else gpus_of(quota.compute_quota_config, capacities),
        gpus_after=0,
        reason=Reason.RECOVERY,
        because=f"{why}; it is deleted, and created again once it is gone",
    )


def differs(allocation: Allocation, capacities: Capacities) -> bool:
    """Return whether a quota must be written. Values that HyperPod completed by ratio do not count as a difference."""
    quota = allocation.promise.quota
    if quota is None:
        return bool(allocation.config.compute_quota_resources)
    same_target = is_same_target(quota.compute_quota_target, allocation.target)
    return (
        not same_target
        or quota.status == NEEDS_RETRY
        or not is_same_config(_as_asked(quota.compute_quota_config, allocation.config, capacities), allocation.config)
    )


def quota_sums(quotas: Iterable[ComputeQuota], capacities: Capacities) -> dict[str, dict[str, int]]:
    """Return the sum of all quotas, by instance type, without those that cannot be compared."""
    by_type: dict[str, list[Mapping[str, int]]] = {}
    for quota in quotas:
        for name, vector in vectors_of(quota.compute_quota_config.compute_quota_resources, capacities).items():
            by_type.setdefault(name, []).append(vector)
    return {name: add(vectors) for name, vectors in by_type.items()}


def vectors_of(rows: Iterable[ComputeQuotaResource], capacities: Capacities) -> dict[str, Mapping[str, int]]:
    """Return what rows take, by instance type, in the units of `taskgov.allocation.parts`."""
    vectors: dict[str, Mapping[str, int]] = {}
    for row in rows:
        vector = need(row, capacities[row.instance_type].resources) or {}
        earlier = vectors.get(row.instance_type)
        vectors[row.instance_type] = vector if earlier is None else add((earlier, vector))
    return vectors


def gpus_of(config: ComputeQuotaConfig, capacities: Capacities) -> float:
    """Return the accelerators that a quota takes, over all types; partitions in sevenths of a GPU."""
    return accelerators_of(add(vectors_of(config.compute_quota_resources, capacities).values()))


def _before(allocation: Allocation) -> ComputeQuotaConfig:
    quota = allocation.promise.quota
    return ComputeQuotaConfig() if quota is None else quota.compute_quota_config


def _as_asked(actual: ComputeQuotaConfig, asked: ComputeQuotaConfig, capacities: Capacities) -> ComputeQuotaConfig:
    """Return the present config without the values that HyperPod completed by ratio."""
    wanted = {row_key(row): row for row in asked.compute_quota_resources}
    rows = tuple(
        _unfilled(row, wanted.get(row_key(row)), capacities[row.instance_type].resources)
        for row in actual.compute_quota_resources
    )
    return actual.model_copy(update={"compute_quota_resources": rows})


def _unfilled(
    actual: ComputeQuotaResource, asked: ComputeQuotaResource | None, resources: InstanceResources | None
) -> ComputeQuotaResource:
    if asked is None or resources is None or actual == asked:
        return actual
    filled = complete(asked, resources)
    vcpu = filled[CPU] / 1000
    by_ratio: dict[str, tuple[float, ...]] = {
        "accelerators": (filled[resources.accelerator_resource],),
        # With one thread per core: which of the two HyperPod would fill in is not documented.
        "vcpu": (vcpu, vcpu * resources.real_vcpu / resources.vcpu),
        "memory_in_gib": (filled[MEMORY] / GIBIBYTE,),
    }
    unasked = {name: None for name, values in by_ratio.items() if _is_filled(actual, asked, name, values)}
    return actual.model_copy(update=unasked)


def _is_filled(
    actual: ComputeQuotaResource, asked: ComputeQuotaResource, name: str, by_ratio: tuple[float, ...]
) -> bool:
    given = getattr(actual, name)
    return getattr(asked, name) is None and given is not None and any(abs(given - value) < 0.01 for value in by_ratio)


def _new_name(promise: Promise, taken: set[str]) -> str:
    """Return a name for a new quota, unique in the cluster and within the API's 63 characters: that of a failed one."""
    if promise.failed is not None:
        return promise.failed.name
    team = promise.team
    name, number = f"{team}-quota", 2
    while name in taken:
        name, number = f"{team}-quota-{number}", number + 1
    taken.add(name)
    return name


def _weight(line: TeamAllocation) -> tuple[float, float, str]:
    return -abs(line.gpus_after - line.gpus_before), -abs(line.after - line.before), line.instance_type


def _sentence(allocation: Allocation, moved: Sequence[TeamAllocation]) -> str:
    team = f"{allocation.promise.team} "
    sentences = [line.because.removeprefix(team) for line in moved[:MAX_SENTENCES]]
    if len(moved) > MAX_SENTENCES:
        sentences.append(f"and {len(moved) - MAX_SENTENCES} more instance types")
    told = [*sentences, *_settings(allocation), *([allocation.note] if allocation.note else [])]
    return "; ".join(told) or "parts that the document does not state return to HyperPod's ratio"


def _reason(allocation: Allocation, moved: Sequence[TeamAllocation]) -> Reason:
    """Return the dominant reason: that of the largest number that moves, or of any other change."""
    if moved:
        return moved[0].reason
    promise, quota = allocation.promise, allocation.promise.quota
    if promise.failed is not None or (quota is not None and quota.status == NEEDS_RETRY):
        return Reason.RECOVERY
    if promise.put_right:
        return Reason.HAND_EDIT_PUT_RIGHT
    return Reason.BUDGET if allocation.borrowing in _BORROWING else Reason.POLICY_CHANGED


def _settings(allocation: Allocation) -> Iterable[str]:
    """Describe the changes of settings."""
    quota, failed = allocation.promise.quota, allocation.promise.failed
    if failed is not None:
        yield f"created again, its status was {failed.status}"
    if quota is None:
        return
    if allocation.borrowing in _BORROWING:
        yield _BORROWING[allocation.borrowing]
    if quota.status == NEEDS_RETRY:
        why = f" ({quota.failure_reason})" if quota.failure_reason else ""
        yield f"status {quota.status}{why}: the update is retried"
    if not is_same_target(quota.compute_quota_target, allocation.target):
        before, after = quota.compute_quota_target.fair_share_weight or 0, allocation.target.fair_share_weight or 0
        yield f"fair-share weight {before} -> {after}"
    for name in ("resource_sharing_config", "preempt_team_tasks"):
        was, becomes = getattr(quota.compute_quota_config, name), getattr(allocation.config, name)
        had, has = (ComputeQuotaConfig.model_validate({name: value}) for value in (was, becomes))
        if not is_same_config(had, has):
            yield f"{name.replace('_', ' ')} {said_setting(was)} -> {said_setting(becomes)}"
