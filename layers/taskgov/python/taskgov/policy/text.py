"""The text of a policy document as plain values: YAML or JSON, with its mistakes of syntax named by line.

`parse_policy` calls it. YAML is read by the 1.2 core rules: only true and false are booleans, and times stay texts (so
that a time without a zone is seen). Keys given twice, tags, and documents that unfold beyond reason are refused.

What a document costs is bounded: its size is checked first, and values are made event by event, so that reading stops
at the value, the level or the repetition that is too much.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Final

import yaml

from taskgov.violations import VALUE_LIMIT, Location, Violation, path_of, value_of

MAX_BYTES: Final = 2 * 2**20
"""1,000 teams with 15 rows each fit, also as JSON on many lines."""
MAX_VALUES: Final = 250_000
MAX_DEPTH: Final = 30
MAX_DIGITS: Final = 20
MAX_REFUSALS: Final = 100
Event = Any
"""One of PyYAML's events: what they carry differs from kind to kind."""
_TOO_LARGE: Final = "is too large once its aliases are expanded"
_PREFIX: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = {f"{_PREFIX}{name}" for name in ("str", "int", "float", "bool", "null")}
_MAPPING_TAG, _SEQUENCE_TAG = f"{_PREFIX}map", f"{_PREFIX}seq"
_PLAIN: Final = (
    ("null", re.compile(r"(?:null|Null|NULL|~|)\Z")),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")),
    ("float", re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z")),
)
"""What a plain word means by YAML 1.2's core rules; anything else is a text."""
_Parser: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""The parser in C is some ten times as fast. Only its events are used: its composer crashes on deep brackets."""


@dataclass(slots=True)
class Text:
    """What was read. `data` is None when nothing could be."""

    data: dict[str, Any] | None = None
    violations: list[Violation] = field(default_factory=list)


def read_text(given: str | bytes) -> Text:
    """Read YAML or JSON into dicts, lists, texts, numbers, booleans and None.

    Bytes are UTF-8. The first `MAX_BYTES` + 1 bytes of a document that is too long are enough to refuse it.
    """
    body = given if isinstance(given, bytes) else given.encode(errors="surrogatepass")
    if len(body) > MAX_BYTES:
        return _refused(f"more than {MAX_BYTES:,} bytes", f"must not exceed {MAX_BYTES:,} bytes")
    try:
        text = _decoded(body)
    except ValueError as error:
        return _refused(str(error), "must be UTF-8 text")
    # Tabs may separate values in JSON, and cannot stand inside its texts.
    reader = _Reader(text.expandtabs() if text.lstrip().startswith("{") else text)
    try:
        data = reader.document()
    except yaml.YAMLError as error:
        return Text(violations=[_syntax_error(error, text)])
    except _TooLargeError as error:
        return _refused(error.args[0], _TOO_LARGE)
    except _NoMappingError as error:
        return _refused(error.args[0], "must be a mapping such as `apiVersion: taskgov/v1`")
    return Text(data, reader.violations)


def _decoded(body: bytes) -> str:
    """Return the text without its byte order mark. Raises ValueError that says what the bytes are instead."""
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in body:
        raise ValueError("UTF-16 or UTF-32 (it has null bytes)" if b"\0" in body else "UTF-16 (by its first bytes)")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise ValueError(f"byte 0x{body[error.start]:02x} in line {line} (Latin-1 or Windows-1252?)") from error


def _refused(value: str, rule: str) -> Text:
    return Text(violations=[Violation("(document)", value, rule)])


class _TooLargeError(Exception):
    """The document unfolds into too much, as with aliases of aliases."""


class _NoMappingError(Exception):
    """The document is something else than a mapping."""


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an anchor names, and how it reads as a key."""

    value: Any
    key: str


class _Reader:
    """Makes values from the parser's events, and keeps count of them."""

    def __init__(self, text: str) -> None:
        self.violations: list[Violation] = []
        self._parser = _Parser(text)
        self._anchors: dict[str, _Anchored | None] = {}
        """None while the value that is named is still being read."""
        self._values = 0

    def document(self) -> dict[str, Any]:
        """Return the one document of the text."""
        self._next()  # the stream begins
        if isinstance(self._next(), yaml.StreamEndEvent):
            raise _NoMappingError("nothing")
        first = self._next()
        if not isinstance(first, yaml.MappingStartEvent):
            raise _NoMappingError(_kind(first))
        data: dict[str, Any] = self._value(first, ())
        self._next()  # the document ends
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise _parser_error("expected a single document in the stream", after)
        return data

    def _next(self) -> Event:
        return self._parser.get_event()

    def _count(self, levels: int) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooLargeError(f"more than {MAX_VALUES:,} values")
        if levels > MAX_DEPTH:
            raise _TooLargeError(f"more than {MAX_DEPTH} levels")

    def _value(self, event: Event, location: Location) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._copy(self._anchored(event).value, len(location))
        self._count(len(location))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.MappingStartEvent):
            self._has_tag_of(event, location, {_MAPPING_TAG})
            value: Any = self._mapping(location)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._has_tag_of(event, location, {_SEQUENCE_TAG})
            value = self._sequence(location)
        else:
            value = self._scalar(event, location)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, _key(event))
        return value

    def _anchored(self, event: Event) -> _Anchored:
        if event.anchor not in self._anchors:
            raise _parser_error(f"found undefined alias {event.anchor!r}", event)
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise _TooLargeError(f"&{event.anchor} within itself")
        return anchored

    def _copy(self, value: Any, levels: int) -> Any:
        """Unfold what is repeated: it counts as often as it stands there."""
        self._count(levels)
        if isinstance(value, dict):
            return {key: self._copy(inner, levels + 1) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._copy(inner, levels + 1) for inner in value]
        return value

    def _sequence(self, location: Location) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            values.append(self._value(event, (*location, len(values))))
        return values

    def _mapping(self, location: Location) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            key = self._key(event, location)
            if key in values:
                self._refuse((*location, key), f"line {line}", f"is given twice (first in line {lines[key]})")
            values[key] = self._value(self._next(), (*location, key))
            lines.setdefault(key, line)
        return values

    def _key(self, event: Event, location: Location) -> str:
        if isinstance(event, yaml.AliasEvent):
            return self._anchored(event).key
        if not isinstance(event, yaml.ScalarEvent):
            self._value(event, (*location, _kind(event)))
        elif event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(_construct(event), _key(event))
        return _key(event)

    def _scalar(self, event: Event, location: Location) -> Any:
        return _construct(event) if self._has_tag_of(event, location, _PLAIN_TAGS) else str(event.value)

    def _has_tag_of(self, event: Event, location: Location, tags: set[str]) -> bool:
        """Return whether the tag of a value is one of these, or none; refuse any other."""
        if event.tag in {None, "!", *tags}:
            return True
        rule = f"has a tag that is not supported (line {event.start_mark.line + 1})"
        self._refuse(location, value_of(event.tag)[1:-1], rule)
        return False

    def _refuse(self, location: Location, value: str, rule: str) -> None:
        if len(self.violations) < MAX_REFUSALS:
            self.violations.append(Violation(path_of(location), value, rule))


