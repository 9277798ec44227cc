"""The cluster after some changes have been written: quotas, cluster policy, queues, and the scheduler's work.

All callers share it: the plan's prediction and what-if simulate waves on it, and the audit uses the part that needs no
scheduler (`after`, by `taskgov.allocation.written`). The scheduling model is imported only when a projection is built,
because most plans change nothing.

| step | result |
| --- | --- |
| `of` | the cluster as in the snapshot, without evicted workloads |
| `write` | writes take effect, all at once; no scheduling yet |
| `settle` | the queues are simulated to a fixed point |
| `snapshot` | the resulting snapshot, without the scheduling |
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from taskgov import scheduling
from taskgov.allocation.applied_record import remember
from taskgov.allocation.loaded import Loaded, loaded_from
from taskgov.allocation.plan import DELETIONS, POLICY_KINDS
from taskgov.allocation.written import (
    WrittenCluster,
    over,
    quota_id_of,
    writes_whole_objects,
)
from taskgov.kueue.render import manager_configuration
from taskgov.scheduling.reading import read_cluster_queue, read_flavor, read_local_queue
from taskgov.snapshot.unreadable import MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.allocation.plan import Change, Plan
    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
    from taskgov.kueue.render import Manifest
    from taskgov.scheduling import Budget, FixedPoint, KueueModel
    from taskgov.snapshot.model import KubernetesObject, Snapshot


class Projection:
    """The cluster as some changes leave it, step by step: quotas, cluster policy, queues, and the scheduler.

    `model` may be asked and copied; only `write` and `settle` change it, and they take a copy where others have it too:
    projections of one snapshot begin with one model.
    """

    __slots__ = ("_base", "_is_as_loaded", "_is_shared", "_loaded", "_rendered", "_written", "model", "unread")

    def __init__(
        self, base: Snapshot, model: KueueModel, written: WrittenCluster, loaded: Loaded, *, is_as_loaded: bool = True
    ) -> None:
        """Take a model that others have too, and that was made of `base` as it was `loaded`; `of` does so."""
        self._base, self._loaded, self._written = base, loaded, written
        self._is_shared, self._is_as_loaded = True, is_as_loaded
        self.model, self.unread = model, loaded.unread

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
        rendered, except what was never in force, and quotas on unknown types: those cannot be rendered,
        and where `changes` will touch them this raises. Raises `KeyError` or `ValueError` for objects that cannot be
        read.
        """
        table = table or snapshot.instance_types
        touched = {change.team for change in changes if change.kind not in POLICY_KINDS}
        loaded = loaded_from(snapshot, table, touched, frozenset(teams))
        return cls(snapshot, loaded.after_evictions(), WrittenCluster(snapshot, table), loaded)

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
        made = {queue["metadata"]["name"]: queue for queue in self._loaded.rendered.cluster_queues}
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
        self._is_shared = True
        return Projection(self._base, self.model, written, self._loaded, is_as_loaded=self._is_as_loaded)

    def may_put_back(self, changes: Iterable[Change]) -> bool:
        """Return whether it makes a difference to the scheduler that HyperPod may put back what was changed by hand."""
        if writes_whole_objects(self._base):
            return False
        all_changes, either = tuple(changes), []
        for puts_back in (False, True):
            written = self._written.copy()
            written.puts_back = puts_back
            either.append(written.write(all_changes))
        stays, put_back = either
        return stays != put_back and list(map(_as_read, stays)) != list(map(_as_read, put_back))

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
            self._is_shared = self._is_as_loaded = False
        if made:
            self._take_own()
        for manifest in made:
            self.model.apply(manifest)

    def settle(self, budget: Budget) -> FixedPoint:
        """Let the queues come to rest at the moment of the snapshot; every head that is considered takes a step.

        A cluster to which nothing was written comes to the same rest for each question: it is played once.
        """
        if not self._is_as_loaded:
            return self._settle(budget)
        steps, rests = budget.left, self._loaded.rests
        if steps not in rests:
            rest = self._settle(budget)
            rests[steps] = self.model, rest, budget.left
        else:
            self.model, rest, left = rests[steps]
            budget.take(steps - left)
        self._is_shared, self._is_as_loaded = True, False
        return rest

    def _settle(self, budget: Budget) -> FixedPoint:
        self._take_own()
        return scheduling.settle(self.model, self._base.taken_at, budget=budget)

    def _take_own(self) -> None:
        """Replace the shared model by a copy of its own."""
        if self._is_shared:
            self.model = self.model.copy()
        self._is_shared = self._is_as_loaded = False

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
    return loaded_from(snapshot, snapshot.instance_types).model.copy()


def _as_read(manifest: Manifest) -> object:
    """Return the fields of a queue that the scheduler uses."""
    match manifest["kind"]:
        case "ClusterQueue":
            return read_cluster_queue(manifest)
        case "LocalQueue":
            return read_local_queue(manifest)
        case "ResourceFlavor":
            return read_flavor(manifest)
        case _:
            return manifest
