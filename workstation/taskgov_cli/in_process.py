"""Commands that another command types: the demo's questions, the first day, the smoke test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from taskgov_cli import INTERRUPTED
from taskgov_cli.settings import NONE_HOLDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer import Typer
    from typer.testing import Result


def typed(app: Typer, words: Sequence[str]) -> Result:
    """Run a command in this process, as a person types it who has set nothing.

    Raises what no command should raise, and KeyboardInterrupt where Ctrl-C ended it.
    """
    result = CliRunner(env=NONE_HOLDS).invoke(app, list(words))
    if result.exit_code == INTERRUPTED:
        raise KeyboardInterrupt
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
