"""The form of pod sets, checked once for each shape: it is most of the form of a workload."""

from functools import lru_cache
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from taskgov.scheduling.kueue_forms import DEEPEST, is_deep
from taskgov.scheduling.shapes import KNOWN, shape_of, value_of
from taskgov.scheduling.workload_forms import PodSetForm

_LEVEL: Final = 2
"""Levels of a workload above its pod sets."""
_FORM: Final = TypeAdapter(list[PodSetForm], config=ConfigDict(defer_build=True))


def without_known_pods(workload: Any) -> Any:
    """Return a workload without its pod sets where those have their form; any other object as it is."""
    spec = workload.get("spec") if isinstance(workload, dict) else None
    shape = shape_of(spec.get("podSets")) if isinstance(spec, dict) else None
    return {**workload, "spec": {**spec, "podSets": []}} if spec and shape and _have_form(shape) else workload


@lru_cache(maxsize=KNOWN)
def _have_form(shape: bytes) -> bool:
    pod_sets = value_of(shape)
    try:
        _FORM.validate_python(pod_sets, strict=True)
    except (ValidationError, ArithmeticError, RecursionError):
        return False
    return not is_deep(pod_sets, DEEPEST - _LEVEL)
