"""The form of pod sets, checked once for each shape: it is most of the form of a workload."""

from functools import lru_cache
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from taskgov.scheduling.kueue_forms import DEEPEST, is_deep
from taskgov.scheduling.shapes import KNOWN, value_of
from taskgov.scheduling.workload_forms import PodSetForm

_LEVEL: Final = 2
"""Levels of a workload above its pod sets."""
_FORM: Final = TypeAdapter(list[PodSetForm], config=ConfigDict(defer_build=True))


@lru_cache(maxsize=KNOWN)
def have_form(shape: bytes) -> bool:
    """Return whether pod sets of this shape have their form, and bear to be read at their depth in a workload."""
    pod_sets = value_of(shape)
    try:
        _FORM.validate_python(pod_sets, strict=True)
    except (ValidationError, ArithmeticError, RecursionError):
        return False
    return not is_deep(pod_sets, DEEPEST - _LEVEL)
