"""Commands that are imported when they run: what one command needs, no other waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, NoReturn

import typer
from typer.core import TyperCommand

from taskgov_cli.failures import SafeGroup

_BREAK: Final = re.compile(r"(?<=\S)\n(?=[^\s*])")
"""The end of a line within a paragraph."""


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command is (`module:function`, or a `Typer` with commands of its own), and what the list says of it."""

    place: str
    summary: str

    def load(self, name: str) -> Any:
        """Import the command."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            return _of(found, name)
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name)(found)
        return _of(single, name)


def _of(made: typer.Typer, name: str) -> Any:
    command = typer.main.get_command(made)
    command.name = name
    return _filled(command)


def _filled(command: Any) -> Any:
    """Let a terminal's width decide where the lines of a paragraph of help end, and not the docstring."""
    command.help = _BREAK.sub(" ", command.help or "")
    for within in getattr(command, "commands", {}).values():
        _filled(within)
    return command


class _Commands(MutableMapping[str, Any]):
    """The commands by name; each is imported on first use."""

    def __init__(self, places: Mapping[str, Lazy]) -> None:
        self._places = places
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._places[name].load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __setitem__(self, name: str, _command: Any) -> NoReturn:
        raise TypeError(f"{name}: commands are in the table of places")

    def __delitem__(self, name: str) -> NoReturn:
        raise TypeError(f"{name}: commands are in the table of places")


class LazyGroup(SafeGroup):
    """The commands of `groups`. The list of `--help` takes their summaries, group by group, and imports none."""

    groups: ClassVar[Mapping[str, Mapping[str, Lazy]]] = {}
    """Heading in the list -> its commands."""
    _listing = False

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands({name: lazy for group in self.groups.values() for name, lazy in group.items()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, imported; while help is written, one that only has its name and summary."""
        if self._listing:
            for heading, group in self.groups.items():
                if cmd_name in group:
                    return TyperCommand(cmd_name, help=group[cmd_name].summary, rich_help_panel=heading)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click gives it
        """Return the names, in the order of the groups."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False
