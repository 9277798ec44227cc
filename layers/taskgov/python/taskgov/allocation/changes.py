"""Turn what is to be into writes: one change for each quota that differs, in the order in which they are safe."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.desired import Desired
from taskgov.allocation.ordering import Step, in_safe_order
from taskgov.allocation.parts import accelerators_of, add, fits, need, row_key
from taskgov.allocation.plan import DELETIONS, Change, ChangeKind, Reason, TeamAllocation
from taskgov.allocation.scheduler import NEEDS_RETRY, scheduler_changes
from taskgov.allocation.standing import today_rows
from taskgov.allocation.wording import said_setting
from taskgov.hyperpod.equality import is_same_config, is_same_target
from taskgov.hyperpod.instance_types import InstanceResources
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, GIBIBYTE, MEMORY
from taskgov.snapshot.model import Snapshot

MAX_SENTENCES = 3
"""Rows that a change's sentence tells; the allocations of the plan tell all."""

Capacities = Mapping[str, TypeCapacity]


@dataclass(frozen=True, slots=True)
class Writes:
    """The changes in the order of writing; `unfinished` says that some give now and take in the next run."""

    changes: tuple[Change, ...]
    unfinished: bool = False


def writes(
    snapshot: Snapshot, desired: Iterable[Desired], capacities: Capacities, stuck: Iterable[ComputeQuota] = ()
) -> Writes:
    """Return what has to be written so that every quota is as desired, and the cluster policy too.

    What is `stuck` is deleted first; the plan after it, which is due soon, creates it again.
    """
    differing = {each.promise.team: each for each in desired if _differs(each, capacities)}
    order = in_safe_order(
        [_step(each, capacities) for each in differing.values()],
        quota_sums(snapshot.quotas, capacities),
        {name: capacity.total for name, capacity in capacities.items()},
    )
    names = {quota.name for quota in snapshot.quotas}
    made = [_change(differing[team], capacities, names, giving_only=team in order.giving_only) for team in order.keys]
    deleted = [_deletion(quota, capacities) for quota in stuck]
    changes = (*scheduler_changes(snapshot), *deleted, *made)
    again = any(change.kind in DELETIONS for change in changes)
    numbered = tuple(replace(change, index=index) for index, change in enumerate(changes))
    return Writes(numbered, unfinished=bool(order.giving_only) or again)


def _deletion(quota: ComputeQuota, capacities: Capacities) -> Change:
    """Return the deletion of a quota that failed. One whose creation failed never was in force: it takes nothing."""
    never_held = quota.status.startswith("Create")
    why = f"status {quota.status}: {quota.failure_reason or 'no reason given'}"
    return Change(
        index=0,
        kind=ChangeKind.DELETE_QUOTA,
        team=quota.compute_quota_target.team_name,
        resource_id=quota.compute_quota_id,
        name=quota.name,
        target_version=quota.compute_quota_version,
        before=quota.compute_quota_config,
        after=ComputeQuotaConfig(),
        target_before=quota.compute_quota_target,
        target_after=quota.compute_quota_target,
        gpus_before=0 if never_held else _gpus(quota.compute_quota_config, capacities),
        gpus_after=0,
        reason=Reason.RECOVERY,
        because=f"{why}; it is deleted now, and created again once it is gone",
    )


def quota_sums(quotas: Iterable[ComputeQuota], capacities: Capacities) -> dict[str, dict[str, int]]:
    """Return what all quotas take together, by instance type; what cannot be compared is left out."""
    by_type: dict[str, list[Mapping[str, int]]] = {}
    for quota in quotas:
        for name, vector in _vectors(quota.compute_quota_config.compute_quota_resources, capacities).items():
            by_type.setdefault(name, []).append(vector)
    return {name: add(vectors) for name, vectors in by_type.items()}


def _vectors(rows: Iterable[ComputeQuotaResource], capacities: Capacities) -> dict[str, Mapping[str, int]]:
    vectors: dict[str, Mapping[str, int]] = {}
    for row in rows:
        vector = need(row, capacities[row.instance_type].resources) or {}
        earlier = vectors.get(row.instance_type)
        vectors[row.instance_type] = vector if earlier is None else add((earlier, vector))
    return vectors


def _step(desired: Desired, capacities: Capacities) -> Step:
    after = _vectors(desired.config.compute_quota_resources, capacities)
    return Step(desired.promise.team, _vectors(_before(desired).compute_quota_resources, capacities), after)


def _gpus(config: ComputeQuotaConfig, capacities: Capacities) -> float:
    return accelerators_of(add(_vectors(config.compute_quota_resources, capacities).values()))


def _before(desired: Desired) -> ComputeQuotaConfig:
    quota = desired.promise.quota
    return ComputeQuotaConfig() if quota is None else quota.compute_quota_config


