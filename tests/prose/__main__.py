"""Lint the texts that people read: `python -m tests.prose [FILE ...]`, in the environment `.venv-prose`.

The linter is proselint with its own checks, for Markdown, and the project's style (`style.py`), for all texts. It reads
them without code, links and HTML comments. Prints `file:line: what`, and ends with 1 where it found something.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__ as of_proselint
from proselint.registry.checks import Check
from proselint.registry.checks.types import PreferredForms

from tests.prose.style import OFF, PHRASES, WORDS
from tests.prose.texts import files_of_people, texts_of

FORMS = {f"(?:{pattern})": instead for pattern, instead in WORDS.items()}
OURS = Check(check_type=PreferredForms(FORMS), path="taskgov", message="'{1}': write {0}.")
PROSELINT = [check for check in of_proselint if not any(check.matches_partial(name) for name in OFF)]


def found_in(file: Path) -> Iterator[str]:
    """Yield what is wrong with a file, by lines."""
    checks = [OURS, *PROSELINT] if file.suffix == ".md" else [OURS]
    for begins, text in texts_of(file):
        for result in sorted(result for check in checks for result in check.check_with_flags(text)):
            yield f"{file}:{begins + text.count(chr(10), 0, result.span[0] + 1)}: {result.message}"
        for pattern, instead in PHRASES.items():
            for found in re.finditer(pattern, text, re.IGNORECASE):
                said = " ".join(found[0].split())
                yield f"{file}:{begins + text.count(chr(10), 0, found.end())}: '{said}': write {instead}."


def main(arguments: list[str]) -> int:
    """Lint these files, all of them by default."""
    files = [Path(name) for name in arguments] or files_of_people()
    problems = [problem for file in files for problem in found_in(file)]
    print("\n".join([*problems, f"prose: {len(files)} files, {len(problems)} found"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
