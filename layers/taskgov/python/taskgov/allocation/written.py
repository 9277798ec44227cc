"""Quotas, cluster policy and queues after some changes have been written, without scheduling.

The audit uses it for the effect of a plan on findings. `taskgov.allocation.projection` adds the scheduler, for
predictions and what-if.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, ChangeKind, quota_key
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.kueue.render import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.allocation.plan import Change
    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.kueue.render import Manifest
    from taskgov.snapshot.model import KubernetesObject, KueueObjects, Snapshot

_Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""

UNREADABLE: Final = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""What the readers of the scheduler's objects raise for one that is not as Kueue writes it."""

NEVER_IN_FORCE: Final = frozenset({"CreateFailed", "CreateRollbackFailed"})
"""Statuses of a quota or cluster policy that HyperPod never made: it has no queue, no class and no effect."""

_CONTENT: Final = frozenset({"spec", "value"})
_COHORT: Final = frozenset({"cohort", "cohortName"})


class WrittenCluster:
    """A snapshot's quotas, cluster policy and queues, and what changes make of them, step by step.

    `puts_back` says that a write of a quota also puts back what somebody changed on its objects beside the numbers: a
    queue on hold, its order, its preference of flavors. The `kueue` backend does so; whether HyperPod does is not
    documented. What nobody renders stays either way.
    """

    __slots__ = ("_base", "_made", "_policy", "_quotas", "_table", "_there", "puts_back")

    def __init__(
        self, snapshot: Snapshot, table: InstanceTypeTable | None = None, *, puts_back: bool | None = None
    ) -> None:
        self._base, self._table = snapshot, table or snapshot.instance_types
        self._quotas = {quota.compute_quota_id: quota for quota in snapshot.quotas}
        self._policy = snapshot.scheduler_config
        self._made: dict[tuple[str, str], Manifest] = {}
        self._there: Mapping[_Key, KubernetesObject] | None = None
        self.puts_back = writes_whole_objects(snapshot) if puts_back is None else puts_back

    @property
    def quotas(self) -> Mapping[str, ComputeQuota]:
        """All quotas as written so far, by id; one that was created is called `new-<team>`: it has no id yet."""
        return self._quotas

    @property
    def scheduler_config(self) -> SchedulerConfig | None:
        """The cluster policy that is in force; None where there is none, and work is served in the order it came."""
        return policy_in_force(self._policy)

    def copy(self) -> WrittenCluster:
        """Return a cluster of its own in the same state."""
        twin = WrittenCluster(self._base, self._table, puts_back=self.puts_back)
        twin._quotas, twin._policy, twin._made = dict(self._quotas), self._policy, dict(self._made)
        twin._there = self._there
        return twin

    def write(self, changes: Iterable[Change]) -> tuple[Manifest, ...]:
        """Write changes, all at once, and return the objects that HyperPod renders for them, in order.

        The last write of a quota counts. A deletion leaves a queue without quota, unless the quota was never in force.
        Raises `KeyError` for a change of what is missing, `ValueError` for a quota that cannot be rendered as a queue.
        """
        classes: tuple[Manifest, ...] = ()
        renewed: dict[str, ComputeQuota] = {}
        created = set[str]()
        for change in changes:
            if change.kind is ChangeKind.CREATE_QUOTA:
                created.add(change.team)
            if change.kind in POLICY_KINDS:
                self._policy = _policy_after(change, self._policy)
                classes = render((), self.scheduler_config, self._table).priority_classes
            elif (quota := self._set_quota(change)) is not None:
                renewed[change.team] = quota
        old = [quota for team, quota in renewed.items() if team not in created]
        new = [quota for team, quota in renewed.items() if team in created]
        made = tuple(chain(classes, self._rendered_over(old), render(new, None, self._table).in_order()))
        self._keep(made)
        return made

    def render_again(self, teams: Iterable[str]) -> None:
        """Render the queues of these teams from their present quotas, after the quotas of a snapshot were changed."""
        wanted = frozenset(teams)
        quotas = (quota for quota in self._quotas.values() if quota.compute_quota_target.team_name in wanted)
        self._keep(render(quotas, None, self._table).in_order())

    def made(self, kind: str) -> Mapping[str, Manifest]:
        """Return the objects of a kind that were rendered for what has been written, by name."""
        return {name: manifest for (made_kind, name), manifest in self._made.items() if made_kind == kind}

    def snapshot(self) -> Snapshot:
        """Return what a snapshot would hold once the writes have settled.

        Statuses of queues and of work are those of the first snapshot: nothing has been scheduled.
        """
        quotas = tuple(self._quotas.values())
        return replace(self._base, quotas=quotas, scheduler_config=self._policy, kueue=self._kueue())

    def _rendered_over(self, quotas: Iterable[ComputeQuota]) -> tuple[Manifest, ...]:
        """Return the objects of quotas over those that are there, in order."""
        if self._there is None:
            self._there = _by_key(self._base.kueue)
        rendered = render(quotas, None, self._table).in_order()
        return tuple(
            made if (there := self._there.get(_key(made))) is None else _written_over(there, made, self.puts_back)
            for made in rendered
        )

    def _keep(self, made: Iterable[Manifest]) -> None:
        self._made |= {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in made}

    def _set_quota(self, change: Change) -> ComputeQuota | None:
        """Take the write of a quota, and return what the team's queue is rendered from; None: there is no queue."""
        if change.kind in DELETIONS:
            gone = self._quotas.pop(change.resource_id or "")
            team = gone.compute_quota_target.team_name
            has_another = any(quota.compute_quota_target.team_name == team for quota in self._quotas.values())
            held = change.before is not None and gone.status not in NEVER_IN_FORCE and not has_another
            # The queue stays as long as work runs in it, and has nothing to give.
            return gone.model_copy(update={"compute_quota_config": ComputeQuotaConfig()}) if held else None
        quota = quota_after(change, self._quotas)
        self._quotas[quota.compute_quota_id] = quota
        return quota

    def _kueue(self) -> KueueObjects:
        kueue = self._base.kueue
        return replace(
            kueue,
            resource_flavors=self._over(kueue.resource_flavors, "ResourceFlavor"),
            cluster_queues=self._over(kueue.cluster_queues, "ClusterQueue"),
            local_queues=self._over(kueue.local_queues, "LocalQueue"),
            priority_classes=self._over(kueue.priority_classes, "WorkloadPriorityClass"),
        )

    def _over(self, objects: tuple[KubernetesObject, ...], kind: str) -> tuple[KubernetesObject, ...]:
        return over(objects, self.made(kind))


