"""The quotas and the policy of a cluster whose Kueue no add-on governs: kept on the Kueue objects themselves.

The same port as SageMaker's, so that a run is the same run. A quota is written as namespace, flavors and local queue
first and its ClusterQueue last, with the record of what was requested (`taskgov.kueue.record`): a write that was cut
off has no record, and is written again. An update holds at the version that the plan saw and at the very queue that was
read (`resourceVersion`); only then are fields taken that somebody edited meanwhile: that edit is what the plan judged.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from taskgov.backends.plain_eks.objects import TRIES, applied, deletable, delete_judged
from taskgov.backends.plain_eks.policy_writes import PolicyWrites
from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError, UpstreamError
from taskgov.hyperpod.instance_types import InstanceTypeTable, UnknownInstanceTypeError
from taskgov.hyperpod.model import (
    ActivationState,
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.kueue.foundation import admission_policy, cohort
from taskgov.kueue.ownership import Ownership, marked, ownership_of
from taskgov.kueue.policy_record import PolicyRecord, policy_of
from taskgov.kueue.record import RECORD, Reading, Record, activation_of, owner_of, quotas_of, version_of
from taskgov.kueue.render import KueueVersion, Manifest, RenderedObjects
from taskgov.ports import ClusterAccess, OnUnreadableObject, Written
from taskgov.snapshot.forms import fault_of
from taskgov.snapshot.unreadable import COMPUTE_QUOTA, UnreadableObject, UnreadableObjectError

if TYPE_CHECKING:
    from taskgov.adapters.kubernetes import ApiConnections
    from taskgov.adapters.kubernetes.objects import ObjectApi

GROUP: Final = "kueue.x-k8s.io"
VERSIONS: Final[tuple[KueueVersion, ...]] = ("v1beta2", "v1beta1")


class KueueQuotas:
    """The `QuotaStore` port over the Kubernetes API of EKS clusters; a cluster is named by its EKS ARN.

    `table_of` gives what the instance types of a cluster offer, as its policy document may say.
    """

    def __init__(self, connections: "ApiConnections", table_of: Callable[[str], InstanceTypeTable]) -> None:
        self._connections = connections
        self._table_of = table_of

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        """Return the quotas that the cluster's queues stand for, by name."""
        with self._open(cluster_arn) as cluster:
            return cluster.quotas(on_unreadable)

    def quota(self, compute_quota_id: str) -> ComputeQuota:
        """Return one quota at its current version. Raises UnreadableObjectError where its queue may be an odd one."""
        cluster_arn, _ = owner_of(compute_quota_id)
        odd: list[UnreadableObject] = []
        for quota in self.quotas(cluster_arn, odd.append):
            if quota.compute_quota_id == compute_quota_id:
                return quota
        raise UnreadableObjectError(odd[0]) if odd else NotFoundError(f"{compute_quota_id} has no ClusterQueue")

    def scheduler_config(
        self,
        cluster_arn: str,
        on_unreadable: OnUnreadableObject | None = None,  # noqa: ARG002 - what is odd in it counts as missing
    ) -> ClusterSchedulerConfig | None:
        """Return the cluster policy, or None."""
        with self._open(cluster_arn) as cluster:
            return cluster.policy()

    def scheduler_config_by_id(self, scheduler_config_id: str) -> ClusterSchedulerConfig:
        """Return the cluster policy at its current version."""
        found = self.scheduler_config(owner_of(scheduler_config_id)[0])
        if found is None:
            raise NotFoundError(f"cluster scheduler config {scheduler_config_id}: the cohort carries none")
        return found

    def create_quota(
        self, cluster_arn: str, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Make a team's namespace, flavors and queues. Raises ConflictError when there is such a queue."""
        with self._open(cluster_arn) as cluster:
            cluster.create(name, config, target)
            return Written(cluster.reading.quota_id(target.team_name), 1)

    def update_quota(
        self, quota_id: str, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Bring a team's objects to this quota. Raises ConflictError when the queue is at another version."""
        with self._open(owner_of(quota_id)[0]) as cluster:
            return Written(quota_id, cluster.update(target_version, config, target))

    def delete_quota(self, quota_id: str) -> None:
        """Delete the queues of a quota that taskgov made; namespace and flavors stay, and what runs there.

        Raises ConflictError when the queue was not made here, and when workloads hold its quota.
        """
        cluster_arn, team = owner_of(quota_id)
        with self._open(cluster_arn) as cluster:
            cluster.delete(team)

    def create_scheduler_config(self, cluster_arn: str, name: str, config: SchedulerConfig) -> Written:
        """Make the priority classes and keep the policy on the cohort. Raises ConflictError when there is one."""
        with self._open(cluster_arn) as cluster:
            cluster.write_policy(PolicyRecord(name, config, 1), None, 0)
            return Written(cluster.reading.policy_id, 1)

    def update_scheduler_config(self, config_id: str, target_version: int, config: SchedulerConfig) -> Written:
        """Replace the policy: classes are changed, made, and (only those made here) deleted.

        Raises ConflictError when it is at another version, also by the time its record is written.
        """
        found = self.scheduler_config_by_id(config_id)
        with self._open(owner_of(config_id)[0]) as cluster:
            cluster.write_policy(PolicyRecord(found.name, config, target_version + 1), found, target_version)
            return Written(config_id, target_version + 1)

    def delete_scheduler_config(self, config_id: str) -> None:
        """Take the policy back: its classes that were made here, and its record."""
        found = self.scheduler_config_by_id(config_id)
        with self._open(owner_of(config_id)[0]) as cluster:
            cluster.write_policy(None, found, found.cluster_scheduler_config_version)

    def adopt(self, quota: ComputeQuota) -> None:
        """Take over a foreign quota, and let plans write it. Raises ConflictError if it changed since it was read."""
        with self._open(owner_of(quota.compute_quota_id)[0]) as cluster:
            cluster.adopt(quota)

    @contextmanager
    def _open(self, cluster_arn: str) -> "Iterator[_Cluster]":
        from taskgov.adapters.kubernetes.objects import ObjectApi  # noqa: PLC0415 - 0.1 s that HyperPod clusters never need

        try:
            with self._connections.open(ClusterAccess(cluster_arn)) as client:
                api = ObjectApi(client)
                yield _Cluster(api, Reading(cluster_arn, self._table_of(cluster_arn), _served(api)))
        except UnknownInstanceTypeError as error:
            raise InvalidRequestError(str(error)) from error


class _Cluster:
    """One open connection, and how its queues are read."""

    def __init__(self, api: "ObjectApi", reading: Reading) -> None:
        self._api = api
        self.reading = reading

    def quotas(self, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        """Return the quotas. An odd object beside a queue counts as missing, so that it is written again.

        An odd queue is reported as a quota that cannot be read, so that no quota grows: what it promises is not
        known. Raises UnreadableObjectError where there is nowhere to report it.
        """
        version = f"{GROUP}/{self.reading.version}"
        kinds = (("v1", "Namespace"), (version, "ResourceFlavor"), (version, "LocalQueue"))
        beside = [item for api, kind in kinds for item in self._api.list(api, kind) if fault_of(kind, item) is None]
        queues = list(self._api.list(version, "ClusterQueue"))
        readable = []
        for queue in queues:
            because = fault_of("ClusterQueue", queue)
            if because is None:
                readable.append(queue)
                continue
            shown = UnreadableObject.of("ClusterQueue", queue, because).shown
            odd = UnreadableObject(COMPUTE_QUOTA, f"of ClusterQueue {shown}", because)
            if on_unreadable is None:
                raise UnreadableObjectError(odd)
            on_unreadable(odd)
        return quotas_of(self.reading, readable, beside)

    def policy(self) -> ClusterSchedulerConfig | None:
        version = f"{GROUP}/{self.reading.version}"
        found = self._api.find(cohort(self.reading.version))
        kind = "WorkloadPriorityClass"
        classes = [item for item in self._api.list(version, kind) if fault_of(kind, item) is None]
        return policy_of(found, classes, self.reading.policy_id, self.reading.cluster_arn)

    def create(self, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget) -> None:
        rendered = self._rendered(config, target, ActivationState.ENABLED)
        [queue] = rendered.cluster_queues
        if found := self._api.find(queue):
            ownership = ownership_of(found)
            what = "taskgov wrote nothing of it: adopt it" if ownership is Ownership.FOREIGN else "the team has a quota"
            raise ConflictError(f"ClusterQueue {queue['metadata']['name']} exists: {what}")
        self._lay_foundation()
        self._apply_beside(rendered, force=False)
        record = Record(name, config, target.fair_share_weight or 0, version=1, generation=1)
        self._api.patch(marked(queue, Ownership.ABSENT, **{RECORD: record.to_json()}))

    def update(self, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget) -> int:
        """Return the version after the write."""
        for _ in range(TRIES):
            found = self._at_version(target, target_version)
            rendered = self._rendered(config, target, activation_of(found))
            self._apply_beside(rendered, force=True)
            try:
                return self._replace(found, rendered, config, target)
            except ConflictError:  # forced: only the resourceVersion can have been another
                continue
        raise UpstreamError(f"ClusterQueue of {target.team_name} changes faster than it can be written")

    def delete(self, team: str) -> None:
        """Look at all before any is deleted: a queue that has to stay keeps its local queue."""
        rendered = self._rendered(ComputeQuotaConfig(), ComputeQuotaTarget(team_name=team), ActivationState.ENABLED)
        doomed = [deletable(self._api, queue) for queue in (*rendered.cluster_queues, *rendered.local_queues)]
        for found in reversed(doomed):
            if found is not None:
                delete_judged(self._api, found)

    def write_policy(self, record: PolicyRecord | None, before: ClusterSchedulerConfig | None, version: int) -> None:
        """Write the policy, which is `before` now. Raises ConflictError where it has another version."""
        PolicyWrites(self._api, self.reading).write(record, before, version)
        self._apply_admission()

    def adopt(self, quota: ComputeQuota) -> None:
        config, target = quota.compute_quota_config, quota.compute_quota_target
        rendered = self._rendered(config, target, quota.activation_state)
        [wanted] = rendered.cluster_queues
        found = self._api.get(wanted)
        if version_of(found) != quota.compute_quota_version:
            raise ConflictError(f"ClusterQueue {found['metadata']['name']} changed after it was read: read it again")
        for manifest in (*rendered.namespaces, *rendered.resource_flavors, *rendered.local_queues):
            self._api.patch(marked(manifest, ownership_of(self._api.find(manifest))), force="true")
        self._replace(found, rendered, config, target, version=version_of(found))

    def _at_version(self, target: ComputeQuotaTarget, version: int) -> Manifest:
        [wanted] = self._rendered(ComputeQuotaConfig(), target, ActivationState.ENABLED).cluster_queues
        found = self._api.get(wanted)
        name = found["metadata"]["name"]
        if ownership_of(found) is Ownership.FOREIGN:
            raise ConflictError(f"ClusterQueue {name} exists, and taskgov wrote nothing of it: adopt it")
        if version_of(found) != version:
            raise ConflictError(f"ClusterQueue {name} is at version {version_of(found)}, not {version}")
        return found

    def _replace(
        self,
        found: Manifest,
        rendered: RenderedObjects,
        config: ComputeQuotaConfig,
        target: ComputeQuotaTarget,
        version: int | None = None,
    ) -> int:
        """Apply the queue, and with it the record at the generation that the write gives (asked by a dry run)."""
        after = version_of(found) + 1 if version is None else version
        [queue] = rendered.cluster_queues
        read = {**queue, "metadata": {**queue["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}}
        record = Record.of(found)
        name = record.name if record else f"{target.team_name}-quota"

        def manifest(generation: int) -> Manifest:
            written = Record(name, config, target.fair_share_weight or 0, after, generation)
            return marked(read, ownership_of(found), **{RECORD: written.to_json()})

        trial = self._api.patch(manifest(0), force="true", dryRun="All")
        self._api.patch(manifest(trial["metadata"]["generation"]), force="true")
        return after

    def _apply_beside(self, rendered: RenderedObjects, *, force: bool) -> None:
        for manifest in (*rendered.namespaces, *rendered.resource_flavors, *rendered.local_queues):
            applied(self._api, manifest, force=force)

    def _lay_foundation(self) -> None:
        """Make cohort and admission policy where they are not; the cohort's record is not touched."""
        if self._api.find(cohort(self.reading.version)) is None:
            applied(self._api, cohort(self.reading.version))
        self._apply_admission()

    def _apply_admission(self) -> None:
        for manifest in admission_policy():
            applied(self._api, manifest, force=True)

    def _rendered(
        self, config: ComputeQuotaConfig, target: ComputeQuotaTarget, activation: ActivationState
    ) -> RenderedObjects:
        return self.reading.rendered(target.team_name, config, target.fair_share_weight or 0, activation)


def _served(api: "ObjectApi") -> KueueVersion:
    for version in VERSIONS:
        if api.serves(f"{GROUP}/{version}"):
            return version
    # A restarted API server needs a moment before it lists the groups of CRDs: no reason to refuse a write for good.
    raise UpstreamError(f"the cluster serves none of {', '.join(VERSIONS)} of {GROUP}: is Kueue installed?")
