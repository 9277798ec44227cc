"""A table as a value: a title, columns, rows. What is printed, as text, Markdown or CSV, is made from it.

A terminal that is too narrow for the columns gets a block of lines for each row instead of words cut into letters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from rich.cells import cell_len
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from taskgov.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType

Piece: TypeAlias = "str | Text"
"""A part of a line."""
LONGEST_WORD: Final = 24
"""Columns have room for words of this length; longer ones (names of nodes, ARNs) may be folded."""
LONGEST_WHOLE: Final = 12
"""A cell of at most this length is not folded."""
GAP: Final = 2
"""The space between two columns, and around the first and the last together."""
INDENT: Final = 3
"""The indent of the rows below the first cell of a block."""


@dataclass(frozen=True)
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

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType | Segment]:
        """Yield the table; without its empty columns or as a block for each row where it would not fit."""
        for grid in (self, self._without_empty_columns()):
            if grid._least_width() <= options.max_width:  # noqa: SLF001 - of the same class
                yield from grid._as_table(console, options)  # noqa: SLF001 - of the same class
                return
        yield from self._as_blocks(options)

    def _least_width(self) -> int:
        """Return the width below which words of ordinary length are folded."""
        return sum(width + GAP for width in self._least_widths)

    @cached_property
    def _least_widths(self) -> list[int]:
        """The longest word of each column; a word that may be folded counts as `LONGEST_WORD`."""
        return [
            min(max(map(cell_len, _words(heading, *set(column))), default=0), LONGEST_WORD)
            for heading, *column in self._texts
        ]

    @cached_property
    def _texts(self) -> list[list[str]]:
        """The texts of each column, its heading first."""
        cells = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        return [[name, *(cell.plain for cell in column)] for name, column in zip(self.columns, cells, strict=True)]

    def _fitting_widths(self, room: int) -> list[int]:
        """Return widths in which no word of ordinary length is folded: the columns that need least get theirs first."""
        distinct = map(set, self._texts)
        whole = [max(cell_len(line) for text in column for line in text.splitlines() or [""]) for column in distinct]
        widths = [*self._least_widths]
        spare = room - sum(widths)
        for at in sorted(range(len(widths)), key=lambda at: whole[at] - widths[at]):
            more = max(0, min(whole[at] - widths[at], spare))
            widths[at] += more
            spare -= more
        return widths

    def _without_empty_columns(self) -> Grid:
        kept = [at for at in range(len(self.columns)) if at == 0 or any(row[at].plain for row in self.rows)]
        return replace(
            self,
            columns=tuple(self.columns[at] for at in kept),
            numeric=tuple(self.numeric[at] for at in kept),
            rows=tuple(tuple(row[at] for at in kept) for row in self.rows),
        )

    def _as_table(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType | Segment]:
        """Yield the table. A pipe has no colours: plain rows become lines at once, as rich would do."""
        result = Table(
            title=self.title or None, title_justify="left", title_style="bold", header_style="bold", box=None
        )
        widths = self._fitting_widths(options.max_width - GAP * len(self.columns))
        for name, is_number, width in zip(self.columns, self.numeric, widths, strict=True):
            result.add_column(name, justify=_side(is_number), overflow="fold", width=width)
        at_once = not options.is_terminal and all(text.isprintable() for texts in self._texts for text in texts)
        for row in () if at_once else self.rows:
            result.add_row(*row)
        yield result
        if at_once:
            yield Segment("".join(self._lines(widths, console)))

    def _lines(self, widths: Sequence[int], console: Console) -> Iterator[str]:
        columns = []
        for (_, *texts), width, is_number in zip(self._texts, widths, self.numeric, strict=True):
            filled = {text: _filled_up(text, width, console, to_the_right=is_number) for text in set(texts)}
            columns.append([filled[text] for text in texts])
        blanks = [" " * (width + GAP) for width in widths]
        for row in zip(*columns, strict=True):
            for lines in zip_longest(*row, fillvalue=""):
                yield from lines if all(lines) else (line or blank for line, blank in zip(lines, blanks, strict=True))
                yield "\n"

    def _as_blocks(self, options: ConsoleOptions) -> Iterator[RenderableType | Segment]:
        """Yield each row as its first cell, and below it the others: short ones together, a long one on its own."""
        if self.title:
            yield Text(self.title, style="bold")
        for first, *others in self.rows:
            yield _indented([f"{self.columns[0]} ", first] if self.numeric[0] else [first], 1, options)
            named = [(name, cell) for name, cell in zip(self.columns[1:], others, strict=True) if cell.plain]
            for short, group in groupby(named, key=lambda pair: _is_short(pair[1].plain)):
                parts = [(name, " " if short else ": ", cell) for name, cell in group]
                for line in _filled(parts, options.max_width - INDENT) if short else parts:
                    yield _indented(line, INDENT, options)


def _filled_up(text: str, width: int, console: Console, *, to_the_right: bool) -> list[str]:
    """Return the lines of a cell, filled up to its width, as rich does."""
    text = text.rstrip() if to_the_right else text
    gap = " " * (width - cell_len(text))
    if cell_len(text) > width:
        wrapped = Text(text).wrap(console, width, justify=_side(to_the_right), overflow="fold")
        return [f" {line.plain} " for line in wrapped]
    return [f" {gap}{text} " if to_the_right else f" {text}{gap} "]


def _side(is_number: bool) -> Literal["left", "right"]:  # noqa: FBT001 - of the map of columns
    return "right" if is_number else "left"


def _words(heading: str, *cells: str) -> Iterator[str]:
    """Yield what stays on one line: words, and short cells as they are, such as `4 min 46 s`."""
    yield from heading.split()
    for cell in cells:
        yield from (cell,) if cell_len(cell) <= LONGEST_WHOLE else cell.split()


def _is_short(text: str) -> bool:
    return cell_len(text) <= LONGEST_WORD and "," not in text


def _plain(line: Sequence[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece.plain for piece in line)


def _indented(line: Sequence[Piece], indent: int, options: ConsoleOptions) -> RenderableType | Segment:
    """Return a line. A pipe has no colours: what fits is text at once, as rich would make of it."""
    width, text = options.max_width - indent, _plain(line)
    if options.is_terminal or not text.isprintable() or cell_len(text) > width:
        return Padding(Text.assemble(*line), (0, 0, 0, indent))
    return Segment(f"{' ' * indent}{text}{' ' * (width - cell_len(text))}\n")


def _filled(parts: Iterable[Sequence[Piece]], width: int) -> Iterator[Sequence[Piece]]:
    """Yield lines of parts with commas between them, none of which is longer than the width if a part is not."""
    line: list[Piece] = []
    taken = 0
    for part in parts:
        length = cell_len(_plain(part))
        if line and taken + length + 1 > width:
            yield [*line, ","]
            line, taken = [], 0
        line += [", ", *part] if line else part
        taken += length + 2
    if line:
        yield line


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, main: bool = False) -> Grid:
    """Return a table; columns whose heading ends with a number sign (` #`) hold numbers."""
    known: dict[str, Text] = {}

    def cell_of(value: Any) -> Text:
        if isinstance(value, Text):
            return value
        text = str(value)
        if text not in known:
            known[text] = Text(printable(text, keep="\n"))
        return known[text]

    return Grid(
        title,
        tuple(column.removesuffix(" #") for column in columns),
        tuple(column.endswith(" #") for column in columns),
        tuple(tuple(map(cell_of, row)) for row in rows),
        main,
    )
