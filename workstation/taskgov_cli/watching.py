"""`--watch`: answer again and again, until Ctrl-C. On a terminal in place; in a pipe or a file one after the other."""

from __future__ import annotations

import io
import time
from contextlib import redirect_stderr
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from taskgov.printable import printable
from taskgov_cli.failures import ending_of
from taskgov_cli.form import Form
from taskgov_cli.formats import answer, worth_showing
from taskgov_cli.output import OK, console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

    from taskgov_cli.formats import View

SEPARATORS: Final = {Form.TABLE: "\n", Form.WIDE: "\n", Form.MARKDOWN: "\n", Form.YAML: "---\n"}
"""What stands between two answers; JSON and CSV need nothing."""


def watch(look: Callable[[], View], every: float, form: Form, *, as_json: bool) -> None:
    """Answer what `look` returns, every so many seconds, until Ctrl-C.

    The first call fails as the command does without `--watch`. Later failures are printed, and the next call may work.
    Raises `typer.Exit` always.
    """
    try:
        out = console()
        if out.is_terminal and form is Form.TABLE and not as_json:
            first = list(worth_showing(look()[1]))
            with Live(Group(*first), console=out, auto_refresh=False) as live:
                for parts in _in_place(look, first, every):
                    live.update(Group(*parts), refresh=True)
        else:
            _one_after_the_other(look, every, form, as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit(OK) from None  # it is how a person ends it


def _in_place(look: Callable[[], View], last: list[RenderableType], every: float) -> Iterator[list[RenderableType]]:
    """Yield what to show; what commands print on standard error stands below it, where it spoils no table."""
    while True:
        time.sleep(every)
        with redirect_stderr(io.StringIO()) as notes:
            failed = None
            try:
                _, parts = look()
                last = list(worth_showing(parts))
            except Exception as error:  # noqa: BLE001 - `_sentence` raises what is a defect
                failed = f"{datetime.now(UTC):%H:%M:%S} UTC, no new answer: {_sentence(error)}".rstrip()
        lines = [printable(line) for line in notes.getvalue().splitlines()]
        yield [*last, *([Text(failed, style="yellow")] if failed else ()), *(Text(line, style="dim") for line in lines)]


def _one_after_the_other(look: Callable[[], View], every: float, form: Form, *, as_json: bool) -> None:
    data, parts = look()
    answer(data, parts, form, as_json=as_json)
    while True:
        time.sleep(every)
        try:
            data, parts = look()
        except Exception as error:  # noqa: BLE001 - `_sentence` raises what is a defect
            if sentence := _sentence(error):
                console(stderr=True).print(sentence, soft_wrap=True)
            continue
        typer.echo("" if as_json else SEPARATORS.get(form, ""), nl=False)
        answer(data, parts, form, as_json=as_json)


def _sentence(error: Exception) -> str:
    """Return why a call failed; nothing for what was said already. Raises the error if it is a defect of taskgov."""
    if isinstance(error, typer.Exit):
        return ""
    if isinstance(error, typer.BadParameter):
        return error.message
    ending = ending_of(error)
    if ending is None:
        raise error
    return ending[1]
