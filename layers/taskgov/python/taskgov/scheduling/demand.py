"""What does a workload ask for in all? Its pod sets with counts, total requests in Kueue's order, and flavor groups.

Workloads of equal shape share one `Demand`: it is what makes two of them equivalent for the scheduler, next to their
priority.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from taskgov.quantities import CPU, HUGEPAGES_PREFIX, MEMORY, PODS, add, parse, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskgov.scheduling.objects import PodSet


@dataclass(frozen=True, slots=True)
class PodSetDemand:
    """One pod set at a given count; `requests` are totals, in the order in which Kueue visits resources."""

    pod_set: PodSet
    count: int
    requests: Mapping[str, int]
    with_pods: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """All pod sets of a workload, and the indexes of those that must get flavors together, in order.

    Compared by identity: `demand_of` makes one per shape.
    """

    pod_sets: tuple[PodSetDemand, ...]
    groups: tuple[tuple[int, ...], ...]
    can_shrink: bool


@lru_cache(maxsize=65536)
def demand_of(pod_sets: tuple[PodSet, ...], reclaimable: tuple[tuple[str, int], ...]) -> Demand:
    """Return the demand of `pod_sets` without the pods that are `reclaimable` (finished and not needed again)."""
    gone = dict(reclaimable)
    return resized(pod_sets, [max(0, p.count - gone.get(p.name, 0)) for p in pod_sets])


def resized(pod_sets: tuple[PodSet, ...], counts: Sequence[int]) -> Demand:
    """Return the demand of `pod_sets` at other counts (partial admission)."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        groups.setdefault(("group", pod_set.group) if pod_set.group else ("single", str(index)), []).append(index)
    return Demand(
        pod_sets=tuple(_pod_set_demand(p, count) for p, count in zip(pod_sets, counts, strict=True)),
        groups=tuple(tuple(indexes) for indexes in groups.values()),
        can_shrink=any(p.min_count is not None and p.min_count < p.count for p in pod_sets),
    )


def total(parts: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """Sum requests of pod sets that share flavors, saturating, in Kueue's order."""
    if len(parts) == 1:
        return parts[0]
    names = {name for part in parts for name in part}
    summed = dict.fromkeys(sorted(names, key=fnv1a), 0)
    for part in parts:
        for name, amount in part.items():
            summed[name] = add(summed[name], amount)
    return summed


@lru_cache(maxsize=1024)
def fnv1a(text: str) -> int:
    """Hash a resource name with FNV-1a, 64 bit: the order in which Kueue visits resources (`slice_requests.go`).

    Example:
        >>> hex(fnv1a("a"))
        '0xaf63dc4c8601ec8c'

    """
    digest = 0xCBF29CE484222325
    for byte in text.encode():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest


def _pod_set_demand(pod_set: PodSet, count: int) -> PodSetDemand:
    requests = {r: times(amount, count) for r, amount in pod_set.requests}
    return PodSetDemand(pod_set, count, _ordered(requests), _ordered(requests | {PODS: count}))


def _ordered(requests: Mapping[str, int]) -> Mapping[str, int]:
    return {r: requests[r] for r in sorted(requests, key=fnv1a)}


def pod_requests(pod: Mapping[str, Any]) -> dict[str, int]:
    """Sum what one pod requests, as the Kubernetes scheduler counts it.

    Containers and sidecars add up; ordinary init containers run one after another before, so the largest counts.
    Missing requests default to limits; requests at pod level win, where there are any (of cpu, memory and huge pages);
    overhead comes on top.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.get("initContainers") or ():
        need = _requests(container)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, need)
            need = running
        else:
            need = _sum(running, need)
        peak = _max(peak, need)
    for container in pod.get("containers") or ():
        running = _sum(running, _requests(container))
    total = _max(running, peak) | {r: amount for r, amount in _requests(pod).items() if _is_of_pods(r)}
    return _sum(total, amounts(pod.get("overhead")))


def _is_of_pods(resource: str) -> bool:
    """Return whether pods request a resource by themselves (`IsSupportedPodLevelResource` of component-helpers)."""
    return resource in {CPU, MEMORY} or resource.startswith(HUGEPAGES_PREFIX)


_LAYOUT: Final = ("affinity", "runtimeClassName", "priority", "topologySpreadConstraints", "resourceClaims")


def layout(pod: Mapping[str, Any], *, recounted: bool = False) -> str:
    """Return what else belongs to the shape of a pod (`SpecShape` in `pkg/util/pod/pod.go`); "" for a plain one.

    A plain pod is one container that only requests resources: its requests, selector and tolerations say it all,
    unless they were `recounted`: transformed, or some of them excluded.
    """
    containers = list(pod.get("containers") or ())
    others = [pod.get(name) for name in ("initContainers", "overhead", "resources", *_LAYOUT)]
    if len(containers) == 1 and not recounted and not any(others) and not containers[0].get("ports"):
        return ""
    shape = {
        "containers": [_container_layout(container) for container in containers],
        "initContainers": [_container_layout(container) for container in pod.get("initContainers") or ()],
        "overhead": amounts(pod.get("overhead")),
        "resources": _requests(pod),
        **{name: pod.get(name) for name in _LAYOUT},
    }
    return json.dumps(shape, sort_keys=True, default=str)


def _container_layout(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"requests": _requests(container), "ports": container.get("ports")}


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Read quantities by resource into base units."""
    return {r: parse(r, q) for r, q in (quantities or {}).items()}


def _sum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    if not left or not right:  # one container, no overhead: most pods
        return dict(left or right)
    return {r: add(left.get(r, 0), right.get(r, 0)) for r in {**left, **right}}


def _max(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {r: max(left.get(r, 0), right.get(r, 0)) for r in {**left, **right}}