def _differs(desired: Desired, capacities: Capacities) -> bool:
    quota = desired.promise.quota
    if quota is None:
        return bool(desired.config.compute_quota_resources)
    same_target = is_same_target(quota.compute_quota_target, desired.target)
    return (
        not same_target
        or quota.status == NEEDS_RETRY
        or not is_same_config(_as_asked(quota.compute_quota_config, desired.config, capacities), desired.config)
    )


def _as_asked(actual: ComputeQuotaConfig, asked: ComputeQuotaConfig, capacities: Capacities) -> ComputeQuotaConfig:
    """Return today's config without the values that HyperPod filled in by ratio."""
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
    return getattr(asked, name) is None and given is not None and any(abs(given - each) < 0.01 for each in by_ratio)


def _change(desired: Desired, capacities: Capacities, names: set[str], *, giving_only: bool) -> Change:
    quota, promise = desired.promise.quota, desired.promise
    config = _giving(desired, capacities) if giving_only else desired.config
    moved = sorted((line for line in desired.lines if line.reason is not Reason.UNCHANGED), key=_weight)
    return Change(
        index=0,
        kind=ChangeKind.CREATE_QUOTA if quota is None else ChangeKind.UPDATE_QUOTA,
        team=promise.team,
        resource_id=None if quota is None else quota.compute_quota_id,
        name=_new_name(promise.team, names) if quota is None else quota.name,
        target_version=None if quota is None else quota.compute_quota_version,
        before=None if quota is None else quota.compute_quota_config,
        after=config,
        target_before=None if quota is None else quota.compute_quota_target,
        target_after=desired.target,
        gpus_before=_gpus(_before(desired), capacities),
        gpus_after=_gpus(config, capacities),
        reason=moved[0].reason if moved else _reason_of_settings(desired),
        because=_sentence(desired, moved, giving_only=giving_only),
        promise=promise.digest,
        adopted=promise.adopted,
    )


def _giving(desired: Desired, capacities: Capacities) -> ComputeQuotaConfig:
    """Return the desired config with every row that would grow left as it is today."""
    today = today_rows(desired.promise.quota)
    wanted = {row_key(row): row for row in desired.config.compute_quota_resources}
    rows = []
    for key in sorted({*today, *wanted}):
        resources = capacities[key[0]].resources
        before, after = today.get(key), wanted.get(key)
        if before is not None and after is not None:
            lower = fits(need(after, resources) or {}, need(before, resources) or {})
            rows.append(after if lower else before)
    return desired.config.model_copy(update={"compute_quota_resources": tuple(rows)})


def _new_name(team: str, taken: set[str]) -> str:
    """Return a name for a new quota: unique in the cluster, and within the API's 63 characters."""
    name, number = f"{team}-quota", 2
    while name in taken:
        name, number = f"{team}-quota-{number}", number + 1
    return name


def _weight(line: TeamAllocation) -> tuple[float, float, str]:
    return -abs(line.gpus_after - line.gpus_before), -abs(line.after - line.before), line.instance_type


def _sentence(desired: Desired, moved: Sequence[TeamAllocation], *, giving_only: bool) -> str:
    team = f"{desired.promise.team} "
    sentences = [line.because.removeprefix(team) for line in moved[:MAX_SENTENCES]]
    if len(moved) > MAX_SENTENCES:
        sentences.append(f"and {len(moved) - MAX_SENTENCES} more instance types")
    if giving_only:
        sentences.append("what it gains follows in the next run, when there is room")
    told = [*sentences, *_settings(desired)]
    return "; ".join(told) or "parts that the promise does not give go back to HyperPod's ratio"


def _reason_of_settings(desired: Desired) -> Reason:
    if desired.promise.put_right:
        return Reason.HAND_EDIT_PUT_RIGHT
    quota = desired.promise.quota
    if quota is not None and quota.status == NEEDS_RETRY:
        return Reason.RECOVERY
    return Reason.BUDGET if desired.borrowing_stopped else Reason.POLICY_CHANGED


def _settings(desired: Desired) -> Iterable[str]:
    """Say what changes beside the amounts."""
    quota = desired.promise.quota
    if quota is None:
        return
    if desired.borrowing_stopped:
        yield "the budget is used up: borrowing stops"
    if quota.status == NEEDS_RETRY:
        why = f" ({quota.failure_reason})" if quota.failure_reason else ""
        yield f"status {quota.status}{why}: the update is tried again"
    if not is_same_target(quota.compute_quota_target, desired.target):
        before, after = quota.compute_quota_target.fair_share_weight or 0, desired.target.fair_share_weight or 0
        yield f"fair-share weight {before} -> {after}"
    for name in ("resource_sharing_config", "preempt_team_tasks"):
        was, becomes = getattr(quota.compute_quota_config, name), getattr(desired.config, name)
        one, other = (ComputeQuotaConfig.model_validate({name: value}) for value in (was, becomes))
        if not is_same_config(one, other):
            yield f"{name.replace('_', ' ')} {said_setting(was)} -> {said_setting(becomes)}"
