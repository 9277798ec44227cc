"""The twin of `KubernetesReader`: clusters held in memory, for the tests of everything above the port."""

from collections.abc import Iterable, Mapping

from taskgov.adapters.kubernetes.trimming import (
    trimmed,
    trimmed_limit_range,
    trimmed_node,
    trimmed_runtime_class,
    trimmed_workload,
)
from taskgov.errors import GovernanceError, KueueMissingError, NotFoundError
from taskgov.hyperpod.names import KUEUE_NAMESPACE, MANAGER_CONFIG_MAP
from taskgov.ports import ClusterAccess
from taskgov.snapshot.manager import settings_in
from taskgov.snapshot.model import KubernetesObject, KueueObjects, ManagerSettings


class InMemoryKubernetes:
    """The `KubernetesApi` port over given objects. What is set on it is what the next read gives."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, list[KubernetesObject]]] = {}
        self._failure: GovernanceError | None = None

    def put(self, cluster: ClusterAccess, objects: Mapping[str, Iterable[KubernetesObject]]) -> None:
        """Let these be the cluster's objects, by plural name (`nodes`, `clusterqueues`, ...)."""
        self._objects[cluster.eks_cluster_arn] = {plural: sorted(items, key=_key) for plural, items in objects.items()}

    def fail(self, error: GovernanceError | None) -> None:
        """Raise this at every read, or nothing any more."""
        self._failure = error

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        """Return the nodes, by name."""
        return [trimmed_node(node) for node in self._of(cluster).get("nodes", ())]

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        """Return Kueue's objects, by namespace and name; KueueMissingError when `clusterqueues` was never put."""
        objects = self._of(cluster)
        if "clusterqueues" not in objects:
            raise KueueMissingError(f"{cluster.eks_cluster_arn}: Kueue is not installed")

        def all_of(plural: str) -> tuple[KubernetesObject, ...]:
            return tuple(map(trimmed, objects.get(plural, ())))

        return KueueObjects(
            resource_flavors=all_of("resourceflavors"),
            cohorts=all_of("cohorts"),
            cluster_queues=all_of("clusterqueues"),
            local_queues=all_of("localqueues"),
            priority_classes=all_of("workloadpriorityclasses"),
            workloads=tuple(map(trimmed_workload, objects.get("workloads", ()))),
            limit_ranges=tuple(map(trimmed_limit_range, objects.get("limitranges", ()))),
            runtime_classes=tuple(map(trimmed_runtime_class, objects.get("runtimeclasses", ()))),
        )

    def manager_settings(self, cluster: ClusterAccess) -> ManagerSettings:
        """Return what the ConfigMap of Kueue's manager says, or why that is not known."""
        for item in self._of(cluster).get("configmaps", ()):
            if _key(item) == (KUEUE_NAMESPACE, MANAGER_CONFIG_MAP):
                return settings_in(item)
        return ManagerSettings(unread=f"configmap {MANAGER_CONFIG_MAP} is not there")

    def _of(self, cluster: ClusterAccess) -> Mapping[str, list[KubernetesObject]]:
        if self._failure is not None:
            raise self._failure
        found = self._objects.get(cluster.eks_cluster_arn)
        if found is None:
            raise NotFoundError(f"{cluster.eks_cluster_arn}: no such cluster")
        return found


def _key(item: KubernetesObject) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
