"""Collect what the pages print to be typed: `commands_of(page)`, in order, each with its line and what it prints.

| where | what is typed |
| --- | --- |
| a block of `bash` | each statement; a function or a loop is one statement |
| a block of `console` | what comes after `$ `; what comes below it is printed |
| a block of `text` | commands that the product prints to be typed: indented, `taskgov` or `.venv/bin/taskgov` |
| `Example: taskgov ...` | the rest of the line (docs/cli.md, which is made from the commands' help) |
| code within a sentence | a whole command: a program with an argument or an option |

`...` within a sentence leaves something out: that is no command. A program with nothing but names of its commands
(`taskgov snapshot`, `aws eks create-addon`) is a name and no command; `make` has no such names. The usage lines of
docs/cli.md (`[OPTIONS]`) are generated, and are no commands either.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from taskgov_cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
BESIDE: Final = "walkthroughs.md"
"""The page whose commands `tests/walkthroughs` types, with kubectl and without: each of its sections has an account."""
PROGRAMS: Final = ["taskgov", "make", "sam", "aws", "kubectl", "python", "pipx?", "curl", "sed", "mkdir", "terraform"]
"""Programs that sentences name with what follows them; regular expressions."""
_BLOCK: Final = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_STARTS: Final = re.compile(rf"(?:\w+=\S+ )*(?:\.venv/bin/)?(?:{'|'.join(PROGRAMS)}|pytest) \S")
_NAMES: Final = re.compile(r"(?:sam|aws|kubectl|git|terraform)(?: [a-z][a-z0-9-]*)+")


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it is printed. `printed` is None where the page does not show what it prints."""

    page: str
    line: int
    text: str
    printed: str | None = None
    in_block: bool = True

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def pages() -> list[Path]:
    """Return the pages that people read."""
    texts = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*texts, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


@cache
def commands() -> tuple[Command, ...]:
    """Return every command of every page, but for `BESIDE`."""
    return tuple(one for page in pages() if page.name != BESIDE for one in commands_of(page))


def commands_of(page: Path) -> list[Command]:
    """Return the commands of one page, in its order."""
    text, name = page.read_text(), str(page.relative_to(ROOT))
    found = [*_in_blocks(name, text), *_in_prose(name, text)]
    return sorted(found, key=lambda one: one.line)


def _in_blocks(page: str, text: str) -> Iterator[Command]:
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start()) + 2
        lines = [line.removeprefix(block["indent"]) for line in block["text"].splitlines()]
        match block["language"]:
            case "bash":
                yield from (Command(page, first + at, one) for at, one in _statements(lines))
            case "console":
                yield from _console(page, first, lines)
            case "text":
                for at, line in enumerate(lines):
                    if found := re.match(r"  (\.venv/bin/taskgov .*|taskgov .*)", line):
                        yield Command(page, first + at, found[1])
            case _:
                pass


def _statements(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Return the statements of a script with the number of their first line, from 0."""
    held: list[str] = []
    for at, line in enumerate(lines):
        held.append(line)
        text = "\n".join(held)
        if line.endswith("\\") or not _is_whole(text):
            continue
        if text.strip() and not text.startswith("#"):
            yield at + 1 - len(held), text
        held = []
    if held:
        raise ValueError(f"no end: {held[0]}")


@cache
def _is_whole(text: str) -> bool:
    """Say whether the shell would carry this out, and not wait for more."""
    opens = text.count("'") % 2 or text.count('"') % 2 or re.match(r"(for|while|if|\w+\(\)) ?", text)
    if not opens:
        return True
    read = ["/bin/bash", "-n", "-c", text]
    return subprocess.run(read, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own pages


def _console(page: str, first: int, lines: list[str]) -> Iterator[Command]:
    starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        printed = "\n".join(lines[start + 1 : end]).strip()
        if "[OPTIONS]" not in lines[start]:
            yield Command(page, first + start, lines[start].removeprefix("$ "), printed or None)


def _in_prose(page: str, text: str) -> Iterator[Command]:
    prose = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for found in re.finditer(r"`([^`\n]+)`|^Example: (taskgov .*)$", prose, re.MULTILINE):
        command = found[1] or found[2]
        if _STARTS.match(command) and not is_a_name(command):
            yield Command(page, prose.count("\n", 0, found.start()) + 1, command, in_block=False)


def is_a_name(text: str) -> bool:
    """Say whether these are only names: of a command, or of a command and an option whose value is left out."""
    if not text.startswith("taskgov ") or "..." in text:
        return "..." in text or _NAMES.fullmatch(text) is not None
    command: Any = typer.main.get_command(app)
    words = text.split()[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    valued = {name for option in command.params if not getattr(option, "is_flag", False) for name in option.opts}
    return len(words) == 0 or (len(words) == 1 and words[0].startswith("-") and words[0] in valued)
