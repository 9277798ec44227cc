"""Rendered Kueue objects in a cluster that no add-on governs: how each stands, and what writing it would change.

Used by `taskgov adopt`, which shows both before it writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov.adapters.kubernetes.objects import ObjectApi
from taskgov.backends.plain_eks.objects import applied, deletable, delete_judged
from taskgov.kueue.ownership import Ownership, marked, ownership_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from taskgov.adapters.kubernetes import ApiConnections
    from taskgov.kueue.render import Manifest
    from taskgov.ports import ClusterAccess

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
    ownership: Ownership
    changes: tuple[FieldChange, ...]


class KueueObjectWriter:
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
        """Take existing objects over: our fields get our values, and our ownership. Raises NotFoundError."""
        with self._connections.open(cluster) as api:
            for wanted in objects:
                ObjectApi(api).get(wanted)
                ObjectApi(api).patch(wanted, force="true")

    def delete(self, cluster: ClusterAccess, objects: Iterable[Manifest]) -> None:
        """Delete what taskgov made, in the order given; what is gone is fine.

        Raises ConflictError for what it did not make, and for a queue with workloads that hold quota.
        """
        with self._connections.open(cluster) as api:
            for manifest in objects:
                if found := deletable(ObjectApi(api), manifest):
                    delete_judged(ObjectApi(api), found)


def _inspected(api: ObjectApi, wanted: Manifest) -> Inspected:
    found = api.find(wanted)
    ownership = ownership_of(found)
    # A dry run of what is absent may lack its namespace, so what is wanted stands for what would be.
    after = api.patch(marked(wanted, ownership), dryRun="All", force="true") if found else wanted
    changes = _changes("", _content(found or {}), _content(after))
    return Inspected(wanted["kind"], wanted["metadata"]["name"], ownership, tuple(changes))


def _content(manifest: Manifest) -> Manifest:
    """Leave out what the server and the controllers write."""
    metadata = {key: value for key, value in manifest.get("metadata", {}).items() if key not in _SERVER_OWNED}
    rest = {key: value for key, value in manifest.items() if key not in {"apiVersion", "kind", "metadata", "status"}}
    return {"metadata": metadata, **rest}


def _changes(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _changes(f"{path}.{key}" if path else key, before.get(key), after.get(key))
    elif before != after:
        yield FieldChange(path, before, after)
