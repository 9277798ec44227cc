"""How do rendered Kueue objects get into a cluster that no add-on governs? Server-side apply, only of our own fields.

Every object is in one of four standings. *Absent*: applying creates it, and marks it as made by taskgov. *Made* and
*adopted* (a field of it is taskgov's, but not the mark): applying writes our fields. *Foreign* (nothing of it is
taskgov's): it is left alone until somebody adopts it. A field that another writer owns with another value is a
`ConflictError` that names writer and field; only adoption takes it over. Only what was made is deleted, and only
without running work. `inspect` asks the server for all this without writing anything (dry run).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from taskgov.adapters.kubernetes.connection import ApiConnections
from taskgov.errors import (
    ConflictError,
    GovernanceError,
    InvalidRequestError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)
from taskgov.kueue.render import Manifest
from taskgov.ports import ClusterAccess

FIELD_MANAGER: Final = "taskgov"
MADE: Final = "taskgov/made"
"""The annotation on what taskgov created itself."""
TIMEOUT_SECONDS: Final = (5, 30)
_PLURALS: Final = {
    "Namespace": "namespaces",
    "ResourceFlavor": "resourceflavors",
    "Cohort": "cohorts",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues",
    "WorkloadPriorityClass": "workloadpriorityclasses",
}
_ERRORS: Final[Mapping[int, type[GovernanceError]]] = {
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.BAD_REQUEST: InvalidRequestError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidRequestError,
    HTTPStatus.TOO_MANY_REQUESTS: ThrottledError,
}
_SERVER_OWNED: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


class Standing(StrEnum):
    """Whose an object is."""

    ABSENT = "absent"
    MADE = "made"
    ADOPTED = "adopted"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that applying would change; None stands for no value."""

    path: str
    present: Any
    wanted: Any


@dataclass(frozen=True, slots=True)
class Inspected:
    """How an object stands, and what applying it would change (for a foreign one: what adopting it would)."""

    kind: str
    name: str
    standing: Standing
    changes: tuple[FieldChange, ...]


class KueueBackend:
    """Writes rendered objects to a cluster's API. All methods raise ThrottledError and UpstreamError too."""

    def __init__(self, connections: ApiConnections) -> None:
        self._connections = connections

    def inspect(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> tuple[Inspected, ...]:
        """Return how each object stands, and what would change. Writes nothing."""
        with self._connections.open(cluster) as api:
            return tuple(_inspected(_Api(api), wanted) for wanted in objects)

    def apply(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> None:
        """Apply objects in the order given. Raises ConflictError at the first that is foreign or has another writer."""
        with self._connections.open(cluster) as api:
            for wanted in objects:
                _applied(_Api(api), wanted)

    def adopt(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> None:
        """Take existing objects over: our fields get our values, whoever owned them. Raises NotFoundError."""
        with self._connections.open(cluster) as api:
            for wanted in objects:
                _Api(api).get(wanted)
                _Api(api).patch(wanted, force="true")

    def delete(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> None:
        """Delete what taskgov made, in the order given; what is gone is fine.

        Raises ConflictError for what it did not make, and for a queue with workloads that hold quota.
        """
        with self._connections.open(cluster) as api:
            for one in objects:
                _deleted(_Api(api), one)


class _Api:
    """Requests for single objects, with errors in the domain's words."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    def get(self, wanted: Manifest) -> Manifest:
        return self._call("GET", wanted)

    def patch(self, wanted: Manifest, **options: str) -> Manifest:
        return self._call("PATCH", wanted, wanted, fieldManager=FIELD_MANAGER, **options)

    def delete(self, found: Manifest) -> None:
        """Delete an object only as it was read: what changed meanwhile is read and judged again."""
        preconditions = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        self._call("DELETE", found, {"preconditions": preconditions})

    def _call(self, method: str, one: Manifest, body: Manifest | None = None, **query: str) -> Manifest:
        what = f"{method} {one['kind']} {one['metadata']['name']}"
        content = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        request = self._api.param_serialize(
            method,
            _path(one),
            query_params=list(query.items()),
            header_params={"Content-Type": content, "Accept": "application/json"},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            response = self._api.call_api(*request, _request_timeout=TIMEOUT_SECONDS)
            answer: Manifest = json.loads(response.read())
        except (ApiException, urllib3.exceptions.HTTPError, json.JSONDecodeError) as error:
            raise UpstreamError(f"{what}: {error}") from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _ERRORS.get(response.status, UpstreamError)(f"{what}: {response.status} {answer.get('message')}")
        return answer


def _inspected(api: _Api, wanted: Manifest) -> Inspected:
    found = _found(api, wanted)
    standing = _standing(found)
    # A dry run of what is absent may lack its namespace, so what is wanted stands for what would be.
    after = api.patch(_marked(wanted, standing), dryRun="All", force="true") if found else wanted
    changes = _changes("", _content(found or {}), _content(after))
    return Inspected(wanted["kind"], wanted["metadata"]["name"], standing, tuple(changes))


def _applied(api: _Api, wanted: Manifest) -> None:
    standing = _standing(_found(api, wanted))
    if standing is Standing.FOREIGN:
        name = f"{wanted['kind']} {wanted['metadata']['name']}"
        raise ConflictError(f"{name} exists, and taskgov wrote nothing of it: adopt it, or give the team another name")
    api.patch(_marked(wanted, standing))


def _deleted(api: _Api, one: Manifest) -> None:
    found = _found(api, one)
    if found is None:
        return
    name = f"{one['kind']} {one['metadata']['name']}"
    if _standing(found) is not Standing.MADE:
        raise ConflictError(f"{name} was not made by taskgov: it stays")
    if holding := found.get("status", {}).get("reservingWorkloads", 0):
        raise ConflictError(f"{name} has {holding} workloads that hold quota: it stays")
    api.delete(found)


def _found(api: _Api, wanted: Manifest) -> Manifest | None:
    try:
        return api.get(wanted)
    except NotFoundError:
        return None


def _standing(found: Manifest | None) -> Standing:
    if found is None:
        return Standing.ABSENT
    if MADE in found["metadata"].get("annotations", {}):
        return Standing.MADE
    owners = {entry["manager"] for entry in found["metadata"].get("managedFields", ())}
    return Standing.ADOPTED if FIELD_MANAGER in owners else Standing.FOREIGN


def _marked(wanted: Manifest, standing: Standing) -> Manifest:
    """Mark what we make. The mark has to be in every later apply, or the server takes it away."""
    if standing not in {Standing.ABSENT, Standing.MADE}:
        return wanted
    metadata = wanted["metadata"]
    return {**wanted, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), MADE: "true"}}}


def _content(one: Manifest) -> Manifest:
    """Leave out what the server and the controllers write."""
    metadata = {key: value for key, value in one.get("metadata", {}).items() if key not in _SERVER_OWNED}
    rest = {key: value for key, value in one.items() if key not in {"apiVersion", "kind", "metadata", "status"}}
    return {"metadata": metadata, **rest}


def _changes(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _changes(f"{path}.{key}" if path else key, before.get(key), after.get(key))
    elif before != after:
        yield FieldChange(path, before, after)


def _path(one: Manifest) -> str:
    plural = _PLURALS.get(one["kind"])
    if plural is None:
        raise InvalidRequestError(f"{one['kind']} is no kind that taskgov writes")
    version, metadata = one["apiVersion"], one["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{within}/{plural}/{metadata['name']}"
