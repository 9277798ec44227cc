"""The ports to Kubernetes and to the backends, as far as a person's rights go (`own_rights`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from taskgov.adapters.kubernetes.reader import (
    GROUP,
    limit_ranges,
    manager_image,
    read_all,
    read_manager_settings,
    runtime_classes,
    served_by,
)
from taskgov.adapters.kubernetes.request import Requests
from taskgov.adapters.kubernetes.trimming import kept, trimmed, trimmed_node, trimmed_workload
from taskgov.backends.backends import Backends
from taskgov.errors import GovernanceError, InvalidRequestError, NotFoundError
from taskgov.snapshot.model import KueueObjects, ManagerSettings
from taskgov.snapshot.unseen import Part
from taskgov_cli.own_rights import OwnRights, is_denied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.adapters.kubernetes.connection import ApiConnections
    from taskgov.adapters.kubernetes.reader import Trim
    from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota
    from taskgov.ports import ClusterAccess, OnUnreadableObject
    from taskgov.snapshot.model import KubernetesObject

CLUSTER_WIDE: Final = {
    Part.RESOURCE_FLAVORS: "resourceflavors",
    Part.COHORTS: "cohorts",
    Part.PRIORITY_CLASSES: "workloadpriorityclasses",
}
NAMESPACED: Final = {Part.LOCAL_QUEUES: "localqueues", Part.WORKLOADS: "workloads"}
NAME_YOUR_TEAM: Final = (
    "your rights do not let you list the workloads of all teams: name yours (--team NAME, or TEAM/JOB), "
    "or a context of the kubeconfig that has a namespace (--context)"
)


class OwnKubernetes:
    """The `KubernetesApi` port, as far as a person's rights go."""

    def __init__(self, connections: ApiConnections, rights: OwnRights) -> None:
        self._connections = connections
        self._rights = rights

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        """Return the nodes; none where they may not be listed."""
        with self._connections.open(cluster) as connection:
            api = Requests(connection)
            found: list[KubernetesObject] = self._rights.try_(
                Part.NODES, lambda: read_all(api, "/api/v1/nodes", trimmed_node, "list nodes"), []
            )
        return found

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        """Return what may be read of Kueue's objects. Raises InvalidRequestError where a team has to be named."""
        with self._connections.open(cluster) as connection:
            api = Requests(connection)
            version, served = served_by(api)
            root = f"/apis/{GROUP}/{version}"

            def everywhere(part: Part, plural: str) -> tuple[KubernetesObject, ...]:
                if plural not in served:
                    return ()
                return tuple(self._rights.try_(part, lambda: _list(api, root, plural), ()))

            namespaced = {part: self._namespaced(api, root, part) for part in NAMESPACED}
            image, silence = manager_image(api)
            return KueueObjects(
                resource_flavors=everywhere(Part.RESOURCE_FLAVORS, CLUSTER_WIDE[Part.RESOURCE_FLAVORS]),
                cohorts=everywhere(Part.COHORTS, CLUSTER_WIDE[Part.COHORTS]),
                cluster_queues=self._cluster_queues(api, root, namespaced[Part.LOCAL_QUEUES]),
                local_queues=namespaced[Part.LOCAL_QUEUES],
                priority_classes=everywhere(Part.PRIORITY_CLASSES, CLUSTER_WIDE[Part.PRIORITY_CLASSES]),
                workloads=namespaced[Part.WORKLOADS],
                limit_ranges=self._limit_ranges(api),
                runtime_classes=tuple(self._rights.try_(Part.RUNTIME_CLASSES, lambda: runtime_classes(api), ())),
                manager_image=image,
                manager_silence=silence,
            )

    def _limit_ranges(self, api: Requests) -> tuple[KubernetesObject, ...]:
        """Read LimitRanges everywhere, or else in the namespaces that were named: others concern nobody there."""
        try:
            return tuple(limit_ranges(api))
        except GovernanceError as error:
            if not is_denied(error):
                raise

        def of_the_named() -> list[KubernetesObject]:
            return [item for namespace in self._rights.namespaces for item in limit_ranges(api, namespace)]

        return tuple(self._rights.try_(Part.LIMIT_RANGES, of_the_named, ()))

    def manager_settings(self, cluster: ClusterAccess) -> ManagerSettings:
        """Return the configuration of Kueue's manager, or why it is not known."""
        with self._connections.open(cluster) as connection:
            return read_manager_settings(Requests(connection))

    def _namespaced(self, api: Requests, root: str, part: Part) -> tuple[KubernetesObject, ...]:
        """Read a type everywhere, or else in the namespaces that were named."""
        plural = NAMESPACED[part]
        try:
            return tuple(_list(api, root, plural))
        except GovernanceError as error:
            if not is_denied(error):
                raise
            if not self._rights.namespaces:
                raise InvalidRequestError(NAME_YOUR_TEAM) from error
            self._rights.miss(part, error, self._rights.namespaces)
        return tuple(
            item
            for namespace in self._rights.namespaces
            for item in _list(api, f"{root}/namespaces/{namespace}", plural, namespace)
        )

    def _cluster_queues(
        self, api: Requests, root: str, local_queues: Iterable[KubernetesObject]
    ) -> tuple[KubernetesObject, ...]:
        """Read all ClusterQueues, or else those to which the LocalQueues lead, as far as each may be read."""
        try:
            return tuple(_list(api, root, "clusterqueues"))
        except GovernanceError as error:
            if not is_denied(error):
                raise
            names = dict.fromkeys(str((queue.get("spec") or {}).get("clusterQueue", "")) for queue in local_queues)
            found = [item for name in names if name for item in _get(api, root, name)]
            self._rights.miss(Part.CLUSTER_QUEUES, error, (queue["metadata"]["name"] for queue in found))
            return tuple(found)


@dataclass(frozen=True, slots=True)
class OwnBackends(Backends):
    """The `ClusterBackend` port, as far as a person's rights go: what may not be read of it is left out."""

    rights: OwnRights = field(default_factory=OwnRights)

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        """Return SageMaker's summaries of the instances; none where they may not be listed."""
        found: list[Mapping[str, Any]] = self.rights.try_(
            Part.INSTANCES, lambda: Backends.cluster_nodes(self, cluster), []
        )
        return found

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        """Return the compute quotas; none where they may not be listed."""
        found: tuple[ComputeQuota, ...] = self.rights.try_(
            Part.QUOTAS, lambda: Backends.quotas(self, cluster_arn, on_unreadable), ()
        )
        return found

    def scheduler_config(
        self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None
    ) -> ClusterSchedulerConfig | None:
        """Return the cluster policy; None where it may not be read."""
        found: ClusterSchedulerConfig | None = self.rights.try_(
            Part.CLUSTER_POLICY, lambda: Backends.scheduler_config(self, cluster_arn, on_unreadable), None
        )
        return found


def _list(api: Requests, root: str, plural: str, namespace: str = "") -> list[KubernetesObject]:
    trim: Trim = trimmed_workload if plural == "workloads" else trimmed
    where = f" in namespace {namespace}" if namespace else ""
    return read_all(api, f"{root}/{plural}", trim, f"list {plural}{where}")


def _get(api: Requests, root: str, name: str) -> list[KubernetesObject]:
    """Return the ClusterQueue, if there is one and it may be read."""
    try:
        return [kept(api.get(f"{root}/clusterqueues/{name}", f"get clusterqueue {name}"), trimmed)]
    except NotFoundError:
        return []
    except GovernanceError as error:
        if not is_denied(error):
            raise
        return []
