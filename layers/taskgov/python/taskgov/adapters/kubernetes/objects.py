"""Requests for single Kubernetes objects, and short lists of them, with errors in the domain's words.

What the `kueue` backend writes with. Workloads and nodes, of which there are many, are read by `KubernetesReader`.
"""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from taskgov.adapters.kubernetes.reader import PAGE, TIMEOUT_SECONDS
from taskgov.errors import (
    ConflictError,
    GovernanceError,
    InvalidRequestError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)
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
_ERRORS: Final[Mapping[int, type[GovernanceError]]] = {
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.BAD_REQUEST: InvalidRequestError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidRequestError,
    HTTPStatus.TOO_MANY_REQUESTS: ThrottledError,
}


class ObjectApi:
    """Requests over one open connection."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

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
        token: str | None = None
        while True:
            more = {"limit": str(PAGE), **query, **({"continue": token} if token else {})}
            page = self._request("GET", _root(api_version, kind), f"list {_PLURALS[kind]}", None, more)
            for item in page["items"]:
                yield {**item, "apiVersion": api_version, "kind": kind}
            token = page["metadata"].get("continue")
            if not token:
                return

    def patch(self, wanted: Manifest, **options: str) -> Manifest:
        """Apply an object server-side, as taskgov; return it as stored."""
        return self._call("PATCH", wanted, wanted, fieldManager=FIELD_MANAGER, **options)

    def delete(self, found: Manifest) -> None:
        """Delete an object only as it was read: what changed meanwhile is read and judged again."""
        preconditions = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        self._call("DELETE", found, {"preconditions": preconditions})

    def serves(self, api_version: str) -> bool:
        """Say whether the cluster serves a version of an API group."""
        try:
            self._request("GET", f"/apis/{api_version}", f"ask for {api_version}", None, {})
        except NotFoundError:
            return False
        return True

    def _call(self, method: str, one: Manifest, body: Manifest | None = None, **query: str) -> Manifest:
        metadata = one["metadata"]
        path = f"{_root(one['apiVersion'], one['kind'], metadata.get('namespace'))}/{metadata['name']}"
        return self._request(method, path, f"{method} {one['kind']} {metadata['name']}", body, query)

    def _request(
        self, method: str, path: str, what: str, body: Manifest | None, query: Mapping[str, str]
    ) -> dict[str, Any]:
        content = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        request = self._api.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Content-Type": content, "Accept": "application/json"},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            response = self._api.call_api(*request, _request_timeout=TIMEOUT_SECONDS)
            text = response.read()
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            raise UpstreamError(f"{what}: {error}") from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _ERRORS.get(response.status, UpstreamError)(f"{what}: {response.status} {_sentence(text)}")
        try:
            answer: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError as error:
            raise UpstreamError(f"{what}: {error}") from error
        return answer


def _sentence(text: bytes) -> str:
    """Return the message of the Status object that the server sent, or what it sent instead."""
    try:
        return str(json.loads(text)["message"])
    except (json.JSONDecodeError, KeyError, TypeError):
        return text.decode(errors="replace")[:200]


def _root(api_version: str, kind: str, namespace: str | None = None) -> str:
    plural = _PLURALS.get(kind)
    if plural is None:
        raise InvalidRequestError(f"{kind} is no kind that taskgov writes")
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}{f'/namespaces/{namespace}' if namespace else ''}/{plural}"
