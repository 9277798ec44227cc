"""Change values in the text of a YAML or JSON document: comments, order and form of everything else stay.

The places come from the YAML parser's own marks; the text between them is not touched.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Changes: TypeAlias = "Mapping[Any, Any]"
"""Key or place -> its new value, or the changes below it."""
Edit = tuple[int, int, str]
"""From where to where, and what stands there afterwards."""


def with_values(text: str, changes: Changes) -> str:
    """Return the document with other values: those that are there are replaced, those that are missing are added.

    Raises `ValueError` where a value to change is shared by an anchor: the others that share it would change too.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        raise ValueError("the document is empty")
    shared = _shared(root)
    edits = sorted(_edits(text, root, changes, shared, ()), reverse=True)
    for start, end, new in edits:
        text = text[:start] + new + text[end:]
    return text


def _edits(
    text: str, node: yaml.Node, changes: Changes, shared: set[int], path: tuple[str | int, ...]
) -> Iterator[Edit]:
    if id(node) in shared:
        raise ValueError(f"{'.'.join(map(str, path))} is shared by an anchor; write it out to change it")
    missing = {}
    for key, change in changes.items():
        value = _value(node, key)
        if value is None:
            missing[key] = change
        elif isinstance(change, dict) and isinstance(value, yaml.CollectionNode):
            yield from _edits(text, value, change, shared, (*path, key))
        else:
            if id(value) in shared:
                raise ValueError(
                    f"{'.'.join(map(str, (*path, key)))} is shared by an anchor; write it out to change it"
                )
            yield _replaced(value, change)
    if missing:
        yield _added(text, node, missing)


def _value(node: yaml.Node, key: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        return node.value[key] if key < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def _replaced(node: yaml.Node, change: Any) -> Edit:
    start, end = node.start_mark.index, node.end_mark.index
    quoted = isinstance(node, yaml.ScalarNode) and node.style == '"'
    return start, end, f"{' ' if start == end else ''}{_flow(change, quoted=quoted)}"


def _added(text: str, node: yaml.Node, missing: Changes) -> Edit:
    """Add members at the end of a mapping, in its own form."""
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"there is nothing at {', '.join(map(str, missing))} that could be changed")  # noqa: TRY004
    if node.flow_style or not node.value:
        quoted = any(name.style == '"' for name, _ in node.value)
        end = node.end_mark.index - 1
        begin = len(text[:end].rstrip())
        comma = "" if not node.value or text[begin - 1] == "," else ","
        space = " " if node.value else ""
        members = ", ".join(
            f"{_flow(key, quoted=quoted)}: {_flow(value, quoted=quoted)}" for key, value in missing.items()
        )
        return begin, begin, f"{comma}{space}{members}"
    indent = " " * node.value[0][0].start_mark.column
    at = _last_mark(node)
    line_end = text.find("\n", at)
    at = len(text) if line_end < 0 else line_end
    return at, at, "".join(f"\n{indent}{key}: {_flow(value)}" for key, value in missing.items())


def _last_mark(node: yaml.Node) -> int:
    """Return where the last scalar of a node ends: the end mark of a block is behind the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_mark(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _flow(value: Any, *, quoted: bool = False) -> str:
    """Return a value on one line: as JSON where its surroundings are JSON."""
    if quoted:
        return json.dumps(value, ensure_ascii=False)
    shown = yaml.safe_dump([value], default_flow_style=True, width=1_000_000, allow_unicode=True, sort_keys=False)
    return shown.strip()[1:-1]


def _shared(root: yaml.Node) -> set[int]:
    """Return the nodes that are reached in two ways: an anchor and its aliases."""
    seen: set[int] = set()
    twice: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            twice.add(id(node))
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            waiting.extend(part for pair in node.value for part in pair)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
    return twice
