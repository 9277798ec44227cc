"""Is a submitted job sound? What the API server's validation of each kind would find, as far as queues depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling.reading import pod_requests
from taskgov_embedded.cluster.jobs import JOB_TYPES, pod_sets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "PyTorchJob": ("spec", "pytorchReplicaSpecs"),
    "HyperPodPyTorchJob": ("spec", "replicaSpecs"),
    "RayJob": ("spec", "rayClusterSpec", "headGroupSpec", "template"),
    "Job": ("spec", "template"),
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "Pod": ("spec", "containers"),
}
"""The field of each kind that says what pods it has."""


def problem_of(item: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a job, naming the field, or None; objects that are no jobs are not looked at."""
    path = _REQUIRED.get(item["kind"])
    if path is None:
        return None
    found: Any = item
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    if not found:
        return f"{'.'.join(path)}: Required value"
    templates = [item["spec"]["template"]] if item["kind"] not in JOB_TYPES else None
    try:
        templates = templates or [pod_set.template for pod_set in pod_sets_of(item)]
    except (KeyError, TypeError, AttributeError) as error:
        return f"{'.'.join(path)}: cannot be read: {type(error).__name__} {error}"
    return next((problem for template in templates if (problem := _problem_of_pods(template)) is not None), None)


def _problem_of_pods(template: Any) -> str | None:
    spec: Any = (template.get("spec") if isinstance(template, dict) else None) or {}
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(containers, list) or not containers:
        return "template.spec.containers: Required value"
    if any(not isinstance(one, dict) or not isinstance(one.get("name"), str) for one in containers):
        return "template.spec.containers[].name: Required value"
    try:
        pod_requests(spec)
    except (ValueError, TypeError, AttributeError) as error:
        return f"template.spec.containers[].resources: Invalid value: {error}"
    return None