def quota_after(change: Change, quotas: Mapping[str, ComputeQuota]) -> ComputeQuota:
    """Return the quota that a change writes, settled; one that it creates is called `new-<team>`.

    `quotas` are all by id. Raises `TypeError` for a change of the cluster policy, `KeyError` for an update of what is
    not there.
    """
    if not isinstance(change.after, ComputeQuotaConfig):
        raise TypeError(f"{change.kind} is not the change of a quota")
    target = change.target_after or ComputeQuotaTarget(team_name=change.team)
    quota_id = quota_id_of(change, quotas)
    if change.kind is ChangeKind.CREATE_QUOTA:
        return ComputeQuota(
            compute_quota_id=quota_id,
            name=change.name,
            compute_quota_version=1,
            status="Created",
            compute_quota_config=change.after,
            compute_quota_target=target,
        )
    before = quotas[quota_id]
    written = {"compute_quota_config": change.after, "compute_quota_target": target}
    version = before.compute_quota_version + 1
    settled = {"compute_quota_version": version, "status": "Updated", "failure_reason": None}
    return before.model_copy(update=written | settled)


def quota_id_of(change: Change, quotas: Mapping[str, ComputeQuota]) -> str:
    """Return the id of the quota that a change writes; one that the same plan creates is known by its name only.

    Raises `KeyError` for an update of what is not there.
    """
    if change.kind is ChangeKind.CREATE_QUOTA:
        return f"new-{change.team}"
    if change.resource_id is not None:
        return change.resource_id
    subject = change.subject
    found = (
        key for key, quota in quotas.items() if quota_key(quota.compute_quota_target.team_name, quota.name) == subject
    )
    if (quota_id := next(found, None)) is None:
        raise KeyError(change.name)
    return quota_id


