"""Which groups, versions and resources does the API have? Clients ask this before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov_embedded.cluster.requests import parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov_embedded.cluster.objects import KubeObject, ResourceType

READS: Final = ("get", "list", "watch")
WRITES: Final = ("create", "delete", "patch", "update")
IN_ALL: Final = {"pods", "services", "deployments", "statefulsets", "jobs"}
"""What `kubectl get all` lists."""
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


def answer(
    path: str, versions: frozenset[str], types: Sequence[ResourceType], *, writable: bool = False
) -> KubeObject | None:
    """Return what discovery has of these types at a path, or None when the path is not a discovery path."""
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
            return _resources("", "v1", versions, types, writable=writable)
        case ["apis", group, version]:
            return _resources(group, version, versions, types, writable=writable)
        case _:
            return None


def _group(name: str, versions: frozenset[str], types: Sequence[ResourceType]) -> KubeObject:
    known = next(kind.versions for kind in types if kind.group == name)
    served = [{"groupVersion": f"{name}/{version}", "version": version} for version in known if version in versions]
    return {"name": name, "versions": served, "preferredVersion": served[0] if served else None}


def _resources(
    group: str, version: str, versions: frozenset[str], types: Sequence[ResourceType], *, writable: bool
) -> KubeObject | None:
    kinds = [kind for kind in types if kind.group == group and version in kind.versions and version in versions]
    if not kinds:
        return None
    verbs = [*READS, *(WRITES if writable else ())]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version(version),
        "resources": [
            resource for kind in kinds for resource in (_resource(kind, verbs), *_parts(kind, writable=writable))
        ],
    }


def _resource(kind: ResourceType, verbs: list[str]) -> KubeObject:
    return {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": ["all"]} if kind.plural in IN_ALL else {}),
    }


def _parts(kind: ResourceType, *, writable: bool) -> list[KubeObject]:
    """Return the subresources: `scale` is an object of its own kind, `log` is text of a pod."""
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    verbs = {"scale": ["get", *(("patch", "update") if writable else ())], "log": ["get"]}
    return [
        {
            "name": f"{kind.plural}/{part}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **(scale if part == "scale" else {"kind": kind.kind}),
            "verbs": verbs[part],
        }
        for part in parts_of(kind)
    ]
