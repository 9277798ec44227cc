"""Turn what is to be into writes: what each quota that differs is to hold, and the room that there is for it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.desired import Desired
from taskgov.allocation.low_write import low_config, queue_amounts
from taskgov.allocation.parts import accelerators_of, add, need, row_key
from taskgov.allocation.plan import DELETIONS, Change, ChangeKind, Prediction, Reason, TeamAllocation
from taskgov.allocation.scheduler import NEEDS_RETRY, scheduler_changes
from taskgov.allocation.standing import TeamPromise
from taskgov.allocation.waves import Amounts, Room, Wave, Write, Writes, arrange
from taskgov.allocation.wording import said_setting
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.equality import is_same_config, is_same_target
from taskgov.hyperpod.instance_types import InstanceResources
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, GIBIBYTE, MEMORY
from taskgov.snapshot.model import Snapshot

MAX_SENTENCES = 3
"""Rows that a change's sentence tells; the allocations of the plan tell all."""

Capacities = Mapping[str, TypeCapacity]


def writes(
    snapshot: Snapshot,
    desired: Iterable[Desired],
    capacities: Capacities,
    stuck: Iterable[ComputeQuota] = (),
    *,
    overcommit: bool = False,
) -> Writes:
    """Return what has to be written so that every quota is as desired, and the cluster policy too.

    What is `stuck` is deleted first. With `overcommit` promises on types without nodes are declared, and not bound.
    """
    failed, wanted = tuple(stuck), tuple(desired)
    names = {quota.name for quota in snapshot.quotas}
    made = [_write(_change(each, capacities, names), capacities) for each in wanted if _differs(each, capacities)]
    policy = list(scheduler_changes(snapshot))
    deleted = [change for change in policy if change.kind in DELETIONS]
    deleted += [_deletion(quota, capacities) for quota in failed]
    first: list[Wave] = [
        tuple(_write(change, capacities) for change in changes)
        for changes in (deleted, [change for change in policy if change.kind not in DELETIONS])
        if changes
    ]
    room = _room(snapshot, failed, capacities, overcommit=overcommit)
    for wave in first:
        room.after(wave)
    arranged = arrange(first, made, room, partial(_split, capacities=capacities))
    # What cannot be created again is not deleted either.
    lost = {change.team for change in arranged.left_out if change.kind is ChangeKind.CREATE_QUOTA}
    kept = [each for each in wanted if each.promise.failed is None or each.promise.team not in lost]
    if len(kept) == len(wanted):
        return arranged
    spared = {each.promise.failed.compute_quota_id for each in wanted if each.promise.failed and each not in kept}
    left = [quota for quota in failed if quota.compute_quota_id not in spared]
    again = writes(snapshot, kept, capacities, left, overcommit=overcommit)
    return replace(again, left_out=(*(c for c in arranged.left_out if c.team in lost), *again.left_out))


def in_order(waves: Iterable[Wave], prediction: Prediction) -> tuple[Change, ...]:
    """Return the changes of a path, numbered, each with its wave and whom that preempts."""
    lost: dict[int, list[str]] = {}
    for effect in prediction.effects:
        if effect.effect == "preempted":
            lost.setdefault(effect.wave, []).append(f"{effect.namespace}/{effect.name}")
    placed = [(number, write.change) for number, wave in enumerate(waves, 1) for write in wave]
    return tuple(
        replace(
            change,
            index=index,
            wave=number,
            preempts=tuple(lost.get(number, ())),
            because=change.because + _preempts(number, lost.get(number, ())),
        )
        for index, (number, change) in enumerate(placed)
    )


def _preempts(wave: int, workloads: Sequence[str]) -> str:
    if not workloads:
        return ""
    more = len(workloads) - MAX_SENTENCES
    return f"; wave {wave} preempts {', '.join(workloads[:MAX_SENTENCES])}" + (f" and {more} more" if more > 0 else "")


def _room(snapshot: Snapshot, failed: Iterable[ComputeQuota], capacities: Capacities, *, overcommit: bool) -> Room:
    """Return the room for raises; a quota whose creation failed takes none, and leaves none when it is deleted."""
    never = {quota.compute_quota_id for quota in failed if quota.status in NEVER_IN_FORCE}
    standing = [quota for quota in snapshot.quotas if quota.compute_quota_id not in never]
    sums = _flat(quota_sums(standing, capacities))
    total = _flat({name: capacity.total for name, capacity in capacities.items()})
    planned = (name for name, capacity in capacities.items() if overcommit and not capacity.has_nodes)
    return Room(sums, total, planned)


def _flat(by_type: Mapping[str, Mapping[str, int]]) -> Amounts:
    return {(name, resource): amount for name, vector in by_type.items() for resource, amount in vector.items()}


