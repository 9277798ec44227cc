"""How does an object of Kueue's `v1beta2` read in `v1beta1`? And the other way round.

The store keeps `v1beta2`; the API server serves both, as a cluster does between the two add-on generations. Only the
fields that were renamed differ (Kueue v0.19 conversion: `apis/kueue/v1beta1/*_conversion.go`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.objects import KUEUE_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.cluster.objects import KubeObject

SPEC_NAMES: Final = {"ClusterQueue": ("cohort", "cohortName"), "Cohort": ("parent", "parentName")}
"""Kind -> the field's name in v1beta1 and in v1beta2."""
STOPS_SEARCH: Final = {"Borrow", "Preempt"}
"""v1beta1's two further names of MayStopSearch."""


def as_v1beta1(item: Mapping[str, Any]) -> KubeObject:
    """Return a stored object as `v1beta1` would show it."""
    converted = {**item, "apiVersion": f"{KUEUE_GROUP}/v1beta1"}
    if "spec" in item:
        converted["spec"] = _older_spec(item["kind"], item["spec"])
    if item["kind"] == "LocalQueue" and "flavorsUsage" in item.get("status", {}):
        converted["status"] = _renamed(item["status"], "flavorsUsage", "flavorUsage")
    return converted


def as_v1beta2(item: Mapping[str, Any]) -> KubeObject:
    """Return an object of either version as `v1beta2`, the form in which it is stored."""
    converted = {**item, "apiVersion": f"{KUEUE_GROUP}/v1beta2"}
    if "spec" in item:
        converted["spec"] = _newer_spec(item["kind"], item["spec"])
    return converted


def _older_spec(kind: str, spec: Mapping[str, Any]) -> KubeObject:
    if kind in SPEC_NAMES:
        older, newer = SPEC_NAMES[kind]
        return _renamed(spec, newer, older)
    reference = spec.get("priorityClassRef")
    if kind == "Workload" and reference is not None:
        rest = {name: value for name, value in spec.items() if name != "priorityClassRef"}
        source = f"{KUEUE_GROUP}/workloadpriorityclass"
        return {**rest, "priorityClassName": reference["name"], "priorityClassSource": source}
    return dict(spec)


def _newer_spec(kind: str, spec: Mapping[str, Any]) -> KubeObject:
    if kind not in SPEC_NAMES:
        return dict(spec)
    converted = _renamed(spec, *SPEC_NAMES[kind])
    if fungibility := spec.get("flavorFungibility"):
        converted["flavorFungibility"] = {
            name: "MayStopSearch" if value in STOPS_SEARCH else value for name, value in fungibility.items()
        }
    return converted


def _renamed(mapping: Mapping[str, Any], before: str, after: str) -> KubeObject:
    return {after if name == before else name: value for name, value in mapping.items()}
