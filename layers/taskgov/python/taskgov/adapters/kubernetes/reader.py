"""What do nodes and Kueue's objects look like right now? Read page by page, trimmed as they arrive."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from taskgov.adapters.kubernetes.connection import ApiConnections
from taskgov.adapters.kubernetes.paging import list_pages
from taskgov.adapters.kubernetes.request import ExpiredError, Requests
from taskgov.adapters.kubernetes.trimming import (
    NODES,
    Parts,
    Shared,
    kept,
    trimmed,
    trimmed_limit_range,
    trimmed_node,
    trimmed_runtime_class,
    trimmed_workload,
)
from taskgov.collector import collector_paused
from taskgov.errors import GovernanceError, KueueMissingError, NotFoundError, UpstreamError
from taskgov.hyperpod.names import KUEUE_NAMESPACE, MANAGER_CONFIG_MAP
from taskgov.ports import ClusterAccess
from taskgov.snapshot.forms import UNTRIMMED
from taskgov.snapshot.kueue_manager import MANAGER_PATH
from taskgov.snapshot.manager import settings_in
from taskgov.snapshot.model import KubernetesObject, KueueObjects, ManagerSettings

GROUP: Final = "kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
"""Preferred first: the add-on serves v1beta2 since Kueue 0.15, older ones only v1beta1."""

Trim = Callable[[KubernetesObject], KubernetesObject]
Item = TypeVar("Item")


class KubernetesReader:
    """The `KubernetesApi` port over a cluster's API."""

    def __init__(self, connections: ApiConnections) -> None:
        self._connections = connections

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        """Return all nodes. Raises ThrottledError, UpstreamError, NotFoundError."""
        with self._connections.open(cluster) as connection:
            return read_all(Requests(connection), "/api/v1/nodes", trimmed_node, "list nodes", NODES)

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        """Return Kueue's objects, in the newest version that is served. Raises KueueMissingError when none is."""
        with self._connections.open(cluster) as connection:
            api = Requests(connection)
            version, served = served_by(api)
            return read_kueue(api, version, served)

    def manager_settings(self, cluster: ClusterAccess) -> ManagerSettings:
        """Return what the ConfigMap of Kueue's manager says, or why that is not known."""
        with self._connections.open(cluster) as connection:
            return read_manager_settings(Requests(connection))


def read_kueue(api: Requests, version: str, served: frozenset[str], *, with_workloads: bool = True) -> KueueObjects:
    """Return Kueue's objects in a version that is served."""

    def all_of(plural: str, trim: Trim = trimmed) -> tuple[KubernetesObject, ...]:
        path = f"/apis/{GROUP}/{version}/{plural}"
        return tuple(read_all(api, path, trim, f"list {plural}")) if plural in served else ()

    image, silence = manager_image(api)
    return KueueObjects(
        resource_flavors=all_of("resourceflavors"),
        cohorts=all_of("cohorts"),
        cluster_queues=all_of("clusterqueues"),
        local_queues=all_of("localqueues"),
        priority_classes=all_of("workloadpriorityclasses"),
        workloads=all_of("workloads", partial(trimmed_workload, shared=Shared())) if with_workloads else (),
        limit_ranges=_as_far_as_allowed(lambda: limit_ranges(api)),
        runtime_classes=_as_far_as_allowed(lambda: runtime_classes(api)),
        manager_image=image,
        manager_silence=silence,
    )


def read_manager_settings(api: Requests) -> ManagerSettings:
    """Return the manager's settings; that the ConfigMap is not there, or may not be read, is an answer."""
    path = f"/api/v1/namespaces/{KUEUE_NAMESPACE}/configmaps/{MANAGER_CONFIG_MAP}"
    try:
        return settings_in(api.get(path, f"get configmap {KUEUE_NAMESPACE}/{MANAGER_CONFIG_MAP}"))
    except NotFoundError as error:
        return ManagerSettings(unread=str(error))
    except GovernanceError as error:
        if error.refusal != "access-denied":
            raise
        return ManagerSettings(unread=str(error))


def served_by(api: Requests) -> tuple[str, frozenset[str]]:
    """Return the version to read and the types it has (cohorts came later than the rest)."""
    for version in VERSIONS:
        try:
            found = api.get(f"/apis/{GROUP}/{version}", f"ask for {GROUP}/{version}")
        except NotFoundError:
            continue
        return version, frozenset(resource["name"] for resource in found["resources"])
    # A restarted API server, too, lists no groups of CRDs for a moment.
    raise KueueMissingError(f"the cluster serves none of {', '.join(VERSIONS)} of {GROUP}: is Kueue installed?")


def limit_ranges(api: Requests, namespace: str = "") -> list[KubernetesObject]:
    """Return the LimitRanges of a namespace, or of all: Kueue completes and refuses pods by them."""
    within, where = (f"/namespaces/{namespace}", f" in namespace {namespace}") if namespace else ("", "")
    return read_all(api, f"/api/v1{within}/limitranges", trimmed_limit_range, f"list limitranges{where}")


def runtime_classes(api: Requests) -> list[KubernetesObject]:
    """Return the RuntimeClasses: Kueue adds their overhead to pods."""
    return read_all(api, "/apis/node.k8s.io/v1/runtimeclasses", trimmed_runtime_class, "list runtimeclasses")


def _as_far_as_allowed(read: Callable[[], list[KubernetesObject]]) -> tuple[KubernetesObject, ...]:
    """Return what was read. What may not be listed stands for an object that cannot be read.

    So predictions are incomplete and say why; a cluster with the rights of a release before is governed anyway.
    """
    try:
        return tuple(read())
    except UpstreamError as error:
        if error.refusal != "access-denied":
            raise
        return ({"metadata": {"name": "*"}, UNTRIMMED: str(error)},)


def manager_image(api: Requests) -> tuple[str, str]:
    """Return the image of Kueue's manager, or why it could not be read; that does not fail the cluster's read."""
    try:
        found = api.get(MANAGER_PATH, "read Kueue's Deployment")
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"]), ""
    except GovernanceError as error:
        return "", str(error)
    except (LookupError, TypeError):
        return "", "Kueue's Deployment names no image"


def read_all(api: Requests, path: str, trim: Trim, what: str, parts: Parts | None = None) -> list[KubernetesObject]:
    """Read all pages; once more from the first one when the server has let the list expire meanwhile."""
    return read_list(api, path, lambda item: kept(item, trim), what, parts)[0]


def read_list(
    api: Requests, path: str, keep: Callable[[Any], Item], what: str, parts: Parts | None = None
) -> tuple[list[Item], str]:
    """Read all pages, as `read_all`; return what `keep` makes of the items, and the list's resource version.

    All pages are of one version: that of the first ("Retrieving large results sets in chunks").
    """

    def read() -> tuple[list[Item], str]:
        versions: list[str] = []

        def page(query: Mapping[str, str]) -> Mapping[str, Any]:
            answer = api.get(path, what, query, parts)
            versions.append(version_of(answer))
            return answer

        with collector_paused():
            items = [keep(item) for items in list_pages(page, what) for item in items]
        return items, versions[0]

    try:
        return read()
    except ExpiredError:
        return read()


def version_of(item: Any) -> str:
    """Return the resource version of an object or a list; "" where it has none."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    version = metadata.get("resourceVersion") if isinstance(metadata, Mapping) else None
    return version if isinstance(version, str) else ""
