"""Add a lease to the text of a policy document, or end one: comments, order and form of everything else stay.

The places come from the YAML parser's own marks; the text between them is not touched.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

LEASES: Final = "leases"
INDENT: Final = "  "


def with_lease(text: str, lease: Mapping[str, Any]) -> str:
    """Return the document with one lease more, the last of the list. Raises ValueError for a text without a mapping."""
    root = _root(text)
    if root.flow_style:
        return _as_json(text, lambda leases: [*leases, dict(lease)])
    found = _value(root, LEASES)
    if found is None:
        return f"{text.rstrip()}\n{LEASES}:\n{_item(lease, INDENT)}"
    if not isinstance(found, yaml.SequenceNode) or not found.value:
        bare = text[: found.start_mark.index] + text[found.end_mark.index :]
        at = _line_end(bare, _colon(text, root))
        return _inserted(bare, at, _item(lease, INDENT))
    if found.flow_style:
        end = found.end_mark.index - 1
        return f"{text[:end].rstrip().removesuffix(',')}, {_flow(lease)}{text[end:]}"
    at = _line_end(text, _last_mark(found))
    return _inserted(text, at, _item(lease, " " * found.start_mark.column))


def with_end(text: str, place: int, end: str) -> str:
    """Return the document with another end of the lease at this place, from 0. Raises ValueError."""
    root = _root(text)
    if root.flow_style:
        return _as_json(text, lambda leases: [*leases[:place], leases[place] | {"end": end}, *leases[place + 1 :]])
    lease = _leases(root).value[place]
    value = _value(lease, "end") if isinstance(lease, yaml.MappingNode) else None
    if value is None:
        raise ValueError(f"leases[{place}] has no end that can be changed in place")
    return f"{text[: value.start_mark.index]}{end}{text[value.end_mark.index :]}"


def without_lease(text: str, place: int) -> str:
    """Return the document without the lease at this place, from 0. Raises ValueError."""
    root = _root(text)
    if root.flow_style:
        return _as_json(text, lambda leases: leases[:place] + leases[place + 1 :])
    leases = _leases(root)
    kept = leases.value[:place] + leases.value[place + 1 :]
    if not kept or leases.flow_style:
        items = ", ".join(text[node.start_mark.index : node.end_mark.index].strip() for node in kept)
        start, end = leases.start_mark.index, leases.end_mark.index
        if leases.flow_style:
            return f"{text[:start]}[{items}]{text[end:]}"
        colon, first = _colon(text, root), text.rindex("\n", 0, start) + 1
        return f"{text[:colon]} []{text[colon:first]}{text[_line_end(text, _last_mark(leases)) :]}"
    node = leases.value[place]
    start = text.rindex("\n", 0, node.start_mark.index) + 1
    return text[:start] + text[_line_end(text, _last_mark(node)) :]


def _inserted(text: str, at: int, lines: str) -> str:
    """Return the text with whole lines at the beginning of a line, or at its end."""
    begun = "" if text[:at].endswith("\n") else "\n"
    return f"{text[:at]}{begun}{lines}{text[at:]}"


def _root(text: str) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("the document is not a mapping")  # noqa: TRY004 - of a file, not of an argument
    return root


def _value(node: yaml.MappingNode, name: str) -> yaml.Node | None:
    return next((value for key, value in node.value if key.value == name), None)


def _leases(root: yaml.MappingNode) -> yaml.SequenceNode:
    found = _value(root, LEASES)
    if not isinstance(found, yaml.SequenceNode):
        raise ValueError("the document has no leases")  # noqa: TRY004 - of a file, not of an argument
    return found


def _colon(text: str, root: yaml.MappingNode) -> int:
    """Return the place after the colon of the key."""
    key = next(key for key, _ in root.value if key.value == LEASES)
    return text.index(":", key.end_mark.index) + 1


def _last_mark(node: yaml.Node) -> int:
    """Return where the last scalar of a node ends: the end mark of a block is behind the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_mark(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _line_end(text: str, at: int) -> int:
    """Return where the line after this place begins."""
    end = text.find("\n", max(at - 1, 0) if text[at - 1 : at] == "\n" else at)
    return len(text) if end < 0 else end + 1


def _item(lease: Mapping[str, Any], indent: str) -> str:
    lines = [f"{name}: {_scalar(value)}" for name, value in lease.items()]
    return "".join(f"{indent}{'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(lines))


def _flow(lease: Mapping[str, Any]) -> str:
    return f"{{{', '.join(f'{name}: {_scalar(value, flow=True)}' for name, value in lease.items())}}}"


def _scalar(value: object, *, flow: bool = False) -> str:
    """Return a value as YAML on one line, quoted where it has to be."""
    shown = yaml.safe_dump([value], default_flow_style=True, width=1_000_000, allow_unicode=True)
    text = shown.strip()[1:-1]
    return (
        json.dumps(value, ensure_ascii=False) if flow and isinstance(value, str) and set(text) & set(",[]{}") else text
    )


def _as_json(text: str, change: Any) -> str:
    """Return a document that is JSON with other leases; it has no comments that could be lost."""
    data = yaml.safe_load(text)
    data[LEASES] = change(data.get(LEASES) or [])
    return json.dumps(data, indent=2, default=str) + "\n"
