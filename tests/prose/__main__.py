"""Lint the texts that people read: `python -m tests.prose [FILE ...]`, in the environment `.venv-prose`.

The linter is proselint with its own checks and the project's (`style.py`). It reads Markdown without code, links and
HTML comments. Prints `file:line: what`, and ends with 1 where it found something.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__ as of_proselint
from proselint.registry.checks import Check
from proselint.registry.checks.types import PreferredForms

from tests.prose.style import OFF, WORDS

_LEFT_OUT = re.compile(
    r"(?ms)^```.*?^```|^~~~.*?^~~~|<!--.*?-->|``.+?``|`[^`\n]*`|\]\([^)\n]*\)|<[a-z/][^>\n]*>|https?://\S+"
)
OURS = Check(check_type=PreferredForms(WORDS), path="taskgov", message="'{1}': write {0}.")


def texts() -> list[Path]:
    """Return the Markdown that people read; the changelog keeps the words of its time."""
    return [Path("README.md"), Path("CONTRIBUTING.md"), Path("SECURITY.md"), *sorted(Path("docs").rglob("*.md"))]


def prose_of(text: str) -> str:
    """Return a text of the same length and lines, in which what is no prose is blank."""
    return _LEFT_OUT.sub(lambda found: re.sub(r"\S", " ", found[0]), text)


def found_in(file: Path) -> Iterator[str]:
    """Yield what is wrong with a file, by lines."""
    text = prose_of(file.read_text())
    checks = [check for check in of_proselint if not any(check.matches_partial(name) for name in OFF)]
    results = [result for check in (OURS, *checks) for result in check.check_with_flags(text)]
    for result in sorted(results):
        line = text.count("\n", 0, result.span[0] + 1) + 1
        yield f"{file}:{line}: {result.message}"


def main(arguments: list[str]) -> int:
    """Lint these files, all of them by default."""
    files = [Path(name) for name in arguments] or texts()
    problems = [problem for file in files for problem in found_in(file)]
    print("\n".join([*problems, f"prose: {len(files)} files, {len(problems)} found"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
