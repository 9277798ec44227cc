"""What does a request to the cluster's API name, and how is one refused? Paths in, targets and `Status` objects out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov_embedded.cluster.objects import KUEUE_GROUP, RESOURCE_TYPES, KubeObject, ResourceType
from taskgov_embedded.cluster.versions import as_v1beta1, as_v1beta2

if TYPE_CHECKING:
    from collections.abc import Sequence

BUILT_IN_GROUPS: Final = frozenset({"", "apps", "batch", "apiextensions.k8s.io", "admissionregistration.k8s.io"})
"""Groups of Kubernetes itself. Only their types say how lists merge, and their lists leave out the items' kind."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a resource type in a version, maybe in a namespace, maybe one object, maybe a part of it."""

    kind: ResourceType
    version: str
    namespace: str | None
    name: str | None
    subresource: str | None = None

    @property
    def resource(self) -> str:
        """Its name in RBAC: `deployments`, `deployments/scale`."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """The request is answered with a `Status` of this code and reason."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason

    def status(self) -> KubeObject:
        """Return the Status object with which Kubernetes answers what it refuses."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }


def target_of(path: str, types: Sequence[ResourceType], versions: frozenset[str]) -> Target:
    """Read `/api/v1/...` or `/apis/<group>/<version>/...`, then `[namespaces/<namespace>/]<plural>[/<name>[/<part>]]`.

    Raises Refusal (404) for what is not served.
    """
    parts = path.strip("/").split("/")
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise Refusal(404, "NotFound", f"the server has nothing at {path}")
    namespace = None
    if len(rest) >= 3 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    kind = RESOURCE_TYPES.get(rest[0]) if rest else None
    served = kind in types and kind is not None and kind.group == group and version in kind.versions
    if kind is None or not served or version not in versions or len(rest) > 3:
        raise Refusal(404, "NotFound", "the server could not find the requested resource")
    name, part = (*rest[1:], None, None)[:2]
    if part is not None and part not in parts_of(kind):
        raise Refusal(404, "NotFound", "the server could not find the requested resource")
    return Target(kind, version, namespace, name, part)


def parts_of(kind: ResourceType) -> tuple[str, ...]:
    """Return the subresources of a type that are served."""
    if kind.scales:
        return ("scale",)
    return ("log",) if kind.plural == "pods" else ()


def in_version(item: KubeObject, version: str) -> KubeObject:
    """Return a stored object as a version of the API shows it."""
    return as_v1beta1(item) if version == "v1beta1" else item


def in_stored_form(item: KubeObject, kind: ResourceType) -> KubeObject:
    """Return an object of any served version in the form in which it is stored."""
    return as_v1beta2(item) if kind.group == KUEUE_GROUP else item
