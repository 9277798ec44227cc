"""Which texts do people read in a file? Markdown, docstrings, messages and comments, without code and with their line.

Called by the linter (`python -m tests.prose`) and by the tests, which need nothing that is not in the standard library.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LEFT_OUT: Final = re.compile(
    r"(?ms)^```.*?^```|^~~~.*?^~~~|<!--.*?-->|``.+?``|`[^`\n]*`|\]\([^)\n]*\)|<[a-z/][^>\n]*>|https?://\S+|\b\d+(?:-[a-z]+)+"
)
_CODE: Final = re.compile(r"``.+?``|`[^`]*`|https?://\S+|^\s*(?:>>>|\.\.\.) .*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"(?s)\{#-?|-?#\}|\{%.*?%\}|\{\{.*?\}\}|<script.*?</script>|<style.*?</style>|<[^>]*>")
_OF_YAML: Final = re.compile(
    r"(?:^|\s)#\s?(.*)|^\s*(?:- )?(?:Alarm)?(?:[Dd]escription|Comment|title|about|shows|source): (.*)"
)
_WORD: Final = re.compile(r"(?<!\S)[A-Za-z]+(?=[\s,.:;]|$)")
_OF_MAKE: Final = re.compile(r"(?:^|\s)##? (.*)|\b(?:echo|say) \"(.*)\"")

_PRODUCT: Final = ("functions", "layers/taskgov/python", "workstation")

Text = tuple[int, str]
"""The line on which a text begins, and the text."""


def files_of_people() -> list[Path]:
    """Return the files that people read, from the root of the checkout."""
    pages = [
        Path("README.md"),
        Path("CONTRIBUTING.md"),
        Path("SECURITY.md"),
        Path("CHANGELOG.md"),
        *sorted(Path("docs").rglob("*.md")),
    ]
    code = [file for room in _PRODUCT for kind in ("*.py", "*.j2") for file in sorted(Path(room).rglob(kind))]
    played = sorted(Path("workstation").rglob("walkthrough/**/*.yaml"))
    shown = [file for kind in ("*.yaml", "*.yml") for file in sorted(Path("examples").rglob(kind))]
    forge = [file for kind in ("*.md", "*.yml") for file in sorted(Path(".github").rglob(kind))]
    others = [Path(name) for name in ("template.yaml", "action.yml", ".pre-commit-hooks.yaml", "Makefile", ".ci/run")]
    return [*pages, *code, *played, *sorted(Path("statemachines").glob("*.yaml")), *shown, *forge, *others]


def texts_of(file: Path) -> Iterator[Text]:
    """Yield the texts of a file by its kind, in the order in which they were found."""
    source = file.read_text()
    match file.suffix:
        case ".md":
            yield 1, prose_of(source)
        case ".py":
            yield from of_python(source)
        case ".yaml" | ".yml":
            yield from _of_lines(source, _OF_YAML)
        case ".j2" | ".html":
            yield 1, _MARKUP.sub(_blank, source)
        case _:
            yield from _of_lines(source, _OF_MAKE)


def prose_of(markdown: str) -> str:
    """Return a text of the same length and lines, in which what is no prose is blank."""
    return _LEFT_OUT.sub(_blank, markdown)


def of_python(source: str) -> Iterator[Text]:
    """Yield docstrings and comments, and of the other strings those of several words, one in plain letters: messages.

    What an f-string fills in is `{}`. Code in backticks and doctests is blank.
    """
    tree = ast.parse(source)
    joined = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    documenting = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in joined:
            text = node.value
        else:
            continue
        if node in documenting or (" " in text.strip() and _WORD.search(text)):
            yield node.lineno, _CODE.sub(_blank, text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _CODE.sub(_blank, token.string)


def _of_lines(source: str, pattern: re.Pattern[str]) -> Iterator[Text]:
    for number, line in enumerate(source.splitlines(), start=1):
        for found in pattern.finditer(line):
            yield number, _CODE.sub(_blank, next(filter(None, found.groups()), ""))


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"\S", " ", found[0])
