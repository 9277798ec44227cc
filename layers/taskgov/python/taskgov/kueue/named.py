"""What do people call a workload? By the job that owns it and the team whose namespace it is in."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from taskgov.hyperpod.names import team_of_namespace

KubernetesObject = Mapping[str, Any]


class Named(NamedTuple):
    """A workload with its names: `key` is Kueue's (`namespace/name`), `shown` is `team/job`."""

    key: str
    team: str
    job: str
    item: KubernetesObject

    @property
    def shown(self) -> str:
        """What people call it."""
        return f"{self.team}/{self.job}"

    @property
    def names(self) -> frozenset[str]:
        """Everything by which it may be asked for."""
        workload = self.item["metadata"]["name"]
        return frozenset({self.key, self.shown, f"{self.team}/{workload}", workload, self.job})


def owner_of(item: KubernetesObject) -> Mapping[str, Any] | None:
    """Return the reference to the owner of a workload, the one that controls it where it has several."""
    reference: Mapping[str, Any]
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller", True):
            return reference
    return None


def job_of(item: KubernetesObject) -> str:
    """Return the name of the job of a workload: its owner, or itself when nobody owns it."""
    owner = owner_of(item)
    return str(item["metadata"]["name"] if owner is None else owner["name"])


def named(item: KubernetesObject) -> Named:
    """Return a workload with its names."""
    metadata = item["metadata"]
    namespace, name = metadata.get("namespace") or "", metadata["name"]
    key = f"{namespace}/{name}" if namespace else name
    return Named(key, team_of_namespace(namespace) or namespace, job_of(item), item)
