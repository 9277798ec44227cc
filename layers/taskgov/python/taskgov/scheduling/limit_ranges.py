"""What do the LimitRanges of a namespace add to pods and refuse? Their bounds and defaults, and who is beyond them.

Called by `pods`. Rules: `pkg/util/limitrange/limitrange.go` and `pkg/workload/resources.go` of Kueue. LimitRanges are
taken as the API server keeps them, with the defaults that it derives from their bounds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from taskgov.quantities import parse
from taskgov.scheduling.demand import amounts, pod_requests

Object = Mapping[str, Any]

CONTAINER: Final = "Container"
POD: Final = "Pod"
LISTS: Final = ("initContainers", "containers")
"""The lists of containers of a pod, in the order in which Kueue checks them."""

_ABOVE_LIMITS: Final = "requests must not exceed its limits"
_ABOVE_MAX: Final = "requests must not be above the limitRange max"
_BELOW_MIN: Final = "requests must not be below the limitRange min"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the LimitRanges of a namespace say of one type; `default` and `default_request` are quantities as written.

    Of several LimitRanges the strictest bound counts, and the first default: Kueue takes them in any order, this model
    by name.
    """

    most: Mapping[str, int] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    default: Object = field(default_factory=dict)
    default_request: Object = field(default_factory=dict)

    def joined(self, item: Object) -> Bounds:
        """Return the bounds with those of one more item of a LimitRange."""
        return Bounds(
            most=_merged(self.most, amounts(item.get("max")), min),
            least=_merged(self.least, amounts(item.get("min")), max),
            default={**(item.get("default") or {}), **self.default},
            default_request={**(item.get("defaultRequest") or {}), **self.default_request},
        )


def summary(limit_ranges: Iterable[Object]) -> dict[str, Bounds]:
    """Return the bounds of each type that the LimitRanges name."""
    found: dict[str, Bounds] = {}
    for limit_range in limit_ranges:
        for item in (limit_range.get("spec") or {}).get("limits") or ():
            found[item["type"]] = found.get(item["type"], Bounds()).joined(item)
    return found


def above_limits(pod: Object, path: str) -> Iterator[str]:
    """Say which containers of a pod request more than their limits (Kueue: `ValidateResources`)."""
    for at, container in _containers(pod, path):
        resources = container.get("resources") or {}
        # Most requests are their limits (those of GPUs always): amounts that are written alike are not compared.
        if (limits := resources.get("limits")) and limits != resources.get("requests"):
            yield from _refused(at, _requests(container), _limits(container), _ABOVE_LIMITS)
    if pod.get("resources"):
        yield from _refused(f"{path}.resources", _requests(pod), _limits(pod), _ABOVE_LIMITS)


def out_of_bounds(pod: Object, path: str, bounds: Mapping[str, Bounds]) -> Iterator[str]:
    """Say which containers of a pod, or the pod in all, are beyond the bounds (Kueue: `ValidatePodSpec`)."""
    if of_container := bounds.get(CONTAINER):
        for at, container in _containers(pod, path):
            requests, limits = _requests(container), _limits(container)
            yield from _refused(at, _merged(requests, limits, max), of_container.most, _ABOVE_MAX)
            yield from _refused(at, of_container.least, _merged(requests, limits, min), _BELOW_MIN)
    if of_pod := bounds.get(POD):
        in_all = pod_requests(pod)
        yield from _refused(path, in_all, of_pod.most, _ABOVE_MAX)
        yield from _refused(path, of_pod.least, in_all, _BELOW_MIN)


def _containers(pod: Object, path: str) -> Iterator[tuple[str, Object]]:
    for name in LISTS:
        for index, container in enumerate(pod.get(name) or ()):
            yield f"{path}.{name}[{index}]", container


def _requests(owner: Object) -> dict[str, int]:
    return amounts((owner.get("resources") or {}).get("requests"))


def _limits(owner: Object) -> dict[str, int]:
    return amounts((owner.get("resources") or {}).get("limits"))


def _merged(left: Mapping[str, int], right: Mapping[str, int], choose: Callable[[int, int], int]) -> dict[str, int]:
    return {**left, **{name: choose(left.get(name, amount), amount) for name, amount in right.items()}}


def _refused(path: str, amount: Mapping[str, int], bound: Mapping[str, int], message: str) -> Iterator[str]:
    """Say where an amount is above its bound, as `field.Invalid` of apimachinery does."""
    names = sorted(name for name in amount if name in bound and amount[name] > bound[name])
    if names:
        yield f"{path}: Invalid value: {json.dumps(names, separators=(',', ':'))}: {message}"


def read_limit_range(obj: Object) -> Object:
    """Return a LimitRange that can be read. Raises `ValueError` for one whose quantities cannot."""
    for item in (obj.get("spec") or {}).get("limits") or ():
        if not (isinstance(item, Mapping) and item.get("type")):
            raise ValueError(f"LimitRange {obj['metadata'].get('name')} has a limit without type")
        for field_name in ("max", "min", "default", "defaultRequest"):
            for resource, quantity in (item.get(field_name) or {}).items():
                parse(resource, quantity)
    return obj


def read_overhead(obj: Object) -> Object:
    """Read what pods of a RuntimeClass need on top (`overhead.podFixed`), as quantities. Raises `ValueError`."""
    overhead = (obj.get("overhead") or {}).get("podFixed") or {}
    amounts(overhead)
    return overhead
