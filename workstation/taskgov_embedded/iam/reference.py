"""What AWS's service authorization reference says of an action: its resources, and the actions that it depends on.

`reference.json` is an extract for the actions that the template's policies name and `taskgov preflight` calls, with its
source and date. `make iam-reference` writes it again.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE = Path(__file__).with_name("reference.json")


BY_SERVICE = {"servicequotas:ListServiceQuotas"}
"""What depends on an action of the service whose quotas are listed, of eight that is not needed here."""


def dependents(action: str) -> tuple[str, ...]:
    """Return the actions that the caller needs besides this one.

    >>> dependents("scheduler:CreateSchedule")
    ('iam:PassRole',)
    """
    if action in BY_SERVICE:
        return ()
    return tuple(_actions().get(action, {}).get("dependents", ()))


def needs_each_resource(action: str) -> bool:
    """Return whether the caller needs the action on each kind of resource: a Create also names its parent."""
    return action.partition(":")[2].startswith("Create") and len(_actions().get(action, {}).get("required", ())) > 1


def resource_forms(action: str) -> tuple[str, ...] | None:
    """Return the forms of the ARNs that an action can be granted on; empty where only `*` does, None if unknown."""
    known = _actions().get(action)
    if known is None:
        return None
    prefix = action.partition(":")[0]
    forms = _read()["resources"]
    return tuple(forms[f"{prefix}:{kind}"] for kind in (*known.get("required", ()), *known.get("optional", ())))


def has_many_values(key: str) -> bool:
    """Return whether a condition key holds a set of values, so that conditions need `ForAnyValue` or `ForAllValues`.

    >>> has_many_values("events:source"), has_many_values("aws:SourceArn")
    (True, False)
    """
    return key in _read()["manyValued"]


def _actions() -> Mapping[str, Mapping[str, list[str]]]:
    actions: Mapping[str, Mapping[str, list[str]]] = _read()["actions"]
    return actions


@cache
def _read() -> Mapping[str, Any]:
    read: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return read
