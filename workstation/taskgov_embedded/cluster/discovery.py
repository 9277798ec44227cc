"""Which groups, versions and resources does the API have? Clients ask this before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov_embedded.cluster.objects import KubeObject, ResourceType

KUBERNETES_VERSION: Final = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.4-eks-simulated",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}


def answer(path: str, versions: frozenset[str], types: Sequence[ResourceType]) -> KubeObject | None:
    """Return what discovery has of these types at a path, or None when the path is no discovery path."""
    match path.strip("/").split("/"):
        case ["version"]:
            return dict(KUBERNETES_VERSION)
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            names = sorted({kind.group for kind in types} - {""})
            groups = [_group(name, versions, types) for name in names]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["api", "v1"]:
            return _resources("", "v1", versions, types)
        case ["apis", group, version]:
            return _resources(group, version, versions, types)
        case _:
            return None


def _group(name: str, versions: frozenset[str], types: Sequence[ResourceType]) -> KubeObject:
    known = next(kind.versions for kind in types if kind.group == name)
    served = [{"groupVersion": f"{name}/{one}", "version": one} for one in known if one in versions]
    return {"name": name, "versions": served, "preferredVersion": served[0] if served else None}


def _resources(group: str, version: str, versions: frozenset[str], types: Sequence[ResourceType]) -> KubeObject | None:
    kinds = [kind for kind in types if kind.group == group and version in kind.versions and version in versions]
    if not kinds:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version(version),
        "resources": [_resource(kind) for kind in kinds],
    }


def _resource(kind: ResourceType) -> KubeObject:
    return {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": ["get", "list"],
    }
