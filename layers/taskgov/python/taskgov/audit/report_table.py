"""What is a table of the report page? Headings, and cells with what they are sorted by."""

from dataclasses import dataclass

from taskgov.audit.report_text import number

Cell = tuple[str, str | float]
"""The text, and the value that the column is sorted by."""


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


def text_cell(text: str) -> Cell:
    """Return a text, sorted whatever its case."""
    return text, text.lower()


def number_cell(amount: float, unit: str = "") -> Cell:
    """Return an amount, sorted by its number."""
    return number(amount, unit), amount
