"""How answers are shown: rich tables for people, JSON for programs, and the exit codes.

Names, reasons and errors are what others wrote. Whatever is printed for people passes through here, so that no control
character of theirs reaches the terminal; JSON escapes them by itself.

Exit codes: 0 all is well, 1 the answer is "no" (violations, failed checks), 2 the command was not understood or this
machine lacks what it needs (a file, a Region), 3 the cluster or AWS could not be read, 4 there are changes (`plan
--exit-code`).
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from taskgov.findings import Finding, Severity
from taskgov.json_form import member_of
from taskgov.printable import printable
from taskgov_cli.grid import Grid, table

OK, NO, NOT_UNDERSTOOD, UNREACHABLE, CHANGES = range(5)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
"""The option that every command has."""
SEVERITY_STYLE = {
    Severity.INFO: "cyan",
    Severity.WARNING: "yellow",
    Severity.ERROR: "red",
    Severity.INCIDENT: "bold white on red",
}


class _SafeConsole(Console):
    """Prints what is not seen (ANSI's ESC, C1, marks of direction) as its escape; its own colours stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n"), segment.style)

    def on_broken_pipe(self) -> None:
        """Let `taskgov_cli.failures` end the command: rich would end it with 1, which is an answer."""
        raise BrokenPipeError from None


def console(*, stderr: bool = False) -> Console:
    """Return the console: as wide as the terminal or `COLUMNS` says, else wide enough for tables (a file, a pipe).

    Square brackets are text: what others wrote may hold them, and rich would read `[/b]` as its own markup.
    """
    plain = _SafeConsole(stderr=stderr, highlight=False, markup=False)
    if plain.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return plain
    return _SafeConsole(stderr=stderr, highlight=False, markup=False, width=140)


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Say on a terminal what is being done, for what may take longer than a person waits in silence.

    Yields a function that says what is done now. On standard error, so that no answer has it; a pipe gets nothing.
    """
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    with out.status(what) as status:
        yield status.update


def print_error(what: str, sentence: object) -> None:
    """Print why a command ends, on standard error: a word for what happened, and a sentence."""
    console(stderr=True).print(Text.assemble((f"{what}:", "red"), f" {sentence}"), soft_wrap=True)


def print_json(value: object) -> None:
    """Print a value as JSON on standard output, and nothing else; dataclasses anywhere in it are as in `jsonable`."""
    text = json.dumps(jsonable(value), indent=2).replace("\x7f", "\\u007f")
    typer.echo(text)


def jsonable(value: object) -> Any:
    """Return a value in JSON's own types: the members of dataclasses as in `taskgov.json_form`, other keys as they are.

    A named tuple is like a dataclass. What a dataclass holds is shown as what it is, also where a field says less.
    """
    match value:
        case str():
            return str(value)
        case Mapping():
            names = to_jsonable_python(dict.fromkeys(value), fallback=str)
            return dict(zip(names, map(jsonable, value.values()), strict=True))
        case tuple() if hasattr(value, "_asdict"):
            return {member_of(name): jsonable(part) for name, part in value._asdict().items()}
        case list() | tuple() | set() | frozenset():
            return list(map(jsonable, value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {member_of(field.name): jsonable(getattr(value, field.name)) for field in fields(value)}
        case _:
            return to_jsonable_python(value, fallback=str)


def findings_table(findings: Iterable[Finding], *, main: bool = False) -> Grid:
    """Return findings, worst first."""
    order = list(Severity)
    worst_first = sorted(findings, key=lambda finding: (-order.index(finding.severity), finding.code, finding.subject))
    rows = [
        (
            Text(finding.severity, style=SEVERITY_STYLE[finding.severity]),
            finding.code,
            finding.subject,
            finding.because,
            finding.remedy,
        )
        for finding in worst_first
    ]
    return table("Findings", ("severity", "code", "about", "because", "remedy"), rows, main=main)
