"""`taskgov config`: what holds when an option is not given, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.grid import table
from taskgov_cli.output import AsJson  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.settings import CONFIG, PROJECT_FILE, configuration_files, settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from taskgov_cli.settings import Setting


def config(*, form: Format = Form.TABLE, as_json: AsJson = False) -> None:
    """Show the default cluster, stack, context, format and policy document, and where each is set.

    Example: taskgov config
    """
    held, files = list(settings().values()), configuration_files()
    answer(lambda: {"settings": held, "files": files}, _shown(held, files), form, as_json=as_json)


def _shown(held: Iterable[Setting], files: list[Path]) -> Iterator[RenderableType]:
    rows = [(setting.key, setting.value or "", setting.origin or "not set") for setting in held]
    yield table("Settings", ("setting", "value", "from"), rows, main=True)
    none = f"none found; taskgov reads {PROJECT_FILE} here or in a folder above, or the file in {CONFIG}"
    yield Text(f"Files: {', '.join(map(str, files)) or none}")
