"""What is the cluster once some changes have been written? Quotas, cluster policy, queues, and the scheduler's work.

One answer for all callers: the plan's prediction plays its waves on it, what-if too, and the audit calls it for the
half of it that needs no scheduler (`after`, by `taskgov.allocation.written`). The scheduling model is imported when a
projection is made: most plans change nothing.

| step | what happens |
| --- | --- |
| `of` | the cluster as the snapshot has it; evicted workloads have left |
| `write` | writes take effect, all at once; no scheduling yet |
| `settle` | the queues come to rest |
| `snapshot` | what a snapshot would then hold, without the scheduling |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taskgov import scheduling
from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import DELETIONS, POLICY_KINDS
from taskgov.allocation.written import (
    NEVER_IN_FORCE,
    UNREADABLE,
    WrittenCluster,
    over,
    policy_in_force,
    quota_id_of,
    writes_whole_objects,
)
from taskgov.hyperpod.names import NAMESPACE_NAME_LABEL
from taskgov.kueue.render import manager_configuration, render
from taskgov.scheduling.reading import read_cluster_queue, read_flavor, read_local_queue
from taskgov.snapshot.manager import config_of
from taskgov.snapshot.unreadable import MACHINES
from taskgov.usage.quota_usage import team_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from taskgov.allocation.plan import Change, Plan
    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
    from taskgov.kueue.render import Manifest, RenderedObjects
    from taskgov.scheduling import Budget, FixedPoint, KueueModel
    from taskgov.snapshot.model import KubernetesObject, KueueObjects, Snapshot


class Projection:
    """The cluster as some changes leave it, step by step: quotas, cluster policy, queues, and the scheduler.

    `model` may be asked and copied; only `write` and `settle` change it.
    """

    __slots__ = ("_base", "_rendered", "_written", "model", "unread")

    def __init__(
        self,
        base: Snapshot,
        model: KueueModel,
        written: WrittenCluster,
        rendered: RenderedObjects,
        unread: tuple[str, ...] = (),
    ) -> None:
        """Take a model that was loaded from `base` with `rendered` over it, `unread` workloads aside; `of` does so."""
        self._base, self._rendered, self._written = base, rendered, written
        self.model, self.unread = model, unread

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        changes: Iterable[Change] = (),
        table: InstanceTypeTable | None = None,
        *,
        teams: Iterable[str] = (),
    ) -> Projection:
        """Return the cluster as the snapshot has it, after pending evictions.

        A queue that is not as its quota says (a failed update, an edit by hand) stays as it is until `write` writes the
        quota: that result is due to the write. Only the queues of `teams` are as rendered from today's
        quotas: what is supposed of them then differs in the numbers only. Quotas without a queue in the cluster are
        rendered, except what never was in force, and quotas on unknown types: no queue can be made of those,
        and where `changes` will touch them this raises. Raises `KeyError` or `ValueError` for objects that cannot be
        read.
        """
        table = table or snapshot.instance_types
        touched = {change.team for change in changes if change.kind not in POLICY_KINDS}
        model, rendered, unread = _loaded(snapshot, table, touched, frozenset(teams))
        finish_evictions(model, snapshot.taken_at)
        return cls(snapshot, model, WrittenCluster(snapshot, table), rendered, unread)

    @property
    def quotas(self) -> Mapping[str, ComputeQuota]:
        """All quotas as written so far, by id; one that was created is called `new-<team>`: it has no id yet."""
        return self._written.quotas

    @property
    def scheduler_config(self) -> SchedulerConfig | None:
        """The cluster policy that is in force; None where there is none, and work is served in the order it came."""
        return self._written.scheduler_config

    @property
    def queues(self) -> Mapping[str, KubernetesObject]:
        """The ClusterQueues that the scheduler has, by name, with the status that they have in the snapshot."""
        made = {queue["metadata"]["name"]: queue for queue in self._rendered.cluster_queues}
        known = over(self._base.kueue.cluster_queues, {**made, **self._written.made("ClusterQueue")})
        return {queue["metadata"]["name"]: queue for queue in known}

    @property
    def unread_objects(self) -> tuple[str, ...]:
        """The scheduler's objects beside workloads that cannot be read, with their kinds."""
        found = (item for item in self._base.unreadable_objects if item.kind not in {*MACHINES, "Workload"})
        return tuple(f"{item.kind} {item.shown}" for item in found)

    @property
    def puts_back(self) -> bool:
        """Whether a write also puts back what was changed by hand beside the numbers of a queue."""
        return self._written.puts_back

    def copy(self, *, puts_back: bool | None = None) -> Projection:
        """Return a projection of its own in the same state; its writes put back what `puts_back` says, if given."""
        written = self._written.copy()
        if puts_back is not None:
            written.puts_back = puts_back
        return Projection(self._base, self.model.copy(), written, self._rendered, self.unread)

    def may_put_back(self, changes: Iterable[Change]) -> bool:
        """Say whether it makes a difference to the scheduler that HyperPod may put back what was changed by hand."""
        if writes_whole_objects(self._base):
            return False
        all_changes, either = tuple(changes), []
        for puts_back in (False, True):
            written = self._written.copy()
            written.puts_back = puts_back
            either.append([_as_read(manifest) for manifest in written.write(all_changes)])
        return either[0] != either[1]

    def write(self, changes: Iterable[Change]) -> None:
        """Let changes take effect, all at once, as HyperPod has rendered them when they have settled.

        A switch of fair sharing restarts Kueue's manager, where the add-on configures it, or its configuration is not
        known. Errors as in `WrittenCluster.write`.
        """
        before = manager_configuration(self.scheduler_config).fair_sharing
        made = self._written.write(changes)
        fair = manager_configuration(self.scheduler_config).fair_sharing
        stays = self._base.manager.configuration is not None and writes_whole_objects(self._base)
        if fair not in {before, self.model.config.fair_sharing} and not stays:
            self.model = self.model.restarted(replace(self.model.config, fair_sharing=fair))
        for manifest in made:
            self.model.apply(manifest)

    def settle(self, budget: Budget) -> FixedPoint:
        """Let the queues come to rest at the moment of the snapshot; every head that is looked at takes a step."""
        return scheduling.settle(self.model, self._base.taken_at, budget=budget)

    def snapshot(self) -> Snapshot:
        """Return what a snapshot would hold once the writes have settled.

        Statuses of queues and of work are those of the first snapshot: the scheduler's doings are not in it.
        """
        return self._written.snapshot()


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot as it were if the plan had been written and had settled at the same moment.

    Raises `KeyError` or `ValueError` where the plan names what is not there, or a queue cannot be made.
    """
    cluster = WrittenCluster(snapshot)
    remembered = {record.compute_quota_id: record for record in snapshot.applied}
    for change in plan.changes:
        cluster.write((change,))
        if change.kind not in POLICY_KINDS | DELETIONS and change.target_after is not None:
            quota = cluster.quotas[quota_id_of(change, cluster.quotas)]
            remembered[quota.compute_quota_id] = remember(
                change,
                remembered.get(quota.compute_quota_id),
                quota_id=quota.compute_quota_id,
                version=quota.compute_quota_version,
                plan_id=plan.plan_id,
                now=snapshot.taken_at,
            )
    return replace(cluster.snapshot(), applied=tuple(remembered.values()))


def model_of(snapshot: Snapshot) -> KueueModel:
    """Return the scheduler as the snapshot has it; evicted workloads are still there. Errors as `Projection.of`."""
    return _loaded(snapshot, snapshot.instance_types)[0]


def _loaded(
    snapshot: Snapshot,
    table: InstanceTypeTable,
    touched: Collection[str] = frozenset(),
    anew: Collection[str] = frozenset(),
) -> tuple[KueueModel, RenderedObjects, tuple[str, ...]]:
    """Return the scheduler, the objects that were rendered for it, and the names of workloads that cannot be read."""
    config = policy_in_force(snapshot.scheduler_config)
    model = scheduling.KueueModel(config_of(snapshot.manager, config))
    rendered = render(_to_render(snapshot, table, touched, anew), config, table)
    model.load([*_scheduler_objects(snapshot.kueue), *rendered.namespaces, *rendered.priority_classes])
    odd = [item for item in snapshot.unreadable_objects if item.kind == "Workload"]
    unread = (*(item.shown for item in odd), *_not_applied(model, snapshot.kueue.workloads))
    # Applied after what is there: the rendered queue takes the place of the one it is made from.
    for manifest in (*rendered.resource_flavors, *rendered.cluster_queues, *rendered.local_queues):
        model.apply(manifest)
    return model, rendered, unread


def _scheduler_objects(kueue: KueueObjects) -> Iterator[Manifest]:
    """Give namespaces (as far as queues and workloads name them), then all but workloads, each saying what it is."""
    named = (_metadata(item).get("namespace") for item in (*kueue.local_queues, *kueue.workloads))
    for name in sorted({name for name in named if isinstance(name, str)}):
        yield {"kind": "Namespace", "metadata": {"name": name, "labels": {NAMESPACE_NAME_LABEL: name}}}
    kinds = {
        "LimitRange": kueue.limit_ranges,
        "RuntimeClass": kueue.runtime_classes,
        "ResourceFlavor": kueue.resource_flavors,
        "Cohort": kueue.cohorts,
        "ClusterQueue": kueue.cluster_queues,
        "LocalQueue": kueue.local_queues,
        "WorkloadPriorityClass": kueue.priority_classes,
    }
    for kind, items in kinds.items():
        # The items of a list as the API server sends it do not say what they are.
        yield from ({**item, "kind": kind} for item in items)


def _not_applied(model: KueueModel, workloads: Iterable[KubernetesObject]) -> Iterator[str]:
    """Apply the workloads, and give the names of those that cannot be read."""
    for number, workload in enumerate(workloads, 1):
        try:
            model.apply({**workload, "kind": "Workload"})
        except UNREADABLE:
            yield str(_metadata(workload).get("name") or f"number {number}")


def _metadata(item: object) -> Mapping[str, Any]:
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def _to_render(
    snapshot: Snapshot, table: InstanceTypeTable, touched: Collection[str], anew: Collection[str]
) -> Iterator[ComputeQuota]:
    """Give the quotas of `anew`, and those without a queue; of these only touched ones if their type is unknown."""
    seen = {team_of(queue) for queue in snapshot.kueue.cluster_queues}
    for quota in snapshot.quotas:
        team = quota.compute_quota_target.team_name
        missing = team not in seen and (team in touched or _is_known(quota, table))
        if (team in anew or missing) and quota.status not in NEVER_IN_FORCE:
            yield quota


def _is_known(quota: ComputeQuota, table: InstanceTypeTable) -> bool:
    return all(row.instance_type in table for row in quota.compute_quota_config.compute_quota_resources)


def _as_read(manifest: Manifest) -> object:
    """Return what the scheduler takes of a queue."""
    match manifest["kind"]:
        case "ClusterQueue":
            return read_cluster_queue(manifest)
        case "LocalQueue":
            return read_local_queue(manifest)
        case "ResourceFlavor":
            return read_flavor(manifest)
        case _:
            return manifest


def finish_evictions(model: KueueModel, now: datetime) -> None:
    """Finish the evictions of workloads that still hold quota: their pods are being deleted."""
    for key in model.told_to_leave():
        model.finish_eviction(key, now)
