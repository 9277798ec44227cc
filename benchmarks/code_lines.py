"""How many lines of code has each room, and what became of the lines since a commit? `make lines` prints it.

A line of code is one that has more than blanks, a comment or a string that documents. A line *moved* if it is gone from
one file and new in another one (blanks at its ends aside); otherwise it is *gone* or *new*. So a room's lines now are
those then, minus gone and moved away, plus new and moved in.
"""

import argparse
import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LAYER: Final = ("layers", "taskgov", "python", "taskgov")
PRODUCT: Final = ("layers", "functions", "workstation", "statemachines")
"""Folders whose lines are summed up."""
BESIDE: Final = ("tests", "benchmarks", "pictures")
_NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}

Lines = Counter[str]
Files = Mapping[str, Lines]
"""Path -> its lines of code."""


@dataclass(slots=True)
class Room:
    """The lines of a room at the commit and now, and how they became what they are."""

    then: int = 0
    now: int = 0
    gone: int = 0
    new: int = 0
    moved_away: int = 0
    moved_in: int = 0

    def __add__(self, other: "Room") -> "Room":
        return Room(
            self.then + other.then,
            self.now + other.now,
            self.gone + other.gone,
            self.new + other.new,
            self.moved_away + other.moved_away,
            self.moved_in + other.moved_in,
        )


@cache  # most files are the same then and now
def code_of(path: str, text: str) -> Lines:
    """Return the lines of code of a Python or YAML file, without the blanks at their ends."""
    lines = text.splitlines()
    if not path.endswith(".py"):
        return Counter(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    documenting = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = [range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in _NO_CODE]
    numbers = {number for span in spans for number in span} - documenting
    return Counter(line for number in numbers if (line := lines[number - 1].strip()))


def room_of(path: str) -> str:
    """Return the room of a file: a package of the layer or of workstation, or a folder.

    Example:
        >>> room_of("layers/taskgov/python/taskgov/usage/loans.py"), room_of("layers/taskgov/python/taskgov/people.py")
        ('taskgov.usage', 'taskgov')
        >>> room_of("workstation/taskgov_cli/doctor/state.py"), room_of("tests/cli/test_doctor.py")
        ('taskgov_cli', 'tests')

    """
    parts = PurePosixPath(path).parts
    if parts[: len(LAYER)] == LAYER:
        inside = parts[len(LAYER) :]
        return f"taskgov.{inside[0]}" if len(inside) > 1 else "taskgov"
    return parts[1] if parts[0] == "workstation" else parts[0]


def compare(then: Files, now: Files) -> dict[str, Room]:
    """Return what became of the lines of each room. A line is sought in its own room first."""
    rooms: dict[str, Room] = {}
    gone: dict[str, Lines] = {}
    new: dict[str, Lines] = {}
    for path in sorted({*then, *now}):
        before, after, name = then.get(path, Counter()), now.get(path, Counter()), room_of(path)
        room = rooms.setdefault(name, Room())
        room.then += before.total()
        room.now += after.total()
        gone.setdefault(name, Counter()).update(before - after)
        new.setdefault(name, Counter()).update(after - before)
    pairs = [(name, name) for name in rooms] + [(one, other) for one in rooms for other in rooms if one != other]
    for source, target in pairs:
        moved = gone[source] & new[target]
        gone[source] -= moved
        new[target] -= moved
        rooms[source].moved_away += moved.total()
        rooms[target].moved_in += moved.total()
    for name, room in rooms.items():
        room.gone, room.new = gone[name].total(), new[name].total()
    return rooms


def present() -> Files:
    """Return the files of the working tree that git does not ignore."""
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard", "-z", *PRODUCT, *BESIDE).decode()
    paths = (path for path in listed.split("\0") if _counts(path) and (ROOT / path).is_file())
    return {path: code_of(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths}


def at(commit: str) -> Files:
    """Return the files of a commit. Raises `CalledProcessError` when git knows no such commit."""
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit))) as archive:
        return {path: code_of(path, text) for path, text in _texts(archive)}


def _texts(archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for member in archive:
        content = archive.extractfile(member) if member.isfile() and _counts(member.name) else None
        if content is not None:
            yield member.name, content.read().decode()


def _counts(path: str) -> bool:
    folder = path.partition("/")[0]
    ending = (".py", ".asl.yaml") if folder == "statemachines" else (".py",)
    return folder in {*PRODUCT, *BESIDE} and path.endswith(ending)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True).stdout  # noqa: S603, S607 - a fixed program, with the caller's arguments


def table(rooms: Mapping[str, Room], *, since: str | None) -> Iterator[str]:
    """Give the lines of the table: the rooms of the product by size with their sum, then what is beside it."""
    heads = ("then", "gone", "new", "moved away", "moved in", "now") if since else ("now",)
    yield f"{'lines of code':24}" + "".join(f"{head:>12}" for head in heads)
    by_size = sorted(rooms.items(), key=lambda item: (-item[1].now, item[0]))
    product = [(name, room) for name, room in by_size if name not in BESIDE]
    total = sum((room for _, room in product), Room())
    for name, room in (*product, ("sum", total), *(item for item in by_size if item[0] in BESIDE)):
        values = (getattr(room, head.replace(" ", "_")) for head in heads)
        yield f"{name:24}" + "".join(f"{value:>12,}" for value in values)
    if since and total.then:
        yield f"{100 * (total.now - total.then) / total.then:+.1f} % since {since}"


def main(arguments: Iterable[str] | None = None) -> int:
    """Print the table. Returns 2 when the commit is not known."""
    parser = argparse.ArgumentParser(prog="make lines", description="Lines of code by room.")
    parser.add_argument("--since", metavar="COMMIT", help="show what became of the lines since this commit")
    since: str | None = parser.parse_args(None if arguments is None else list(arguments)).since
    try:
        then = None if since is None else at(since)
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode().strip(), file=sys.stderr)
        return 2
    now = present()
    print("\n".join(table(compare(now if then is None else then, now), since=since)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
