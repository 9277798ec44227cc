"""Make what a rule's target receives from an event: all of it, a part, a constant, or a template.

As EventBridge documents `Input`, `InputPath` and `InputTransformer` of a target. moto ignores the first two.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class InputError(ValueError):
    """A transformer whose result is not JSON: EventBridge would not deliver it."""


def target_input(target: Mapping[str, Any], event: Mapping[str, Any], rule_arn: str) -> Any:
    """Return what the target receives, as data.

    >>> target_input({"InputPath": "$.detail.ClusterName"}, {"detail": {"ClusterName": "c"}}, "arn")
    'c'
    """
    if "Input" in target:
        return json.loads(target["Input"])
    if "InputPath" in target:
        return _at_path(event, target["InputPath"])
    if "InputTransformer" in target:
        return _transformed(target["InputTransformer"], event, rule_arn)
    return event


def _at_path(event: Any, path: str) -> Any:
    """Follow `$.a.b[0].c`; None where there is nothing."""
    found = event
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path.removeprefix("$")):
        if name:
            found = found.get(name) if isinstance(found, dict) else None
        else:
            found = found[int(index)] if isinstance(found, list) and int(index) < len(found) else None
    return found


def _transformed(transformer: Mapping[str, Any], event: Mapping[str, Any], rule_arn: str) -> Any:
    values = {name: _at_path(event, path) for name, path in transformer.get("InputPathsMap", {}).items()}
    values |= {
        "aws.events.rule-arn": rule_arn,
        "aws.events.rule-name": rule_arn.rsplit("/", 1)[-1],
        "aws.events.event": {key: value for key, value in event.items() if key != "detail"},
        "aws.events.event.json": event,
        "aws.events.event.ingestion-time": event["time"],
    }
    text = _filled(transformer["InputTemplate"], values)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"the input transformer of {rule_arn} does not make JSON: {text}") from error


def _filled(template: str, values: Mapping[str, Any]) -> str:
    """Fill placeholders: inside a JSON string as text, elsewhere as JSON."""
    parts: list[str] = []
    inside = False
    for part in re.split(r'(\\.|"|<[A-Za-z0-9_.-]+>)', template):
        if part == '"':
            inside = not inside
        name = part[1:-1] if part.startswith("<") and part.endswith(">") else ""
        if name in values:
            parts.append(_as_text(values[name]) if inside else json.dumps(values[name]))
        else:
            parts.append(part)
    return "".join(parts)


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return json.dumps(text)[1:-1]
