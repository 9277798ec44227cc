"""The text of a policy document as plain values: YAML or JSON, with its mistakes of syntax named by line.

`parse_policy` calls it. YAML is read by the 1.2 core rules: only true and false are booleans, and times stay texts (so
that a time without a zone is seen). Keys given twice, tags, and documents that unfold beyond reason are refused.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from taskgov.policy.violations import Location, Violation, path_of, value_of

MAX_CHARACTERS: Final = 512 * 1024
MAX_VALUES: Final = 50_000
MAX_DEPTH: Final = 30
MAX_DIGITS: Final = 20
_TOO_LARGE: Final = "unfolds beyond what a policy needs"
_PLAIN_TAGS: Final = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}


@dataclass(slots=True)
class Text:
    """What was read. `data` is None when nothing could be."""

    data: dict[str, Any] | None = None
    violations: list[Violation] = field(default_factory=list)


def read_text(text: str) -> Text:
    """Read YAML or JSON into dicts, lists, texts, numbers, booleans and None."""
    if len(text) > MAX_CHARACTERS:
        return _refused(f"{len(text):,} characters", f"must not exceed {MAX_CHARACTERS:,}")
    reader = _Reader()
    try:
        # Tabs may separate values in JSON, and cannot stand inside its texts.
        node = yaml.compose(text.expandtabs() if text.lstrip().startswith("{") else text, Loader=_CoreLoader)
        if not isinstance(node, yaml.MappingNode):
            return _refused(_kind(node), "must be a mapping such as `apiVersion: taskgov/v1`")
        data = reader.value(node, ())
    except yaml.YAMLError as error:
        return Text(violations=[_syntax_error(error)])
    except _TooLargeError as error:
        return _refused(error.args[0], _TOO_LARGE)
    except RecursionError:
        return _refused("levels within levels", _TOO_LARGE)
    return Text(data, reader.violations)


def _refused(value: str, rule: str) -> Text:
    return Text(violations=[Violation("(document)", value, rule)])


class _TooLargeError(Exception):
    """The document unfolds into too much, as with aliases of aliases."""


class _CoreLoader(yaml.SafeLoader):
    """YAML 1.2 core rules for what a plain word means; in Python, because the loader in C crashes on deep brackets."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the loader's own form of configuration

    def fetch_flow_collection_start(self, token_class: Any) -> None:
        """Stop at the bracket that is too deep: the scanner's time grows with the square of those that are open."""
        if self.flow_level > MAX_DEPTH:
            raise _TooLargeError(f"more than {MAX_DEPTH} levels")
        super().fetch_flow_collection_start(token_class)


_CoreLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:null|Null|NULL|~|)\Z"), ["n", "N", "~", ""])
_CoreLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)
_CoreLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"), list("-+0123456789")
)
_CoreLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z"),
    list("-+.0123456789"),
)


class _Reader:
    """Turns nodes into values, keeping count and account."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._values = 0

    def value(self, node: yaml.Node, location: Location) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooLargeError(f"more than {MAX_VALUES:,} values")
        if len(location) > MAX_DEPTH:
            raise _TooLargeError(f"more than {MAX_DEPTH} levels")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(one, (*location, index)) for index, one in enumerate(node.value)]
        return self._scalar(node, location)

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else _kind(key_node)
            line = key_node.start_mark.line + 1
            if key in values:
                self._refuse((*location, key), f"line {line}", f"is given twice (first in line {lines[key]})")
            values[key] = self.value(value_node, (*location, key))
            lines.setdefault(key, line)
        return values

    def _scalar(self, node: yaml.Node, location: Location) -> Any:
        if node.tag not in _PLAIN_TAGS:
            self._refuse(location, node.tag, f"has a tag that means nothing here (line {node.start_mark.line + 1})")
            return str(node.value)
        return _construct(node)

    def _refuse(self, location: Location, value: str, rule: str) -> None:
        self.violations.append(Violation(path_of(location), value, rule))


def _construct(node: yaml.Node) -> Any:
    """Read a plain value; an explicit tag on what does not fit it (`!!int x`) leaves the text."""
    match node.tag.rpartition(":")[2], node.value:
        case "null", _:
            return None
        case "bool", text:
            return text.lower() == "true"
        case "int", text:
            return int(text) if text.lstrip("+-").isdecimal() and len(text) <= MAX_DIGITS else text
        case "float", text:
            return float(text) if re.fullmatch(r"[-+.0-9eE]+", text) else text
        case _, text:
            return text


def _syntax_error(error: yaml.YAMLError) -> Violation:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "(document)"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    return Violation(place, value_of(_line_of(mark)), f"is no YAML or JSON: {problem}")


def _line_of(mark: yaml.Mark | None) -> str:
    if mark is None or mark.buffer is None:
        return ""
    lines = str(mark.buffer).rstrip("\0").splitlines()
    return lines[mark.line].strip() if mark.line < len(lines) else ""


def _kind(node: yaml.Node | None) -> str:
    match node:
        case None:
            return "nothing"
        case yaml.SequenceNode():
            return "a list"
        case yaml.MappingNode():
            return "a mapping"
        case _:
            return "a word"