def _construct(event: Event) -> Any:
    """Read a plain value; an explicit tag on what does not fit it (`!!int x`) leaves the text."""
    text = str(event.value)
    match _meaning(event, text):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text) if text.isascii() and text.lstrip("+-").isdecimal() and len(text) <= MAX_DIGITS else text
        case "float":
            number = float(text) if _NUMBER.fullmatch(text) and len(text) <= VALUE_LIMIT else inf
            return number if isfinite(number) else text
        case _:
            return text


_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def _meaning(event: Event, text: str) -> str:
    if event.tag in _PLAIN_TAGS:
        return str(event.tag).removeprefix(_PREFIX)
    if not event.implicit[0] or event.tag == "!":
        return "str"
    return next((name for name, pattern in _PLAIN if pattern.match(text)), "str")


def _parser_error(problem: str, event: Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _syntax_error(error: yaml.YAMLError, text: str) -> Violation:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "(document)"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    return Violation(place, value_of(_line_of(mark, text)), f"is not valid YAML or JSON: {problem}")


def _line_of(mark: yaml.Mark | None, text: str) -> str:
    lines = text.splitlines() if mark is not None else []
    return lines[mark.line].strip() if mark is not None and mark.line < len(lines) else ""


def _key(event: Event) -> str:
    return str(event.value) if isinstance(event, yaml.ScalarEvent) else _kind(event)


def _kind(event: Event) -> str:
    match event:
        case yaml.SequenceStartEvent():
            return "a list"
        case yaml.MappingStartEvent():
            return "a mapping"
        case _:
            return "a word"
