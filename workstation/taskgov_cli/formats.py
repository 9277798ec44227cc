"""The forms of an answer: tables for people, Markdown for comments, JSON, YAML and CSV for programs (`--format`)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from taskgov.printable import printable
from taskgov_cli import settings
from taskgov_cli.form import Form
from taskgov_cli.grid import Grid, table
from taskgov_cli.output import console, jsonable, print_json

Format = Annotated[
    Form,
    typer.Option(
        "--format",
        help="wide: no cell is folded; csv: only the main table; markdown: for comments; yaml: the data of --json.",
        envvar=settings.FORMAT,
        callback=settings.unless_typed("as_json", instead=Form.TABLE),
    ),
]

View = tuple[Callable[[], object], Iterable[RenderableType]]
"""An answer before it is printed: what programs get, and what people read."""
ANY_WIDTH: Final = 10_000


def answer(
    data: Callable[[], object],
    parts: Iterable[RenderableType],
    form: Form,
    *,
    as_json: bool,
    markdown: Callable[[], str] | None = None,
) -> None:
    """Print an answer in the form that was requested.

    `data` returns what programs get, `parts` are what people read, without empty tables; `markdown`
    returns the text of a command that has Markdown of its own. Raises `typer.BadParameter` for two forms at once.
    """
    match _form(form, as_json=as_json):
        case Form.JSON:
            print_json(data())
        case Form.YAML:
            import yaml  # noqa: PLC0415 - few answers are YAML

            typer.echo(yaml.safe_dump(jsonable(data()), sort_keys=False, width=ANY_WIDTH), nl=False)
        case Form.CSV:
            typer.echo(csv_of(parts), nl=False)
        case Form.MARKDOWN:
            typer.echo(markdown_of(parts) if markdown is None else markdown(), nl=False)
        case Form.WIDE:
            print_parts(parts, width=ANY_WIDTH)
        case Form.TABLE:
            print_parts(parts)


def unfolded(text: str, style: str = "") -> Text:
    """Return a line that stays one line, to be copied: a command, the path of a file."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def print_parts(parts: Iterable[RenderableType], out: Console | None = None, *, width: int | None = None) -> None:
    """Print what has something to say for people, on standard output by default: a table without rows has not."""
    out = out or console()
    for part in worth_showing(parts):
        if isinstance(part, Text) and part.no_wrap:
            out.print(part, soft_wrap=True)  # rich joins texts, and forgets that this one has one line
        else:
            out.print(part, width=width, crop=False)


def worth_showing(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Yield the parts without tables that have no rows."""
    return (part for part in parts if not isinstance(part, Grid) or part.rows)


def _form(form: Form, *, as_json: bool) -> Form:
    if as_json and form not in {Form.TABLE, Form.JSON}:
        raise typer.BadParameter(f"--json and --format {form} exclude each other")
    return Form.JSON if as_json else form


def csv_of(parts: Iterable[RenderableType]) -> str:
    """Return the main table as CSV (RFC 4180, lines end with a line feed), its headings also where it has no rows.

    Without a table, the sentences are the rows of a column `answer`. A cell that a spreadsheet would take for a formula
    begins with an apostrophe.
    """
    flat = list(_flat(parts))
    grids = [part for part in flat if isinstance(part, Grid)]
    sentences = ((part.plain if isinstance(part, Text) else str(part),) for part in flat)
    grid = next((grid for grid in grids if grid.main), grids[0] if grids else table("", ("answer",), sentences))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(grid.columns)
    for row in grid.rows:
        cells = zip(row, grid.numeric, strict=True)
        writer.writerow([cell.plain if is_number else _no_formula(cell.plain) for cell, is_number in cells])
    return out.getvalue()


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) and text != "-" else text


def markdown_of(parts: Iterable[RenderableType]) -> str:
    """Return Markdown: sentences are paragraphs, tables are tables under their title."""
    return "\n".join(block for part in _flat(parts) if (block := _block(part)))


def _flat(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    for part in parts:
        yield from _flat(part.renderables) if isinstance(part, Group) else (part,)


def _block(part: RenderableType) -> str:
    match part:
        case Grid():
            return markdown_table(part)
        case Text():
            return f"{escaped(part.plain.strip())}\n" if part.plain.strip() else ""
        case _:
            return f"{escaped(str(part).strip())}\n"


def markdown_table(grid: Grid) -> str:
    """Return a table under its title; nothing for one without rows."""
    if not grid.rows:
        return ""
    rule = ("---:" if is_number else "---" for is_number in grid.numeric)
    lines = [
        _row(escaped(name) for name in grid.columns),
        _row(rule),
        *(_row(escaped(cell.plain) for cell in row) for row in grid.rows),
    ]
    title = f"**{escaped(grid.title.strip())}**\n\n" if grid.title.strip() else ""
    return title + "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>|~$#&])|^([-+])", re.MULTILINE)


def escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is: no markup, no HTML, nobody is mentioned, no issue is linked.

    Example:
        >>> print(escaped("a|b @team <b>"))
        a\|b @<!-- -->team \<b\>

    """
    safe = _MARKUP.sub(r"\\\g<0>", printable(text, keep="\n")).replace("@", "@<!-- -->")
    return safe.replace("\n", "<br>")
