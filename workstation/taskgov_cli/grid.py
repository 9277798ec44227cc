"""A table as a value: a title, columns, rows. What is printed, as text, Markdown or CSV, is made from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from taskgov.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows under columns; rich prints it as a table without lines."""

    title: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    """Which columns hold numbers, and are right-aligned."""
    rows: tuple[tuple[Text, ...], ...]
    main: bool = False
    """Whether it is the main table of the command: CSV is made of it."""

    def untitled(self) -> Grid:
        """Return the table without its title, for a place that names it already."""
        return replace(self, title="")

    def __rich__(self) -> Table:
        """Return the table that rich prints."""
        result = Table(
            title=self.title or None, title_justify="left", title_style="bold", header_style="bold", box=None
        )
        for name, is_number in zip(self.columns, self.numeric, strict=True):
            result.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in self.rows:
            result.add_row(*row)
        return result


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, main: bool = False) -> Grid:
    """Return a table; columns whose heading ends with a number sign (` #`) hold numbers."""
    return Grid(
        title,
        tuple(column.removesuffix(" #") for column in columns),
        tuple(column.endswith(" #") for column in columns),
        tuple(
            tuple(cell if isinstance(cell, Text) else Text(printable(str(cell), keep="\n")) for cell in row)
            for row in rows
        ),
        main,
    )