def _write(change: Change, capacities: Capacities) -> Write:
    """Return a change with what it does to the sums, and whether anything falls or rises, in sums or in its queue."""
    before = change.before if isinstance(change.before, ComputeQuotaConfig) else ComputeQuotaConfig()
    after = change.after if isinstance(change.after, ComputeQuotaConfig) else ComputeQuotaConfig()
    sums = _difference(*(_flat(_vectors(each.compute_quota_resources, capacities)) for each in (before, after)))
    queue = _difference(*(queue_amounts(each, _resources_of(capacities)) for each in (before, after)))
    moves = (*sums.values(), *queue.values())
    return Write(change, sums, any(move < 0 for move in moves), any(move > 0 for move in moves))


def _difference(before: Amounts, after: Amounts) -> Amounts:
    moves = {place: after.get(place, 0) - before.get(place, 0) for place in sorted({*before, *after})}
    return {place: move for place, move in moves.items() if move}


def _resources_of(capacities: Capacities) -> Callable[[str], InstanceResources | None]:
    return lambda name: capacities[name].resources


def _split(write: Write, capacities: Capacities) -> tuple[Write, Write] | None:
    """Return the two writes of a quota that gives and takes; None where parts of an unknown type would be split."""
    whole = write.change
    if not isinstance(whole.before, ComputeQuotaConfig) or not isinstance(whole.after, ComputeQuotaConfig):
        return None
    low = low_config(whole.before, whole.after, _resources_of(capacities))
    if low is None or is_same_config(low, whole.before):
        return None
    gpus = _gpus(low, capacities)
    first = replace(
        whole,
        after=low,
        target_after=whole.target_before,
        gpus_after=gpus,
        is_low=True,
        leased=None,
        demand=None,
        because=f"{whole.because}; first of two writes: what it gives",
    )
    second = replace(
        whole,
        before=low,
        target_version=None,
        gpus_before=gpus,
        because=f"{whole.because}; second of two writes: what it takes",
    )
    return _write(first, capacities), _write(second, capacities)


def _deletion(quota: ComputeQuota, capacities: Capacities) -> Change:
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
        gpus_before=0 if never_held else _gpus(quota.compute_quota_config, capacities),
        gpus_after=0,
        reason=Reason.RECOVERY,
        because=f"{why}; it is deleted, and created again once it is gone",
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


def _change(desired: Desired, capacities: Capacities, names: set[str]) -> Change:
    quota, promise = desired.promise.quota, desired.promise
    moved = sorted((line for line in desired.lines if line.reason is not Reason.UNCHANGED), key=_weight)
    return Change(
        index=0,
        kind=ChangeKind.CREATE_QUOTA if quota is None else ChangeKind.UPDATE_QUOTA,
        team=promise.team,
        resource_id=None if quota is None else quota.compute_quota_id,
        name=_new_name(promise, names) if quota is None else quota.name,
        target_version=None if quota is None else quota.compute_quota_version,
        before=None if quota is None else quota.compute_quota_config,
        after=desired.config,
        target_before=None if quota is None else quota.compute_quota_target,
        target_after=desired.target,
        gpus_before=_gpus(_before(desired), capacities),
        gpus_after=_gpus(desired.config, capacities),
        reason=_reason(desired, moved),
        because=_sentence(desired, moved),
        promise=promise.digest,
        adopted=promise.adopted,
        leased=desired.leased,
        demand=desired.demand,
    )


def _new_name(promise: TeamPromise, taken: set[str]) -> str:
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


def _sentence(desired: Desired, moved: Sequence[TeamAllocation]) -> str:
    team = f"{desired.promise.team} "
    sentences = [line.because.removeprefix(team) for line in moved[:MAX_SENTENCES]]
    if len(moved) > MAX_SENTENCES:
        sentences.append(f"and {len(moved) - MAX_SENTENCES} more instance types")
    told = [*sentences, *_settings(desired), *([desired.note] if desired.note else [])]
    return "; ".join(told) or "parts that the promise does not give go back to HyperPod's ratio"


def _reason(desired: Desired, moved: Sequence[TeamAllocation]) -> Reason:
    """Return the one dominant reason: of the largest number that moves, or of what else changes."""
    if moved:
        return moved[0].reason
    promise, quota = desired.promise, desired.promise.quota
    if promise.failed is not None or (quota is not None and quota.status == NEEDS_RETRY):
        return Reason.RECOVERY
    if promise.put_right:
        return Reason.HAND_EDIT_PUT_RIGHT
    return Reason.BUDGET if desired.borrowing_stopped else Reason.POLICY_CHANGED


def _settings(desired: Desired) -> Iterable[str]:
    """Say what changes beside the amounts."""
    quota, failed = desired.promise.quota, desired.promise.failed
    if failed is not None:
        yield f"created again, its status was {failed.status}"
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
