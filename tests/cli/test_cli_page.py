"""`docs/cli.md` is what the commands say of themselves."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import typer
from typer.cli import get_docs_for_click
from typer.core import TyperGroup

from taskgov_cli.main import GROUPS, app
from tests.support.golden import assert_section

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_lists_every_command_with_its_options() -> None:
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="taskgov")
    head, _, rest = text.partition("\n")[2].strip().partition("**Commands**:\n\n")
    _, _, details = rest.partition("\n\n")  # typer's list has half sentences, and no groups
    assert isinstance(command, TyperGroup)
    for short, whole in of_groups(command):
        details = details.replace(short, whole)
    lines = f"{head}{''.join(groups())}{details}".splitlines()
    assert_section(PAGE, "commands", "\n".join(map(wrapped, lines)))


def of_groups(command: TyperGroup) -> Iterator[tuple[str, str]]:
    """Yield the lines of commands within commands: as typer cuts them, and with their whole sentence."""
    context = typer.Context(command)
    for group in (command.get_command(context, name) for name in command.list_commands(context)):
        for inner in group.commands.values() if isinstance(group, TyperGroup) else ():
            cut, whole = inner.get_short_help_str(), inner.get_short_help_str(10_000)
            yield f"* `{inner.name}`: {cut}", f"* `{inner.name}`: {whole}"


def wrapped(line: str) -> str:
    """Wrap a line of Markdown; what continues an item of a list is indented."""
    return fill(line, 120, subsequent_indent="  " if line.startswith("*") else "", break_on_hyphens=False)


def groups() -> Iterator[str]:
    """Yield the list of commands, each linked with its section, in the groups of `--help`."""
    for heading, commands in GROUPS.items():
        listed = (f"* [`{name}`](#taskgov-{name}): {lazy.summary}" for name, lazy in commands.items())
        yield f"**{heading}**:\n\n" + "\n".join(listed) + "\n\n"
