"""What is a table of the report page? Headings, and cells with what they are sorted by."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from taskgov.audit.report import Command
from taskgov.number_text import NOTHING, moment, number

MOST_ROWS: Final = 200
"""A page with more rows is slow to open and nobody reads it; the data beside it has all of them."""

Cell = tuple[str, str | float]
"""The text, and the value that the column is sorted by."""
Line = TypeVar("Line")
"""What one row is about."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, how its cells are set, and what it means (shown on hover).

    A column that `is_rare` is left out where it has nothing but zeros. Its `note` is part of the table's where it is
    shown.
    """

    label: str
    kind: str = "text"
    """`text`, `name` (not wrapped), `number`, `long` (a sentence)."""
    meaning: str = ""
    is_rare: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One section of the page; one without lines is not shown."""

    anchor: str
    title: str
    note: str
    fields: tuple["Field[Any]", ...]
    lines: Sequence[Any]
    """What its rows are about; a cell is made of them where it is shown."""
    commands: tuple[Command, ...] = ()
    is_folded: bool = False
    """Whether only its title and the number of its rows are shown until a person opens it."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its headings."""
        return tuple(field.column for field in self.fields)

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The cells of each line."""
        return tuple(tuple(field.cell(line) for field in self.fields) for line in self.lines)

    @property
    def is_tall(self) -> bool:
        """Whether it scrolls by itself, so that the next section is not far."""
        return len(self.lines) > 25

    def on_page(self) -> "Table":
        """Return it without columns that say nothing, and with at most `MOST_ROWS` rows."""
        kept = tuple(filter(self._says_something, self.fields))
        more = len(self.lines) - MOST_ROWS
        cut = (
            f"The first {MOST_ROWS} of {len(self.lines):,}; the JSON file next to this page has all rows."
            if more > 0
            else ""
        )
        return replace(
            self,
            note=" ".join(filter(None, (self.note, *(field.column.note for field in kept), cut))),
            fields=kept,
            lines=self.lines[:MOST_ROWS],
        )

    def _says_something(self, field: "Field[Any]") -> bool:
        is_rare = field.column.is_rare
        cells = map(field.cell, self.lines)
        return any(words not in {"", NOTHING} and not (is_rare and key == 0) for words, key in cells)


@dataclass(frozen=True, slots=True)
class Field(Generic[Line]):
    """A column, and what it shows of a line."""

    column: Column
    cell: Callable[[Line], Cell]


@dataclass(frozen=True, slots=True)
class Sheet(Generic[Line]):
    """A table before its lines are known: the text around it, and its fields."""

    anchor: str
    title: str
    note: str
    fields: tuple[Field[Line], ...]

    def of(self, lines: Iterable[Line], note: str = "") -> Table:
        """Return the table with a row for each line; `note` is appended to its own."""
        return Table(self.anchor, self.title, f"{self.note} {note}".strip(), self.fields, tuple(lines))


def name(label: str, of: Callable[[Line], str]) -> Field[Line]:
    """Return a column of names, which are not wrapped."""
    return Field(Column(label, "name"), lambda line: text_cell(of(line)))


def text(label: str, of: Callable[[Line], str], kind: str = "text") -> Field[Line]:
    """Return a column of texts; `long` ones are sentences."""
    return Field(Column(label, kind), lambda line: text_cell(of(line)))


def amount(
    label: str, of: Callable[[Line], float], meaning: str = "", *, is_rare: bool = False, note: str = ""
) -> Field[Line]:
    """Return a column of numbers."""
    return Field(Column(label, "number", meaning, is_rare, note), lambda line: number_cell(of(line)))


def when(label: str, of: Callable[[Line], datetime]) -> Field[Line]:
    """Return a column of moments; the heading names the zone."""
    return Field(Column(f"{label} (UTC)", "name"), lambda line: moment_cell(of(line)))


def moment_cell(at: datetime) -> Cell:
    """Return a moment, sorted by time."""
    return moment(at), at.timestamp()


def text_cell(words: str) -> Cell:
    """Return a text, sorted whatever its case."""
    return words, words.lower()


def number_cell(value: float, unit: str = "") -> Cell:
    """Return an amount, sorted by its number."""
    return number(value, unit), value
