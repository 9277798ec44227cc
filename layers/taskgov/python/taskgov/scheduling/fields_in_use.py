"""Which features that the model does not follow does an object use? Equal pods are searched once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from taskgov.scheduling.kueue_fields import KINDS, ROWS, Followed
from taskgov.scheduling.shapes import KNOWN, value_of


def not_modelled(obj: Mapping[str, Any], pods: bytes | None = None) -> frozenset[str]:
    """Return the features of an object that are in use (a field is set, and not to nothing) and not modelled.

    `pods` is the shape of the pod sets of a Workload (`shape_of_pods`).
    """
    found: set[str] = set()
    _add_in_use(found, obj, _LOOKS.get(obj["kind"], _NOTHING))
    if pods is not None:
        found |= _used_by_pods(pods)
    elif obj["kind"] == "Workload":
        _add_in_use(found, (obj.get("spec") or {}).get("podSets") or (), _PODS)
    return frozenset(found)


def _add_in_use(found: set[str], at: Any, look: _Look) -> None:
    """Add the features for which something is set, at this place (where something is) or below."""
    found |= look.features
    if type(at) is dict or isinstance(at, Mapping):  # a plain dictionary needs no look at the classes of Mapping
        for name, below in look.below.items():
            if name in at and (value := at[name]):
                _add_in_use(found, value, below)
    elif isinstance(at, list) and "[]" in look.below:
        for item in filter(None, at):
            _add_in_use(found, item, look.below["[]"])


@lru_cache(maxsize=KNOWN)
def _used_by_pods(shape: bytes) -> frozenset[str]:
    found: set[str] = set()
    _add_in_use(found, value_of(shape), _PODS)
    return frozenset(found)


def _steps(path: str) -> tuple[str, ...]:
    """Split a path behind its kind.

    >>> _steps("Workload.spec.podSets[].name"), _steps("Workload.metadata.annotations{kueue.x-k8s.io/a}")
    (('spec', 'podSets', '[]', 'name'), ('metadata', 'annotations', 'kueue.x-k8s.io/a'))
    """
    return tuple(re.findall(r"(?<=\{)[^}]+|\[\]|[^.\[\]{}]+", path))[1:]


@dataclass(slots=True)
class _Look:
    features: set[str] = field(default_factory=set)
    below: dict[str, _Look] = field(default_factory=dict)


def _looks(kind: str) -> _Look:
    """Return the fields of a kind that are not modelled, as one tree: each object is walked once."""
    root = _Look()
    for row in ROWS:
        if row.followed is Followed.NOT_MODELLED and row.path.partition(".")[0] == kind:
            look = root
            for step in _steps(row.path):
                look = look.below.setdefault(step, _Look())
            look.features.add(row.note)
    return root


_LOOKS: Final = {kind: _looks(kind) for kind in KINDS}
_NOTHING: Final = _Look()
_PODS: Final = _LOOKS["Workload"].below["spec"].below.pop("podSets")
