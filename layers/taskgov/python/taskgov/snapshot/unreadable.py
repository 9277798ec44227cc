"""What cannot be read and is left out, too new or damaged: items of the table, what Kubernetes or SageMaker says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from taskgov import keys
from taskgov.errors import UpstreamError
from taskgov.hyperpod.names import team_of_cluster_queue

CLUSTER_NODE: Final = "ClusterNode"
COMPUTE_QUOTA: Final = "ComputeQuota"
INSTANCE_GROUP: Final = "InstanceGroup"
SCHEDULER_CONFIG: Final = "ClusterSchedulerConfig"
MACHINES: Final = frozenset({"Node", CLUSTER_NODE})
"""Kinds of which one that is left out counts as it did."""
PROMISES: Final = frozenset({COMPUTE_QUOTA, INSTANCE_GROUP, SCHEDULER_CONFIG})
"""Kinds without which promises or machines are unknown: nothing is written while one is left out."""
_NAMES: Final = {
    CLUSTER_NODE: "InstanceId",
    COMPUTE_QUOTA: "ComputeQuotaId",
    INSTANCE_GROUP: "InstanceGroupName",
    SCHEDULER_CONFIG: "ClusterSchedulerConfigId",
    "Cluster": "ClusterName",
}
"""Where structures of SageMaker have their name."""


@dataclass(frozen=True, slots=True)
class UnreadableItem:
    """One item, by its keys, and why it cannot be read."""

    pk: str
    sk: str
    because: str

    def __str__(self) -> str:
        """Return the sentence that an error says."""
        return f"the item {self.sk} of {self.pk} cannot be read: {self.because}"

    @property
    def quota_id(self) -> str | None:
        """The quota whose record it is, if it is one."""
        return self.sk.removeprefix(keys.QUOTA) if self.sk.startswith(keys.QUOTA) else None


class UnreadableItemError(UpstreamError):
    """An item that is needed cannot be read. The error says which, and why."""

    def __init__(self, item: UnreadableItem) -> None:
        super().__init__(str(item))
        self.item = item


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """One object of Kubernetes or structure of SageMaker, and how it differs from the form of its kind.

    `name` is "" where it has none; quotas, cluster policies and machines of SageMaker have their ids there.
    """

    kind: str
    name: str
    because: str
    namespace: str = ""
    is_finished: bool = False
    """Whether it is a Workload whose condition `Finished` is true: it neither holds quota nor waits for any."""

    def __str__(self) -> str:
        """Return the object's name, and why it cannot be read."""
        return f"{self.shown}: {self.because}"

    @property
    def shown(self) -> str:
        """Return namespace and name."""
        name = self.name or "one without a name"
        return f"{self.namespace}/{name}" if self.namespace else name

    @property
    def team(self) -> str | None:
        """The team whose ClusterQueue it is, if it is one and its name says whose."""
        return (team_of_cluster_queue(self.name) or self.name) if self.kind == "ClusterQueue" and self.name else None

    @classmethod
    def of(cls, kind: str, item: object, because: str) -> Self:
        """Return what can be read of an object that cannot be read."""
        if kind in _NAMES:
            return cls(kind, _text(item.get(_NAMES[kind])) if isinstance(item, Mapping) else "", because)
        metadata = item.get("metadata") if isinstance(item, Mapping) else None
        named = metadata if isinstance(metadata, Mapping) else {}
        name, namespace = named.get("name"), named.get("namespace")
        return cls(kind, _text(name), because, _text(namespace), kind == "Workload" and _is_finished(item))


class UnreadableObjectError(UpstreamError):
    """What was requested has another form than its kind."""

    def __init__(self, odd: UnreadableObject) -> None:
        super().__init__(f"{odd.kind} {odd}")
        self.odd = odd


def _is_finished(item: object) -> bool:
    """Return whether a Workload says so, whatever else is odd about it."""
    status = item.get("status") if isinstance(item, Mapping) else None
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return any(
        isinstance(condition, Mapping) and (condition.get("type"), condition.get("status")) == ("Finished", "True")
        for condition in (conditions if isinstance(conditions, list) else ())
    )


def _text(value: object) -> str:
    """Return text that can be stored; anything else is none."""
    if not isinstance(value, str):
        return ""
    return value.encode(errors="replace").decode()
