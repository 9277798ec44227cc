"""What does a patch make of an object? JSON merge patch, JSON patch and Kubernetes' strategic merge patch.

A strategic merge patch merges lists of named things (containers, variables) by their key, which the types of the API
name (`patchMergeKey`); other lists are replaced. Directives: `$patch: delete|replace`, `$deleteFromPrimitiveList`,
`$setElementOrder` (which only sorts, and is passed over), `$retainKeys`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MERGE_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "conditions": "type",
    "ownerReferences": "uid",
}
"""Lists that are merged, and by which field (`k8s.io/api` v0.36, the tags of core/v1 and meta/v1)."""
_PORTS: Final = ("containerPort", "port")
_PRIMITIVE: Final = frozenset({"finalizers"})


class PatchError(Exception):
    """The patch cannot be read or does not fit the object."""


def merge_patched(item: Any, patch: Any) -> Any:
    """Return `item` after a JSON merge patch (RFC 7396): null removes, objects merge, all else replaces.

    Example:
        >>> merge_patched({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
        {'b': {'c': 2, 'd': 3}}

    """
    if not isinstance(patch, dict):
        return patch
    result = dict(item) if isinstance(item, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), value)
    return result


def strategic_patched(item: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `item` after a strategic merge patch.

    Example:
        >>> before = {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}
        >>> strategic_patched(before, {"containers": [{"name": "a", "image": "y"}, {"name": "b", "$patch": "delete"}]})
        {'containers': [{'name': 'a', 'image': 'y'}]}

    """
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    result = dict(item)
    if "$retainKeys" in patch:
        result = {name: value for name, value in result.items() if name in patch["$retainKeys"]}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            result[field] = [item for item in result.get(field, ()) if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = strategic_patched(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list):
            result[name] = _merged_list(name, result.get(name) or [], value)
        else:
            result[name] = value
    return result


def _merged_list(name: str, before: Sequence[Any], patch: Sequence[Any]) -> list[Any]:
    if name in _PRIMITIVE:
        return [*before, *(item for item in patch if item not in before)]
    key = _merge_key(name, patch)
    if key is None or any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    result = [dict(item) for item in before]
    for item in patch:
        places = [place for place, present in enumerate(result) if present.get(key) == item.get(key)]
        if item.get("$patch") == "delete":
            result = [present for present in result if present.get(key) != item.get(key)]
        elif places:
            result[places[0]] = strategic_patched(result[places[0]], item)
        else:
            result.append(strategic_patched({}, item))
    return result


def _merge_key(name: str, patch: Sequence[Any]) -> str | None:
    if name == "ports":
        return next((key for key in _PORTS if any(isinstance(item, dict) and key in item for item in patch)), None)
    return MERGE_KEYS.get(name)


def json_patched(item: Mapping[str, Any], operations: Any) -> dict[str, Any]:
    """Return `item` after a JSON patch (RFC 6902: add, remove, replace, test). Raises PatchError.

    Example:
        >>> json_patched({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}, {"op": "remove", "path": "/a/0"}])
        {'a': [2]}

    """
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    result: Any = dict(item)
    for operation in operations:
        kind, path = operation.get("op"), str(operation.get("path", ""))
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        if kind not in {"add", "remove", "replace", "test"} or not parts:
            raise PatchError(f"cannot take the operation {kind!r} at {path!r}")
        result = _changed(result, parts, kind, operation.get("value"), path)
    return dict(result)


def _changed(item: Any, parts: list[str], kind: str, value: Any, path: str) -> Any:
    first, rest = parts[0], parts[1:]
    if isinstance(item, list):
        place = len(item) if first == "-" else int(first) if first.isdigit() else -1
        if not 0 <= place < len(item) + (kind == "add" and not rest):
            raise PatchError(f"there is nothing at {path}")
        if not rest:
            _require_equal(kind, item[place] if place < len(item) else None, value, path)
            kept = [] if kind == "remove" else [value]
            return item if kind == "test" else [*item[:place], *kept, *item[place + (kind != "add") :]]
        return [*item[:place], _changed(item[place], rest, kind, value, path), *item[place + 1 :]]
    if not isinstance(item, dict) or (first not in item and (rest or kind != "add")):
        raise PatchError(f"there is nothing at {path}")
    if rest:
        return {**item, first: _changed(item[first], rest, kind, value, path)}
    _require_equal(kind, item.get(first), value, path)
    if kind == "test":
        return item
    others = {name: inner for name, inner in item.items() if name != first or kind != "remove"}
    return others if kind == "remove" else {**others, first: value}


def _require_equal(kind: str, present: Any, value: Any, path: str) -> None:
    if kind == "test" and present != value:
        raise PatchError(f"the test of {path} failed: it is not {value!r}")
