"""The writes that bring every quota to its allocation, and the room for them on the way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from taskgov.allocation.allocations import Allocation
from taskgov.allocation.changes import (
    MAX_SENTENCES,
    Capacities,
    change_of,
    deletion_of,
    differs,
    gpus_of,
    quota_sums,
    vectors_of,
)
from taskgov.allocation.drift import beside, drifts_of
from taskgov.allocation.low_write import ResourcesOf, low_config, queue_amounts
from taskgov.allocation.plan import DELETIONS, Change, ChangeKind, Prediction, WorkloadEffect
from taskgov.allocation.scheduler import scheduler_changes
from taskgov.allocation.waves import Amounts, Place, Room, Wave, Write, Writes, arrange
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.equality import is_same_config
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig
from taskgov.snapshot.model import Snapshot


def writes(
    snapshot: Snapshot,
    allocations: Iterable[Allocation],
    capacities: Capacities,
    stuck: Iterable[ComputeQuota] = (),
    *,
    overcommit: bool = False,
) -> Writes:
    """Return the writes that bring every quota to its allocation, and those of the cluster policy.

    Quotas in `stuck` are deleted first. With `overcommit`, promises on types without nodes have no bound.
    """
    failed, wanted = tuple(stuck), tuple(allocations)
    names = {quota.name for quota in snapshot.quotas}
    changed = [allocation for allocation in wanted if differs(allocation, capacities)]
    held = (allocation.promise.quota for allocation in changed)
    written = {quota.compute_quota_id for quota in (*failed, *held) if quota}
    # A queue that nobody writes stays as it is: no order of the writes makes room for it.
    drifts = drifts_of(snapshot, _resources_of(capacities))
    sums = _Sums(capacities, {key: drift for key, drift in drifts.items() if key in written})
    made = [sums.write(change_of(allocation, capacities, names)) for allocation in changed]
    policy = list(scheduler_changes(snapshot))
    deleted = [change for change in policy if change.kind in DELETIONS]
    deleted += [deletion_of(quota, capacities) for quota in failed]
    first: list[Wave] = [
        tuple(map(sums.write, changes))
        for changes in (deleted, [change for change in policy if change.kind not in DELETIONS])
        if changes
    ]
    room = sums.room(snapshot, failed, overcommit=overcommit)
    for wave in first:
        room.after(wave)
    arranged = arrange(first, made, room, sums.split)
    # What cannot be created again is not deleted either.
    lost = {change.team for change in arranged.left_out if change.kind is ChangeKind.CREATE_QUOTA}
    promises = (allocation.promise for allocation in wanted)
    spared = {promise.team: promise.failed for promise in promises if promise.failed and promise.team in lost}
    if not spared:
        return arranged
    kept = [allocation for allocation in wanted if allocation.promise.team not in spared]
    ids = {quota.compute_quota_id for quota in spared.values()}
    left = [quota for quota in failed if quota.compute_quota_id not in ids]
    again = writes(snapshot, kept, capacities, left, overcommit=overcommit)
    return replace(again, left_out=(*(c for c in arranged.left_out if c.team in lost), *again.left_out))


def in_order(waves: Iterable[Wave], prediction: Prediction) -> tuple[Change, ...]:
    """Return the changes of a path, numbered, each with its wave and whom that preempts."""
    lost: dict[int, list[WorkloadEffect]] = {}
    for effect in prediction.effects:
        if effect.effect == "preempted":
            lost.setdefault(effect.wave, []).append(effect)
    by_name = (sorted(wave, key=lambda write: (write.name, write.key)) for wave in waves)
    placed = [(number, write.change) for number, wave in enumerate(by_name, 1) for write in wave]
    return tuple(
        replace(
            change,
            index=index,
            wave=number,
            preempts=tuple(f"{effect.namespace}/{effect.name}" for effect in lost.get(number, ())),
            because=change.because + _preempts(number, lost.get(number, ())),
        )
        for index, (number, change) in enumerate(placed)
    )


def _preempts(wave: int, lost: Sequence[WorkloadEffect]) -> str:
    if not lost:
        return ""
    more = len(lost) - MAX_SENTENCES
    tasks = ", ".join(effect.task or effect.name for effect in lost[:MAX_SENTENCES])
    return f"; wave {wave} preempts {tasks}" + (f" and {more} more" if more > 0 else "")


class _Sums:
    """The sums that writes move: of the quotas, and of their queues on the types where those hold something else."""

    def __init__(self, capacities: Capacities, drifts: Mapping[str, Amounts]) -> None:
        self._capacities, self._drifts = capacities, drifts
        self._types = frozenset(name for drift in drifts.values() for name, _ in drift if name in capacities)

    def room(self, snapshot: Snapshot, failed: Iterable[ComputeQuota], *, overcommit: bool) -> Room:
        """Return the room for raises; a quota whose creation failed takes none, and leaves none when it is deleted."""
        never = {quota.compute_quota_id for quota in failed if quota.status in NEVER_IN_FORCE}
        standing = [quota for quota in snapshot.quotas if quota.compute_quota_id not in never]
        drift = _sum(self._drifts.values())
        quotas = _flat(quota_sums(standing, self._capacities))
        total = _flat({name: capacity.total for name, capacity in self._capacities.items()})
        sums, bound = beside(quotas, drift, self._types), beside(_greater(quotas, total), {}, self._types)
        planned = (name for name, capacity in self._capacities.items() if overcommit and not capacity.has_nodes)
        return Room(sums, bound, planned)

    def write(self, change: Change) -> Write:
        """Return a change with what it does to the sums, and whether anything falls or rises, in sums or in its queue.

        The first write of a quota also brings its queue from what it holds.
        """
        before, after = (
            config if isinstance(config, ComputeQuotaConfig) else ComputeQuotaConfig()
            for config in (change.before, change.after)
        )
        is_first = change.target_version is not None
        drift = self._drifts.get(change.resource_id or "", {}) if is_first else {}
        quotas = (_flat(vectors_of(config.compute_quota_resources, self._capacities)) for config in (before, after))
        sums = beside(_difference(*quotas), drift, self._types, -1)
        stood, stands = (queue_amounts(config, _resources_of(self._capacities)) for config in (before, after))
        moves = (*sums.values(), *_difference(stood, stands).values())
        moves += tuple(_difference(_sum((stood, drift)), stands).values()) if drift else ()
        return Write(change, sums, any(move < 0 for move in moves), any(move > 0 for move in moves))

    def split(self, write: Write) -> tuple[Write, Write] | None:
        """Return the two writes of a quota that gives and takes; None where it cannot be written so.

        Parts of an unknown type cannot be split, and a low write has to give, and to take nothing.
        """
        whole = write.change
        if not isinstance(whole.before, ComputeQuotaConfig) or not isinstance(whole.after, ComputeQuotaConfig):
            return None
        low = low_config(whole.before, whole.after, _resources_of(self._capacities))
        if low is None or is_same_config(low, whole.before) or is_same_config(low, whole.after):
            return None
        gpus = gpus_of(low, self._capacities)
        first = replace(
            whole,
            after=low,
            target_after=whole.target_before,
            gpus_after=gpus,
            is_low=True,
            leased=None,
            because=f"{whole.because}; first of two writes: what it gives",
        )
        second = replace(
            whole,
            before=low,
            target_version=None,
            gpus_before=gpus,
            because=f"{whole.because}; second of two writes: what it takes",
        )
        gives = self.write(first)
        return None if any(amount > 0 for amount in gives.delta.values()) else (gives, self.write(second))


def _flat(by_type: Mapping[str, Mapping[str, int]]) -> Amounts:
    return {(name, resource): amount for name, vector in by_type.items() for resource, amount in vector.items()}


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: dict[Place, int] = {}
    for part in parts:
        for place, amount in part.items():
            total[place] = total.get(place, 0) + amount
    return total


def _greater(left: Amounts, right: Amounts) -> Amounts:
    return {place: max(left.get(place, 0), right.get(place, 0)) for place in {*left, *right}}


def _difference(before: Amounts, after: Amounts) -> Amounts:
    moves = {place: after.get(place, 0) - before.get(place, 0) for place in sorted({*before, *after})}
    return {place: move for place, move in moves.items() if move}


def _resources_of(capacities: Capacities) -> ResourcesOf:
    return lambda name: capacities[name].resources if name in capacities else None