def policy_in_force(policy: ClusterSchedulerConfig | None) -> SchedulerConfig | None:
    """Return what a cluster policy says, None where there is none or HyperPod never made it."""
    return None if policy is None or policy.status in NEVER_IN_FORCE else policy.scheduler_config


def writes_whole_objects(snapshot: Snapshot) -> bool:
    """Return whether the automation writes the Kueue objects themselves, whole: on a cluster without HyperPod."""
    return snapshot.policy is not None and snapshot.policy.cluster.backend.writes_kueue_objects


def over(objects: Iterable[KubernetesObject], made: Mapping[str, Manifest]) -> tuple[KubernetesObject, ...]:
    """Return objects with the content of what was made under their names (and their own status), then what is new."""
    before = {item["metadata"]["name"]: item for item in objects}
    new = (manifest for name, manifest in made.items() if name not in before)
    return (*(_renewed(item, made.get(name)) for name, item in before.items()), *new)


def _renewed(before: KubernetesObject, made: Manifest | None) -> KubernetesObject:
    if made is None:
        return before
    return {**before, **{key: value for key, value in made.items() if key in _CONTENT}}


def _key(item: KubernetesObject) -> _Key:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace", ""), metadata["name"]


def _by_key(kueue: KueueObjects) -> dict[_Key, KubernetesObject]:
    kinds = {
        "ResourceFlavor": kueue.resource_flavors,
        "ClusterQueue": kueue.cluster_queues,
        "LocalQueue": kueue.local_queues,
    }
    objects = ({**item, "kind": kind} for kind, items in kinds.items() for item in items)
    return {_key(item): item for item in objects}


def _written_over(there: KubernetesObject, made: Manifest, puts_back: bool) -> Manifest:  # noqa: FBT001
    """Return an object as it is once what was rendered is written over it."""
    spec: dict[str, Any] = dict(there.get("spec") or {})
    wanted = made["spec"]
    if made["kind"] == "ClusterQueue":
        spec = {name: value for name, value in spec.items() if name not in _COHORT}
        if not puts_back:
            wanted = _of_the_quota(wanted, spec.get("preemption") or {})
    elif not puts_back:
        wanted = _stopped(wanted)
    return {**made, "spec": {**spec, **wanted}}


def _of_the_quota(rendered: Mapping[str, Any], preemption: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a rendered ClusterQueue that come from its quota."""
    own = rendered["preemption"]["withinClusterQueue"]
    fields = {name: value for name, value in rendered.items() if name in _COHORT | {"fairSharing", "resourceGroups"}}
    return {**fields, **_stopped(rendered), "preemption": {**preemption, "withinClusterQueue": own}}


def _stopped(rendered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stop of a quota that is switched off; one that is switched on does not say who else stopped it."""
    policy = rendered.get("stopPolicy", "None")
    return {} if policy == "None" else {"stopPolicy": policy}


def _policy_after(change: Change, before: ClusterSchedulerConfig | None) -> ClusterSchedulerConfig | None:
    if change.kind in DELETIONS:
        return None
    if not isinstance(change.after, SchedulerConfig):
        raise TypeError(f"{change.kind} is not the change of a cluster policy")
    if before is None:
        return ClusterSchedulerConfig(
            cluster_scheduler_config_id="new-policy",
            name=change.name,
            cluster_scheduler_config_version=1,
            status="Created",
            scheduler_config=change.after,
        )
    written: dict[str, Any] = {"scheduler_config": change.after, "status": "Updated", "failure_reason": None}
    version = before.cluster_scheduler_config_version + 1
    return before.model_copy(update=written | {"cluster_scheduler_config_version": version})
