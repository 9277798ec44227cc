"""Predict what the scheduler would do because of a plan: which workloads start, are preempted, or wait longer.

Two copies of the cluster's queues are let run until nothing changes any more: one as it is, one with the plan's quotas.
What differs between the two is the plan's doing; what would have happened anyway is not. Both copies have the queues of
the changed teams as the rendering makes them, so that only the numbers differ. The model is imported when there is
something to predict: most plans change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from taskgov import scheduling
from taskgov.allocation.plan import Change, ChangeKind, Prediction, WorkloadEffect
from taskgov.allocation.written import quota_after
from taskgov.hyperpod.instance_types import InstanceTypeTable, mig_slices
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, SchedulerConfig
from taskgov.hyperpod.names import team_of_cluster_queue, team_of_namespace
from taskgov.kueue.render import manager_configuration, render
from taskgov.quantities import is_accelerator, is_mig
from taskgov.snapshot.scheduler_objects import scheduler_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov.scheduling import Admission, Preempted, Settlement, World
    from taskgov.snapshot.model import Snapshot

MAX_CYCLES: Final = 5000
"""Cycles after which a simulation is given up: it then predicts nothing."""


def predict(snapshot: Snapshot, changes: Sequence[Change], table: InstanceTypeTable) -> Prediction:
    """Return what the changes would do to the snapshot's workloads.

    `simulated` is False, with the reason, when the scheduler's objects cannot be understood; guardrails that need the
    prediction then say no.
    """
    if not changes or not snapshot.kueue.workloads:
        return Prediction(simulated=True)
    try:
        without, with_plan = _two_worlds(snapshot, changes, table)
    except (KeyError, ValueError) as error:
        return Prediction(simulated=False, not_modelled=(f"the scheduler's objects cannot be read: {error}",))
    running = {key: held for key in without.workloads() if (held := without.admission(key)) is not None}
    calm, changed = (world.settle(snapshot.taken_at, max_cycles=MAX_CYCLES) for world in (without, with_plan))
    if not calm.settled or not changed.settled:
        return Prediction(simulated=False, not_modelled=(_restless(changed if calm.settled else calm),))
    effects = tuple(_effects(_Outcome.of(without, calm), _Outcome.of(with_plan, changed), running))
    preempted = sum(effect.gpus for effect in effects if effect.effect == "preempted")
    return Prediction(simulated=True, effects=effects, preempted_gpus=preempted)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A world that has come to rest, and who was preempted on the way, by whom."""

    world: World
    preempted: Mapping[str, Preempted]

    @classmethod
    def of(cls, world: World, settlement: Settlement) -> Self:
        return cls(world, {preempted.workload: preempted for preempted in settlement.preempted})


def _two_worlds(snapshot: Snapshot, changes: Sequence[Change], table: InstanceTypeTable) -> tuple[World, World]:
    before = snapshot.scheduler_config.scheduler_config if snapshot.scheduler_config else None
    after = next((change.after for change in changes if isinstance(change.after, SchedulerConfig)), before)
    # A quota whose creation failed never was in force: to delete it changes nothing for anybody.
    changed = [
        change
        for change in changes
        if isinstance(change.after, ComputeQuotaConfig)
        and (change.kind is not ChangeKind.DELETE_QUOTA or change.gpus_before)
    ]
    quotas = {quota.compute_quota_id: quota for quota in snapshot.quotas}
    old = [quotas[change.resource_id] for change in changed if change.resource_id]
    new = [quota_after(change, quotas) for change in changed]
    return _world(snapshot, old, before, table), _world(snapshot, new, after, table)


def _world(
    snapshot: Snapshot, quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig | None, table: InstanceTypeTable
) -> World:
    """Return a copy of the cluster's scheduler in which `quotas` are as rendered."""
    world = scheduling.World(scheduling.ManagerConfig(fair_sharing=manager_configuration(scheduler).fair_sharing))
    rendered = render(quotas, scheduler, table)
    world.load([*scheduler_objects(snapshot.kueue), *rendered.namespaces])
    # Applied after what is there: the rendered queue takes the place of the one it is made from.
    for manifest in (*rendered.resource_flavors, *rendered.cluster_queues, *rendered.local_queues):
        world.apply(manifest)
    return world


def _restless(settlement: Settlement) -> str:
    if settlement.loop:
        return f"workloads would preempt one another for ever: {', '.join(sorted(settlement.loop))}"
    return f"the queues did not settle within {MAX_CYCLES} cycles"


def _effects(calm: _Outcome, changed: _Outcome, running: Mapping[str, Admission]) -> Iterable[WorkloadEffect]:
    for key in sorted(calm.world.workloads()):
        before, after = calm.world.admission(key), changed.world.admission(key)
        loss = changed.preempted.get(key)
        if key in running and loss is not None and key not in calm.preempted:
            because = f"{loss.reason}, by {loss.preemptor}" + (", and starts again" if after else "")
            yield _effect(key, "preempted", running[key], because)
        elif before is None and after is not None:
            yield _effect(key, "starts", after, f"there is quota for it in {after.cluster_queue}")
        elif before is not None and after is None:
            yield _effect(key, "waits", before, f"it would have had quota in {before.cluster_queue}")


def _effect(key: str, effect: str, held: Admission, because: str) -> WorkloadEffect:
    namespace, _, name = key.rpartition("/")
    team = team_of_cluster_queue(held.cluster_queue) or team_of_namespace(namespace) or held.cluster_queue
    return WorkloadEffect(namespace, name, team, effect, _gpus(held), because)


def _gpus(held: Admission) -> int:
    """Return the accelerators a workload holds; partitions of a GPU count by their sevenths, rounded up."""
    sevenths = 0
    for pod_set in held.pod_sets:
        for resource, amount in pod_set.usage.items():
            if is_accelerator(resource):
                whole = mig_slices(resource.removeprefix("nvidia.com/")) if is_mig(resource) else 7
                sevenths += amount * whole
    return -(-sevenths // 7)
