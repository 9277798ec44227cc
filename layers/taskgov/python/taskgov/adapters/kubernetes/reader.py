"""What do nodes and Kueue's objects look like right now? Read page by page, trimmed as they arrive."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from taskgov.adapters.kubernetes.connection import ApiConnections
from taskgov.adapters.kubernetes.trimming import trimmed, trimmed_node, trimmed_workload
from taskgov.errors import ConflictError, GovernanceError, NotFoundError, ThrottledError, UpstreamError
from taskgov.ports import ClusterAccess
from taskgov.snapshot.model import KubernetesObject, KueueObjects

GROUP: Final = "kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
"""Preferred first: the add-on serves v1beta2 since Kueue 0.15, older ones only v1beta1."""
PAGE: Final = 500
TIMEOUT_SECONDS: Final = (5, 30)
"""To connect, and to wait for data."""
GONE: Final = 410

# Raw JSON: the client's models cost time and memory, and custom resources have none.
_RAW: Final[dict[str, Any]] = {"_preload_content": False, "_request_timeout": TIMEOUT_SECONDS}

_ListPage = Callable[..., Any]


class KubernetesReader:
    """The `KubernetesApi` port over a cluster's API."""

    def __init__(self, connections: ApiConnections) -> None:
        self._connections = connections

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        """Return all nodes. Raises ThrottledError, UpstreamError, NotFoundError."""
        with self._connections.open(cluster) as api:
            return _all(client.CoreV1Api(api).list_node, trimmed_node, "list nodes")

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        """Return Kueue's objects, in the newest version that is served; NotFoundError when Kueue is not installed."""
        with self._connections.open(cluster) as api:
            custom = client.CustomObjectsApi(api)
            version, served = _served(custom)

            def all_of(
                plural: str, trim: Callable[[KubernetesObject], KubernetesObject] = trimmed
            ) -> tuple[KubernetesObject, ...]:
                def list_page(**options: Any) -> Any:
                    return custom.list_cluster_custom_object(GROUP, version, plural, **options)

                return tuple(_all(list_page, trim, f"list {plural}")) if plural in served else ()

            return KueueObjects(
                resource_flavors=all_of("resourceflavors"),
                cohorts=all_of("cohorts"),
                cluster_queues=all_of("clusterqueues"),
                local_queues=all_of("localqueues"),
                priority_classes=all_of("workloadpriorityclasses"),
                workloads=all_of("workloads", trimmed_workload),
            )


def _served(custom: client.CustomObjectsApi) -> tuple[str, frozenset[str]]:
    """Return the version to read and the types it has (cohorts came later than the rest)."""
    for version in VERSIONS:
        try:
            with _translated(f"ask for {GROUP}/{version}"):
                found = _loaded(custom.get_api_resources(GROUP, version, **_RAW))
        except NotFoundError:
            continue
        return version, frozenset(resource["name"] for resource in found["resources"])
    raise NotFoundError(f"the cluster serves none of {', '.join(VERSIONS)} of {GROUP}: is Kueue installed?")


def _all(
    list_page: _ListPage, trim: Callable[[KubernetesObject], KubernetesObject], what: str
) -> list[KubernetesObject]:
    """Read all pages; once more from the first one when the server has let the list expire meanwhile."""
    try:
        return list(_pages(list_page, trim, what))
    except _ExpiredError:
        return list(_pages(list_page, trim, what))


def _pages(
    list_page: _ListPage, trim: Callable[[KubernetesObject], KubernetesObject], what: str
) -> Iterator[KubernetesObject]:
    token: str | None = None
    while True:
        with _translated(what):
            page = _loaded(list_page(limit=PAGE, _continue=token, **_RAW))
        yield from map(trim, page["items"])
        token = page["metadata"].get("continue")
        if not token:
            return


def _loaded(response: Any) -> Any:
    return json.loads(response.read())


class _ExpiredError(UpstreamError):
    """The continue token is too old (410): the list has to start again."""


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn the client's errors into the domain's. Refused access stays an UpstreamError with the server's sentence."""
    try:
        yield
    except ApiException as error:
        raise _domain_error(error.status)(f"{what}: {error.status} {_sentence(error)}") from error
    except (urllib3.exceptions.HTTPError, json.JSONDecodeError) as error:
        raise UpstreamError(f"{what}: {error}") from error


def _sentence(error: ApiException) -> str:
    """Return the message of the Status object that the server sent, or the HTTP reason when it sent none."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (json.JSONDecodeError, KeyError, TypeError):
        return str(error.reason)


def _domain_error(status: int | None) -> type[GovernanceError]:
    known = {404: NotFoundError, 409: ConflictError, GONE: _ExpiredError, 429: ThrottledError}
    return known.get(status or 0, UpstreamError)
