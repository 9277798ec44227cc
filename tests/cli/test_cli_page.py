"""`docs/cli.md` is what the commands say of themselves."""

from pathlib import Path
from textwrap import fill

import typer
from typer.cli import get_docs_for_click

from taskgov_cli.main import app
from tests.support.golden import assert_section

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_lists_every_command_with_its_options() -> None:
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="taskgov")
    lines = text.partition("\n")[2].strip().splitlines()
    wrapped = (fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) for line in lines)
    assert_section(PAGE, "commands", "\n".join(wrapped))
