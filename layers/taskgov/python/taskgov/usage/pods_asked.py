"""What do the pods of a workload request, and on which instance type? Pods of one shape are read once."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from taskgov.hyperpod import names
from taskgov.quantities import ResourceName, is_accelerator
from taskgov.scheduling.demand import pod_requests
from taskgov.scheduling.shapes import KNOWN, value_of
from taskgov.snapshot.model import KubernetesObject


class PodsAsked(NamedTuple):
    """Equal pods of one workload."""

    instance_type: str | None
    """The one that their node selector names."""
    number: int
    requests: tuple[tuple[ResourceName, int], ...]
    """What one of them requests, in base units."""


@lru_cache(maxsize=KNOWN)
def accelerators_of(asks: tuple[PodsAsked, ...]) -> int:
    """Return how many accelerators a workload requests; a partition of one counts as one."""
    return sum(pods.number * n for pods in asks for name, n in pods.requests if is_accelerator(name))


def asked_by(pod_sets: Sequence[KubernetesObject], shape: bytes | None) -> tuple[PodsAsked, ...]:
    """Read pod sets; those of one shape (`taskgov.scheduling.shapes`) are read once."""
    return tuple(map(_asked, pod_sets)) if shape is None else _asked_by_shape(shape)


@lru_cache(maxsize=KNOWN)
def _asked_by_shape(shape: bytes) -> tuple[PodsAsked, ...]:
    return tuple(map(_asked, value_of(shape)))


def _asked(pod_set: KubernetesObject) -> PodsAsked:
    """Read a pod set as it is written: what the cluster adds to its pods or excludes of them is not known here."""
    pod = (pod_set.get("template") or {}).get("spec") or {}
    return PodsAsked(selected_type(pod_set), pod_set.get("count", 1), tuple(sorted(pod_requests(pod).items())))


def selected_type(pod_set: KubernetesObject) -> str | None:
    """Return the instance type that the node selector of a pod set names."""
    pod = (pod_set.get("template") or {}).get("spec") or {}
    selected: str | None = (pod.get("nodeSelector") or {}).get(names.INSTANCE_TYPE_LABEL)
    return selected
