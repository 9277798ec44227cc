"""How do rendered Kueue objects get into a cluster that no add-on governs? Server-side apply, only of our own fields.

Every object is in one of four standings. *Absent*: applying creates it, and marks it as made by taskgov. *Made* and
*adopted* (a field of it is taskgov's, but not the mark): applying writes our fields. *Foreign* (nothing of it is
taskgov's): it is left alone until somebody adopts it. A field that another writer owns with another value is a
`ConflictError` that names writer and field; only adoption takes it over. Only what was made is deleted, and only
without running work. `inspect` asks the server for all this without writing anything (dry run).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from taskgov.adapters.kubernetes.connection import ApiConnections
from taskgov.adapters.kubernetes.objects import ObjectApi
from taskgov.errors import ConflictError, UpstreamError
from taskgov.kueue.ownership import Standing, marked, standing_of
from taskgov.kueue.render import Manifest
from taskgov.ports import ClusterAccess

TRIES: Final = 8
"""Kueue writes a queue's status whenever work comes or goes; a write that met with one is tried again."""
_SERVER_OWNED: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


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
            return tuple(_inspected(ObjectApi(api), wanted) for wanted in objects)

    def apply(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> None:
        """Apply objects in the order given. Raises ConflictError at the first that is foreign or has another writer."""
        with self._connections.open(cluster) as api:
            for wanted in objects:
                applied(ObjectApi(api), wanted)

    def adopt(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> None:
        """Take existing objects over: our fields get our values, whoever owned them. Raises NotFoundError."""
        with self._connections.open(cluster) as api:
            for wanted in objects:
                ObjectApi(api).get(wanted)
                ObjectApi(api).patch(wanted, force="true")

    def delete(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> None:
        """Delete what taskgov made, in the order given; what is gone is fine.

        Raises ConflictError for what it did not make, and for a queue with workloads that hold quota.
        """
        with self._connections.open(cluster) as api:
            for one in objects:
                if found := deletable(ObjectApi(api), one):
                    delete_judged(ObjectApi(api), found)


def _inspected(api: ObjectApi, wanted: Manifest) -> Inspected:
    found = api.find(wanted)
    standing = standing_of(found)
    # A dry run of what is absent may lack its namespace, so what is wanted stands for what would be.
    after = api.patch(marked(wanted, standing), dryRun="All", force="true") if found else wanted
    changes = _changes("", _content(found or {}), _content(after))
    return Inspected(wanted["kind"], wanted["metadata"]["name"], standing, tuple(changes))


def applied(api: ObjectApi, wanted: Manifest, *, force: bool = False, **annotations: str) -> Manifest:
    """Apply one object and return it as stored.

    Raises ConflictError when it is foreign, and, unless forced, when another writer owns one of the fields.
    """
    standing = standing_of(api.find(wanted))
    if standing is Standing.FOREIGN:
        name = f"{wanted['kind']} {wanted['metadata']['name']}"
        raise ConflictError(f"{name} exists, and taskgov wrote nothing of it: adopt it, or give the team another name")
    return api.patch(marked(wanted, standing, **annotations), **({"force": "true"} if force else {}))


def deletable(api: ObjectApi, one: Manifest) -> Manifest | None:
    """Return an object as read if it may be deleted, or None when it is gone; ConflictError when it has to stay."""
    found = api.find(one)
    if found is None:
        return None
    name = f"{one['kind']} {one['metadata']['name']}"
    if standing_of(found) is not Standing.MADE:
        raise ConflictError(f"{name} was not made by taskgov: it stays")
    if holding := _holding(api, found):
        raise ConflictError(f"{name} has {holding} workloads that hold quota: it stays")
    return found


def delete_judged(api: ObjectApi, found: Manifest) -> None:
    """Delete what `deletable` returned. Kueue may write its status meanwhile: then it is read and judged once more.

    Raises ConflictError when it has to stay now, UpstreamError when it changes faster than it can be deleted.
    """
    judged: Manifest | None = found
    for _ in range(TRIES):
        if judged is None:
            return None
        try:
            return api.delete(judged)
        except ConflictError:
            judged = deletable(api, found)
    raise UpstreamError(f"{found['kind']} {found['metadata']['name']} changes faster than it can be deleted")


def _holding(api: ObjectApi, found: Manifest) -> int:
    """Count the workloads that hold quota of a queue: by themselves, because a queue's own count follows later."""
    if found["kind"] != "ClusterQueue":
        return 0
    admissions = (one.get("status", {}).get("admission") for one in api.list(found["apiVersion"], "Workload"))
    return sum(one is not None and one["clusterQueue"] == found["metadata"]["name"] for one in admissions)


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
