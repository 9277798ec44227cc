"""What is a table of the report page? Headings, and cells with what they are sorted by."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from taskgov.number_text import moment, number

Cell = tuple[str, str | float]
"""The text, and the value that the column is sorted by."""
Line = TypeVar("Line")
"""What one row is about."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, how its cells are set, and what it means (shown on hover)."""

    label: str
    kind: str = "text"
    """`text`, `name` (not wrapped), `number`, `long` (a sentence)."""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One section of the page."""

    anchor: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    when_empty: str


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
    when_empty: str
    fields: tuple[Field[Line], ...]

    def of(self, lines: Iterable[Line], note: str = "") -> Table:
        """Return the table with a row for each line; `note` is appended to its own."""
        rows = tuple(tuple(field.cell(line) for field in self.fields) for line in lines)
        columns = tuple(field.column for field in self.fields)
        return Table(self.anchor, self.title, f"{self.note} {note}".strip(), columns, rows, self.when_empty)


def name(label: str, of: Callable[[Line], str]) -> Field[Line]:
    """Return a column of names, which are not wrapped."""
    return Field(Column(label, "name"), lambda line: text_cell(of(line)))


def text(label: str, of: Callable[[Line], str], kind: str = "text") -> Field[Line]:
    """Return a column of texts; `long` ones are sentences."""
    return Field(Column(label, kind), lambda line: text_cell(of(line)))


def amount(label: str, of: Callable[[Line], float], meaning: str = "") -> Field[Line]:
    """Return a column of numbers."""
    return Field(Column(label, "number", meaning), lambda line: number_cell(of(line)))


def when(label: str, of: Callable[[Line], datetime]) -> Field[Line]:
    """Return a column of moments."""
    return Field(Column(label, "name"), lambda line: moment_cell(of(line)))


def moment_cell(at: datetime) -> Cell:
    """Return a moment, sorted by time."""
    return moment(at), at.timestamp()


def text_cell(words: str) -> Cell:
    """Return a text, sorted whatever its case."""
    return words, words.lower()


def number_cell(value: float, unit: str = "") -> Cell:
    """Return an amount, sorted by its number."""
    return number(value, unit), value
