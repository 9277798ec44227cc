"""What does Kueue take a pod to ask for? Namespace, RuntimeClass and the manager's settings add, change and refuse.

Called by `reading` for each workload. Rules: `AdjustResources` and `ValidateAdmissibility` in
`pkg/workload/resources.go`, `dropExcludedResources` and `applyResourceTransformations` in `pkg/workload/workload.go`
of Kueue.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from taskgov.quantities import CPU, exact, parse
from taskgov.scheduling.limit_ranges import CONTAINER, LISTS, POD, Bounds, above_limits, out_of_bounds, summary

if TYPE_CHECKING:
    from taskgov.scheduling.config import ManagerConfig

Object = Mapping[str, Any]

_ABOVE_LIMITS: Final = "resources validation failed"
_OUT_OF_BOUNDS: Final = "resources didn't satisfy LimitRange constraints"
_MILLI: Final = Decimal(1000)
_EXACT: Final = Context(prec=100)
_NO_BOUNDS: Final[Mapping[str, Bounds]] = {}


class Reviewed(NamedTuple):
    """The pods of a workload as Kueue completes them.

    `completion` is their resources where they are not taken as written, else "". Workloads that differ in it differ in
    their spec as Kueue sees it, also where their requests are equal: one that is changed in nothing but a limit that
    was too low may be considered again. `refusal` is why Kueue refuses the workload, in the words of its condition.
    """

    pods: Sequence[Object]
    completion: str
    refusal: str


class PodRules:
    """LimitRanges, the overhead of RuntimeClasses, and which resources the manager counts as which.

    Example:
        >>> from taskgov.scheduling import ManagerConfig
        >>> from taskgov.scheduling.config import ResourceTransformation
        >>> rate = ResourceTransformation("nvidia.com/mig-1g.5gb", {"example.com/gpu-memory": "5Gi"}, "Replace")
        >>> rules = PodRules(ManagerConfig(resource_transformations=(rate,), resources_exclude_prefixes=("vpc.",)))
        >>> rules.counted({"nvidia.com/mig-1g.5gb": 2, "vpc.amazonaws.com/efa": 4})
        {'example.com/gpu-memory': 10737418240}

    """

    def __init__(self, config: ManagerConfig) -> None:
        self._config = config
        self._excluded = config.resources_exclude_prefixes
        self._transformations = {t.input: t for t in config.resource_transformations}
        self._factors = {
            t.input: {output: exact(factor) for output, factor in t.outputs.items()}
            for t in config.resource_transformations
        }
        self.known: dict[tuple[bytes, str], Any] = {}
        """What was read by these rules, by `key_of`; another dictionary once they change."""
        self._limit_ranges: dict[str, dict[str, Object]] = {}
        self._bounds: dict[str, Mapping[str, Bounds]] = {}
        self._overheads: dict[str, Object] = {}

    def take_objects_of(self, other: PodRules) -> None:
        """Take the LimitRanges and RuntimeClasses that `other` has."""
        self._limit_ranges = {namespace: dict(items) for namespace, items in other._limit_ranges.items()}
        self._bounds = dict(other._bounds)
        self._overheads = dict(other._overheads)
        self.known = other.known if self._config == other._config else {}

    def put_limit_range(self, namespace: str, name: str, limit_range: Object | None) -> None:
        """Add or change a LimitRange; `None` deletes it. Raises `KeyError` when there is none to delete."""
        items = self._limit_ranges.setdefault(namespace, {})
        if limit_range is None:
            del items[name]
        else:
            items[name] = limit_range
        self.known = {}
        self._bounds[namespace] = summary(items[key] for key in sorted(items))

    def put_runtime_class(self, name: str, overhead: Object | None) -> None:
        """Set the `overhead.podFixed` of a RuntimeClass; `None` deletes it. Raises `KeyError` as above."""
        if overhead is None:
            del self._overheads[name]
        else:
            self._overheads[name] = overhead
        self.known = {}

    def key_of(self, shape: bytes, namespace: str) -> tuple[bytes, str]:
        """Return what decides how pod sets are read: their shape, and a namespace that has LimitRanges."""
        return shape, namespace if self._bounds.get(namespace) else ""

    def review(self, templates: Sequence[Object], namespace: str) -> Reviewed:
        """Complete the pods of a workload, and say whether Kueue refuses it.

        Requests above limits come first; only when there are none, the bounds of LimitRanges are checked.
        """
        pods = [self._completed(template, namespace) for template in templates]
        paths = [f"spec.podSets[{index}].template.spec" for index in range(len(pods))]
        above = [text for path, pod in zip(paths, pods, strict=True) for text in above_limits(pod, path)]
        changed = any(pod is not template for pod, template in zip(pods, templates, strict=True))
        completion = _resources(pods) if above or changed else ""
        if above:
            return Reviewed(pods, completion, f"{_ABOVE_LIMITS}: {_aggregate(above)}")
        bounds = self._bounds.get(namespace)
        if not bounds:
            return Reviewed(pods, completion, "")
        beyond = [text for path, pod in zip(paths, pods, strict=True) for text in out_of_bounds(pod, path, bounds)]
        return Reviewed(pods, completion, f"{_OUT_OF_BOUNDS}: {_aggregate(beyond)}" if beyond else "")

    def _completed(self, pod: Object, namespace: str) -> Object:
        """Return a pod with overhead and defaults as Kueue fills them in; the same pod where there is nothing to."""
        overhead = self._overheads.get(pod.get("runtimeClassName") or "")
        if overhead and not pod.get("overhead"):
            pod = {**pod, "overhead": overhead}
        bounds = self._bounds.get(namespace, _NO_BOUNDS)
        if CONTAINER in bounds:
            lists = {name: [_filled(c, bounds[CONTAINER]) for c in pod[name]] for name in LISTS if pod.get(name)}
            pod = {**pod, **lists}
        if POD in bounds and pod.get("resources"):
            pod = _filled(pod, bounds[POD])
        return pod

    def counted(self, requests: Mapping[str, int]) -> Mapping[str, int]:
        """Return what of one pod's requests counts, and as what; the same mapping where nothing is changed."""
        if self._excluded and any(name.startswith(self._excluded) for name in requests):
            requests = {name: amount for name, amount in requests.items() if not name.startswith(self._excluded)}
        if any(name in self._transformations for name in requests):
            requests = self._transformed(requests)
        return requests

    def _transformed(self, requests: Mapping[str, int]) -> dict[str, int]:
        """Replace inputs by their outputs. Outputs add up, negative ones too, but never take from requests."""
        asked = {
            name: Decimal(amount) / _MILLI if name == CPU else Decimal(amount) for name, amount in requests.items()
        }
        kept: dict[str, Decimal] = {}
        made: dict[str, Decimal] = {}
        for name, amount in asked.items():
            rule = self._transformations.get(name)
            if rule is None or rule.strategy != "Replace":
                kept[name] = amount
            if rule is None:
                continue
            base = _EXACT.multiply(amount, asked.get(rule.multiply_by, Decimal(1)))
            for output, factor in self._factors[name].items():
                made[output] = _EXACT.add(made.get(output, Decimal(0)), _EXACT.multiply(base, factor))
        for name, amount in made.items():
            kept[name] = _EXACT.add(kept.get(name, Decimal(0)), max(amount, Decimal(0)))
        return {name: parse(name, amount) for name, amount in kept.items()}


def _resources(pods: Sequence[Object]) -> str:
    parts = [
        {"overhead": pod.get("overhead"), "resources": [owner.get("resources") for owner in _owners(pod)]}
        for pod in pods
    ]
    return json.dumps(parts, sort_keys=True, default=str)


def _owners(pod: Object) -> Iterable[Object]:
    return pod, *(container for name in LISTS for container in pod.get(name) or ())


def _filled(owner: Object, bounds: Bounds) -> Object:
    """Return a container, or a pod with resources of its own, with the defaults of a LimitRange."""
    resources = owner.get("resources") or {}
    limits = {**bounds.default, **(resources.get("limits") or {})}
    requests = {**limits, **bounds.default_request, **(resources.get("requests") or {})}
    return {**owner, "resources": {**resources, "limits": limits, "requests": requests}}


def _aggregate(texts: Sequence[str]) -> str:
    """Join errors as `utilerrors.Aggregate` of apimachinery prints them."""
    different = list(dict.fromkeys(texts))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"
