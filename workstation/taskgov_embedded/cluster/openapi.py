"""What does the API say of itself in OpenAPI v3? Enough for kubectl to leave validation to the server.

kubectl looks for the query parameter `fieldValidation` at the patch of a kind (`QueryParamVerifierV3`), and then sends
manifests without checking them against schemas. There are none here: kubectl would also read from them how lists
merge, and has that built in for built-in kinds. The server finds unknown fields by `fields.unknown_fields`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov_embedded.cluster.objects import KubeObject, ResourceType

ROOT = "/openapi/v3"


def answer(path: str, versions: frozenset[str], types: Sequence[ResourceType]) -> KubeObject | None:
    """Return the index, the document of a group and version, or None for another path."""
    groups = _groups(versions, types)
    if path == ROOT:
        return {"paths": {place: {"serverRelativeURL": f"{ROOT}/{place}"} for place in groups}}
    place = path.removeprefix(f"{ROOT}/")
    return _document(groups[place]) if path.startswith(ROOT) and place in groups else None


def _groups(versions: frozenset[str], types: Sequence[ResourceType]) -> dict[str, list[tuple[ResourceType, str]]]:
    found: dict[str, list[tuple[ResourceType, str]]] = {}
    for kind in types:
        for version in (known for known in kind.versions if known in versions):
            place = f"apis/{kind.group}/{version}" if kind.group else f"api/{version}"
            found.setdefault(place, []).append((kind, version))
    return found


def _document(kinds: Sequence[tuple[ResourceType, str]]) -> KubeObject:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Simulated cluster", "version": "v1"},
        "paths": dict(_path(kind, version) for kind, version in kinds),
        "components": {"schemas": {}},
    }


def _path(kind: ResourceType, version: str) -> tuple[str, dict[str, Any]]:
    base = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    place = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    told = {"group": kind.group, "version": version, "kind": kind.kind}
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    patch = {"parameters": parameters, "responses": {"200": {"description": "OK"}}}
    return f"{place}/{{name}}", {"patch": {**patch, "x-kubernetes-group-version-kind": told}}
