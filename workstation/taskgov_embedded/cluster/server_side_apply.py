"""What does server-side apply make of an object? Fields have owners; who applies gives up what it leaves out.

As the API server does it, with two simplifications: every list is taken as a whole (as the lists are that the product
writes: `resourceGroups`), and an `Update` takes each field whose value it changes. Held to the real API server by tests
that run on both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov_embedded.cluster.objects import KubeObject

Path = tuple[str, ...]
_NOT_OWNED: Final = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
_SERVERS: Final = {"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "deletionTimestamp"}


class ApplyConflictError(Exception):
    """Another manager owns a field with another value, or the object is not the one that was read."""


def applied(existing: KubeObject | None, body: Mapping[str, Any], manager: str, *, force: bool) -> KubeObject:
    """Return the object after `manager` has applied `body`. Raises ApplyConflictError."""
    wanted = dict(_leaves(body))
    if existing is None:
        return _with_owners(_without_server_fields(body), {manager: ("Apply", set(wanted))})
    _require_version(existing, body)
    owners = _owners(existing)
    present = dict(_leaves(existing))
    differing = {path for path, value in wanted.items() if present.get(path, _ABSENT) != value}
    conflicts = {
        path: other for other, (_, paths) in sorted(owners.items()) if other != manager for path in differing & paths
    }
    if conflicts and not force:
        told = "\n".join(f'conflict with "{other}": .{".".join(path)}' for path, other in sorted(conflicts.items()))
        raise ApplyConflictError(f"Apply failed with {len(conflicts)} conflicts: {told}")
    elsewhere = {path for other, (_, paths) in owners.items() if other != manager for path in paths}
    given_up = owners.get(manager, ("Apply", set()))[1] - set(wanted) - elsewhere
    result = _built({path: value for path, value in {**present, **wanted}.items() if path not in given_up}, existing)
    kept = {other: (how, paths - differing) for other, (how, paths) in owners.items() if other != manager}
    return _with_owners(result, {**kept, manager: ("Apply", set(wanted))})


def created(body: Mapping[str, Any], manager: str) -> KubeObject:
    """Return a new object as `manager` creates it without server-side apply: it owns every field."""
    item = {name: value for name, value in _without_server_fields(body).items() if name != "status"}
    return _with_owners(item, {manager: ("Update", set(dict(_leaves(item))))})


def updated(existing: KubeObject, after: Mapping[str, Any], manager: str) -> KubeObject:
    """Return the object after `manager` has replaced its content: it owns what it changed, nobody what it took away."""
    before, now = dict(_leaves(existing)), dict(_leaves(after))
    changed = {path for path, value in now.items() if before.get(path, _ABSENT) != value}
    kept = {other: (how, (paths & set(now)) - changed) for other, (how, paths) in _owners(existing).items()}
    own = kept.pop(manager, ("Update", set()))[1]
    return _with_owners(_built(now, existing), {**kept, manager: ("Update", own | changed)})


_ABSENT: Final = object()


def _leaves(item: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, value in item.items():
        here = (*path, name)
        if here in _NOT_OWNED or here == ("status",) or (path == ("metadata",) and name in _SERVERS):
            continue
        if isinstance(value, dict) and value:
            yield from _leaves(value, here)
        else:
            yield here, value


def _built(leaves: Mapping[Path, Any], existing: KubeObject) -> KubeObject:
    """Put an object together from its fields, and from what of it nobody owns."""
    metadata = {name: value for name, value in existing["metadata"].items() if name in {"name", "namespace", *_SERVERS}}
    status = {"status": existing["status"]} if "status" in existing else {}
    result: KubeObject = {"apiVersion": existing["apiVersion"], "kind": existing["kind"], "metadata": metadata}
    for path, value in leaves.items():
        place = result
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = value
    return {**result, **status}


def _without_server_fields(body: Mapping[str, Any]) -> KubeObject:
    metadata = {name: value for name, value in body["metadata"].items() if name not in _SERVERS}
    return {**body, "metadata": metadata}


def _require_version(existing: KubeObject, body: Mapping[str, Any]) -> None:
    asked = body["metadata"].get("resourceVersion")
    if asked is not None and asked != existing["metadata"]["resourceVersion"]:
        raise ApplyConflictError("the object has been modified; please apply your changes to the latest version")


def _owners(item: Mapping[str, Any]) -> dict[str, tuple[str, set[Path]]]:
    entries = item["metadata"].get("managedFields", ())
    return {entry["manager"]: (entry["operation"], set(_read(entry["fieldsV1"]))) for entry in entries}


def _with_owners(item: KubeObject, owners: Mapping[str, tuple[str, set[Path]]]) -> KubeObject:
    entries = [
        {"manager": manager, "operation": how, "fieldsType": "FieldsV1", "fieldsV1": _fields(paths)}
        for manager, (how, paths) in sorted(owners.items())
        if paths
    ]
    return {**item, "metadata": {**item["metadata"], "managedFields": entries}}


def _fields(paths: set[Path]) -> dict[str, Any]:
    """Write paths as the API does: `f:spec` -> `f:stopPolicy` -> {}."""
    fields: dict[str, Any] = {}
    for path in sorted(paths):
        place = fields
        for part in path:
            place = place.setdefault(f"f:{part}", {})
    return fields


def _read(fields: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    for name, inner in fields.items():
        here = (*path, name.removeprefix("f:"))
        if inner:
            yield from _read(inner, here)
        else:
            yield here
