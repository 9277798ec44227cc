"""The scheduling model of a snapshot, loaded once and shared.

A plan, its prediction, the audit's search for loops and what-if all start from the same cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from taskgov import scheduling
from taskgov.allocation.written import NEVER_IN_FORCE, UNREADABLE, policy_in_force
from taskgov.hyperpod.names import NAMESPACE_NAME_LABEL
from taskgov.kueue.render import render
from taskgov.snapshot.derived import once
from taskgov.snapshot.manager import config_of
from taskgov.snapshot.readable import are_readable, pod_shapes
from taskgov.usage.quota_usage import team_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.hyperpod.model import ComputeQuota
    from taskgov.kueue.render import Manifest, RenderedObjects
    from taskgov.scheduling import FixedPoint, KueueModel, ManagerConfig
    from taskgov.snapshot.model import KueueObjects, Snapshot
    from taskgov.snapshot.unreadable import UnreadableObject


@dataclass(slots=True)
class Loaded:
    """The scheduling model of a snapshot with its rendered objects, shared by all callers.

    Shared models are never changed: a caller that needs to change one copies it.
    """

    config: ManagerConfig
    rendered: RenderedObjects
    """The objects that lie over those of the snapshot."""
    odd: tuple[UnreadableObject, ...]
    taken_at: datetime
    model: KueueModel
    """As it was loaded, evicted workloads too."""
    unread: tuple[str, ...]
    """Names of workloads that cannot be read."""
    rests: dict[int, tuple[KueueModel, FixedPoint, int]] = field(default_factory=dict)
    """Steps that were left before -> the model once it had come to rest, how it came to it, and the steps left then."""
    _begin: KueueModel | None = None

    def after_evictions(self) -> KueueModel:
        """Return the model once evicted workloads have left."""
        if self._begin is None:
            self._begin = self.model
            if self.model.told_to_leave():
                self._begin = self.model.copy()
                finish_evictions(self._begin, self.taken_at)
        return self._begin


@once
def _all_loaded(_kueue: KueueObjects) -> list[Loaded]:
    """Return what was loaded of these objects so far: with other quotas, policies or moments it is another."""
    return []


def loaded_from(
    snapshot: Snapshot,
    table: InstanceTypeTable,
    touched: Collection[str] = frozenset(),
    anew: Collection[str] = frozenset(),
) -> Loaded:
    """Return the scheduler as the snapshot has it, with what is rendered for it: the same for all who ask for it.

    Rendered are the quotas of teams in `anew`, and those without a queue; of these only `touched` ones where their type
    is unknown. Errors as `Projection.of`.
    """
    policy = policy_in_force(snapshot.scheduler_config)
    config = config_of(snapshot.manager, policy)
    rendered = render(_to_render(snapshot, table, touched, anew), policy, table)
    odd = tuple(item for item in snapshot.unreadable_objects if item.kind == "Workload" and not item.is_finished)
    known = _all_loaded(snapshot.kueue)
    asked = config, rendered, odd, snapshot.taken_at
    for loaded in known:
        if asked == (loaded.config, loaded.rendered, loaded.odd, loaded.taken_at):
            return loaded
    model = scheduling.KueueModel(config)
    objects = [*_scheduler_objects(snapshot.kueue), *rendered.namespaces, *rendered.priority_classes]
    model.load(objects, are_checked=are_readable(snapshot.kueue))
    unread = (*(item.shown for item in odd), *_not_applied(model, snapshot.kueue))
    # Applied after what is there: the rendered queue takes the place of the one it is made from.
    for manifest in (*rendered.resource_flavors, *rendered.cluster_queues, *rendered.local_queues):
        model.apply(manifest)
    known.append(Loaded(*asked, model, unread))
    return known[-1]


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


def _not_applied(model: KueueModel, kueue: KueueObjects) -> Iterator[str]:
    """Apply the workloads, and give the names of those that cannot be read."""
    is_checked = are_readable(kueue)
    for number, (workload, pods) in enumerate(zip(kueue.workloads, pod_shapes(kueue), strict=True), 1):
        try:
            said = workload if workload.get("kind") == "Workload" else {**workload, "kind": "Workload"}
            model.apply(said, is_checked=is_checked, pods=pods)
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


def finish_evictions(model: KueueModel, now: datetime) -> None:
    """Finish the evictions of workloads that still hold quota: their pods are being deleted."""
    for key in model.told_to_leave():
        model.finish_eviction(key, now)
