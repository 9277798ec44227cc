"""Requests for single Kubernetes objects, and short lists of them, with errors in the domain's words.

What the `kueue` backend writes with. Workloads and nodes are many, and are read by `KubernetesReader`.
"""

from collections.abc import Iterator
from typing import Final

from kubernetes import client

from taskgov.adapters.kubernetes.paging import list_pages
from taskgov.adapters.kubernetes.request import Requests
from taskgov.errors import InvalidRequestError, NotFoundError
from taskgov.kueue.ownership import FIELD_MANAGER
from taskgov.kueue.render import Manifest

_PLURALS: Final = {
    "Namespace": "namespaces",
    "ResourceFlavor": "resourceflavors",
    "Cohort": "cohorts",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues",
    "WorkloadPriorityClass": "workloadpriorityclasses",
    "Workload": "workloads",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


class ObjectApi:
    """Requests over one open connection."""

    def __init__(self, api: client.ApiClient) -> None:
        self._requests = Requests(api)

    def get(self, wanted: Manifest) -> Manifest:
        """Return an object as stored. Raises NotFoundError."""
        return self._call("GET", wanted)

    def find(self, wanted: Manifest) -> Manifest | None:
        """Return an object as stored, or None."""
        try:
            return self.get(wanted)
        except NotFoundError:
            return None

    def list(self, api_version: str, kind: str, **query: str) -> Iterator[Manifest]:
        """Return all objects of a kind, in all namespaces, with their kind on them."""
        path, what = _root(api_version, kind), f"list {_PLURALS[kind]}"
        for page in list_pages(lambda more: self._requests.get(path, what, {**query, **more}), what):
            for item in page:
                yield {**item, "apiVersion": api_version, "kind": kind}

    def patch(self, wanted: Manifest, **options: str) -> Manifest:
        """Apply an object server-side, as taskgov; return it as stored."""
        return self._call("PATCH", wanted, wanted, fieldManager=FIELD_MANAGER, **options)

    def delete(self, found: Manifest) -> None:
        """Delete an object only as it was read: what changed meanwhile is read and judged again."""
        preconditions = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        self._call("DELETE", found, {"preconditions": preconditions})

    def serves(self, api_version: str) -> bool:
        """Return whether the cluster serves a version of an API group."""
        try:
            self._requests.get(f"/apis/{api_version}", f"ask for {api_version}")
        except NotFoundError:
            return False
        return True

    def _call(self, method: str, item: Manifest, body: Manifest | None = None, **query: str) -> Manifest:
        metadata = item["metadata"]
        path = f"{_root(item['apiVersion'], item['kind'], metadata.get('namespace'))}/{metadata['name']}"
        return self._requests.send(method, path, f"{method} {item['kind']} {metadata['name']}", body, query)


def _root(api_version: str, kind: str, namespace: str | None = None) -> str:
    plural = _PLURALS.get(kind)
    if plural is None:
        raise InvalidRequestError(f"taskgov does not write objects of kind {kind}")
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}{f'/namespaces/{namespace}' if namespace else ''}/{plural}"
