"""Check requests and answers against botocore's service model, with the limits that clients leave to the service.

botocore itself checks required members, types and minima before it sends; ranges, patterns, enumerations and counts are
the service's to refuse. All violations are found at once and reported as AWS does.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INSTANCE_TYPE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
OPEN_ENUMS = {"ClusterInstanceType": _INSTANCE_TYPE, "ReservedCapacityInstanceType": _INSTANCE_TYPE}
"""Enumerations that grow with each release of botocore: here the form is enough."""


class ShapeError(AssertionError):
    """An answer of the stack that the service could not have given."""


def violations(shape: Any, value: Any, path: str = "") -> list[str]:
    """Return what is wrong with `value`, one sentence for each, in the order of the shape's members."""
    return list(_check(shape, value, path))


def check_answer(operation: str, shape: Any, answer: Mapping[str, Any]) -> None:
    """Raise `ShapeError` unless the answer fits the operation's output, without a member too many."""
    found = ["an answer where there is none"] if shape is None and answer else []
    if shape is not None:
        found = violations(shape, answer) + sorted(_strangers(shape, answer, ""))
    if found:
        raise ShapeError(f"the answer to {operation} is not one of the API: {'; '.join(found)}")


def _check(shape: Any, value: Any, path: str) -> Iterator[str]:
    match shape.type_name:
        case "structure":
            yield from _check_structure(shape, value, path)
        case "list":
            yield from _check_size(shape, len(value), value, path)
            for place, item in enumerate(value, start=1):
                yield from _check(shape.member, item, f"{path}.{place}.member")
        case "map":
            yield from _check_size(shape, len(value), value, path)
            for key, item in value.items():
                yield from _check(shape.key, key, f"{path}.key")
                yield from _check(shape.value, item, f"{path}.{key}.member")
        case "string":
            yield from _check_string(shape, value, path)
        case "integer" | "long" | "float" | "double":
            yield from _check_range(shape, value, path)
        case _:
            return  # booleans, timestamps and blobs have no limits


def _check_structure(shape: Any, value: Any, path: str) -> Iterator[str]:
    for name, member in shape.members.items():
        inner = f"{path}.{name[0].lower()}{name[1:]}" if path else f"{name[0].lower()}{name[1:]}"
        if value.get(name) is not None:
            yield from _check(member, value[name], inner)
        elif name in shape.required_members:
            yield f"Value null at '{inner}' failed to satisfy constraint: Member must not be null"


def _check_string(shape: Any, value: str, path: str) -> Iterator[str]:
    yield from _check_size(shape, len(value), value, path)
    pattern = shape.metadata.get("pattern")
    if pattern is not None and not matches_pattern(pattern, value):
        yield _failed(value, path, f"Member must satisfy regular expression pattern: {pattern}")
    if shape.enum and value not in shape.enum:
        open_form = OPEN_ENUMS.get(shape.name)
        if open_form is None or not open_form.fullmatch(value):
            yield _failed(value, path, f"Member must satisfy enum value set: [{', '.join(shape.enum)}]")


def _check_size(shape: Any, size: int, value: Any, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        yield _failed(value, path, f"Member must have length greater than or equal to {low}")
    if high is not None and size > high:
        yield _failed(value, path, f"Member must have length less than or equal to {high}")


def _check_range(shape: Any, value: float, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and value < low:
        yield _failed(value, path, f"Member must have value greater than or equal to {low}")
    if high is not None and value > high:
        yield _failed(value, path, f"Member must have value less than or equal to {high}")


def _failed(value: Any, path: str, constraint: str) -> str:
    return f"Value '{value}' at '{path}' failed to satisfy constraint: {constraint}"


def _strangers(shape: Any, value: Any, path: str) -> Iterator[str]:
    """Find members that the shape does not have."""
    if shape.type_name == "structure":
        for name, item in value.items():
            if name not in shape.members:
                yield f"'{path}{name}' is not a member"
            elif item is not None:
                yield from _strangers(shape.members[name], item, f"{path}{name}.")
    elif shape.type_name == "list":
        for item in value:
            yield from _strangers(shape.member, item, path)


def matches_pattern(pattern: str, text: str) -> bool:
    r"""Match a pattern of a service model, with its Unicode classes, which Python's `re` does not have.

    >>> matches_pattern("[a-z0-9]([-a-z0-9]*[a-z0-9]){0,39}?", "team-a"), matches_pattern(r"[\p{L}\p{N}]*", "a b")
    (True, False)
    """
    if "\\p{" not in pattern:
        return re.fullmatch(pattern, text) is not None
    categories, extra = _classes(pattern)
    return all(unicodedata.category(letter)[0] in categories or letter in extra for letter in text)


@lru_cache(maxsize=64)
def _classes(pattern: str) -> tuple[frozenset[str], str]:
    return frozenset(re.findall(r"\\p\{(\w)\}", pattern)), re.sub(r"\\p\{\w\}|[\[\]()*\\]", "", pattern)
