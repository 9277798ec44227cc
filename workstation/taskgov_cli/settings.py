"""Settings: what nobody wants to type again. From the environment, or from a configuration file.

An option of the command line comes first, then the environment, then `taskgov.toml` of the working directory or the
nearest folder above it that has one, then the person's own file (`$XDG_CONFIG_HOME/taskgov/config.toml`, by default in
`~/.config`), then the default. `TASKGOV_CONFIG` names a file to read instead of both.

A parameter of a command takes part if it declares the variable of a setting (`envvar=settings.CLUSTER`).
"""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer  # noqa: TC002 -- typer reads the annotations of callbacks

from taskgov.printable import printable
from taskgov_cli.form import Form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLUSTER, STACK, CONTEXT, FORMAT = "TASKGOV_CLUSTER", "TASKGOV_STACK", "TASKGOV_CONTEXT", "TASKGOV_FORMAT"
POLICY: Final = "TASKGOV_POLICY"
KEYS: Final = {"cluster": CLUSTER, "stack": STACK, "context": CONTEXT, "format": FORMAT, "policy": POLICY}
"""Key in a file -> variable of the environment."""
CONFIG: Final = "TASKGOV_CONFIG"
NONE_HOLDS: Final = {**dict.fromkeys(KEYS.values()), CONFIG: os.devnull}
"""The environment of a command that another command types: what a person has set is not for it."""
PROJECT_FILE, OWN_FILE = "taskgov.toml", Path("taskgov", "config.toml")
_LONGEST: Final = 2048


class SettingsError(Exception):
    """A configuration file cannot be used; the message names file, key, value and rule."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What holds for a key, and where it comes from: a variable or a file; None where nothing is set."""

    key: str
    value: str | None
    origin: str | None


def configuration_files() -> list[Path]:
    """Return the files that count here, the nearest first."""
    if named := os.environ.get(CONFIG):
        return [Path(named)]
    found = next(filter(_is_file, (folder / PROJECT_FILE for folder in _folders())), None)
    own = [file for file in _own_file() if _is_file(file)]
    return own if found is None else [found, *own]


def _folders() -> Iterator[Path]:
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return
    yield from (here, *here.parents)


def _own_file() -> Iterator[Path]:
    """Yield the person's own file (XDG Base Directory Specification: a relative path does not count)."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config")
    try:
        folder = folder.expanduser()
    except RuntimeError:  # the user has no home directory
        return
    if folder.is_absolute():
        yield folder / OWN_FILE


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # in a folder that may not be looked into
        return False


def read_file(file: Path) -> dict[str, str]:
    """Return the settings in a file. Raises SettingsError, which names everything that is wrong in it; OSError."""
    try:
        values = tomllib.loads(file.read_bytes().decode())
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: a configuration file is TOML in UTF-8; {error.reason}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{file}: a configuration file is TOML; {printable(str(error))}") from error
    wrong = [said for key, value in values.items() if (said := _wrong(key, value))]
    if wrong:
        raise SettingsError(f"{file}: {'; '.join(wrong)}")
    return values


def _wrong(key: str, value: object) -> str | None:
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, n=1)
        guess = f"; did you mean {near[0]}?" if near else ""
        return f"there is no setting {printable(key)!r:.60}, only {', '.join(KEYS)}{guess}"
    if not isinstance(value, str) or not 0 < len(value.strip()) <= _LONGEST or printable(value) != value:
        return f"{key} must be text in quotes of 1 to {_LONGEST} characters, not {value!r:.60}"
    if key == "format" and value not in list(Form):
        return f"format must be one of {', '.join(Form)}, not {value!r:.60}"
    return None


def settings() -> dict[str, Setting]:
    """Return what holds for each key. Raises SettingsError, OSError."""
    found: dict[str, Setting] = {}
    for key, variable in KEYS.items():
        if value := os.environ.get(variable):
            found[key] = Setting(key, value, variable)
    for file in configuration_files():
        for key, value in read_file(file).items():
            from_file = str(file.parent / value) if key == "policy" else value  # so that it holds in folders below
            found.setdefault(key, Setting(key, from_file, str(file)))
    return {key: found.get(key, Setting(key, None, None)) for key in KEYS}


def defaults(command: Any) -> dict[str, Any]:
    """Return what files say for the parameters of a command, by name; of a group, for each of its commands.

    For a file that cannot be used, each is a function that raises the error: help is shown anyway.
    """
    if subcommands := getattr(command, "commands", None):
        return {name: defaults(subcommand) for name, subcommand in subcommands.items()}
    keys = {variable: key for key, variable in KEYS.items()}
    named = {param.name: keys[param.envvar] for param in command.params if param.envvar in keys}
    if not named:
        return {}
    try:
        held = settings()
    except (SettingsError, OSError) as error:
        return dict.fromkeys(named, _raising(error))
    return {name: held[key].value for name, key in named.items() if held[key].value is not None}


def _raising(error: Exception) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail


# What is typed comes first, also where it excludes a setting.


def unless_typed(other: str, instead: object = None) -> Callable[[typer.Context, typer.CallbackParam, Any], Any]:
    """Return the callback of an option whose setting does not count beside `other`, a parameter that was given."""

    def counts(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
        return value if _is_typed(ctx, param.name) or not ctx.params.get(other) else instead

    return counts


def of_the_cluster(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """Return the context of the kubeconfig; one that is set belongs to the cluster that is set, and to no other."""
    typed = ctx.params.get("cluster") if _is_typed(ctx, "cluster") else None
    if value is None or typed is None or _is_typed(ctx, param.name):
        return value
    return value if settings()["cluster"].value in {None, typed} else None


def _is_typed(ctx: typer.Context, name: str | None) -> bool:
    source = ctx.get_parameter_source(name or "")
    return source is not None and source.name == "COMMANDLINE"
