"""A page that promises something names its test, and the test is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
NAMED = re.compile(r"`(?P<path>tests/[\w/.-]+)(?:::(?P<test>test_\w+))?`")
ALONE = re.compile(r"`(test_\w+)`")
MAKE = re.compile(r"`make ([\w-]+)")


@cache
def names_in(file: Path) -> frozenset[str]:
    """Return the names of the tests in a file, and its own."""
    found = ast.walk(ast.parse(file.read_text()))
    tests = (node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    return frozenset((*tests, file.stem))


@cache
def every_test() -> frozenset[str]:
    return frozenset().union(*(names_in(file) for file in (ROOT / "tests").rglob("test_*.py")))


def missing(text: str) -> list[str]:
    """Return what a page names and nobody finds."""
    gone = [name for name in ALONE.findall(text) if name not in every_test()]
    for found in NAMED.finditer(text):
        file = ROOT / found["path"]
        if not file.exists() or (found["test"] and found["test"] not in names_in(file)):
            gone.append(found[0])
    return gone


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    assert missing(page.read_text()) == []


def test_a_test_that_is_not_there_is_found() -> None:
    gone = ["`tests/test_promises.py::test_of_nobody`", "`tests/nowhere.py`"]
    assert missing(" ".join(("`test_nobody_wrote`", *gone))) == ["test_nobody_wrote", *gone]


def rows(page: str, section: str = "") -> list[list[str]]:
    """Return the rows of the first table of a section (before the first heading of all), without its head."""
    sections = {part.partition("\n")[0]: part for part in (ROOT / page).read_text().split("\n## ")}
    text = sections[section] if section else next(iter(sections.values()))
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_statement_about_security_names_a_test_or_a_check_of_the_makefile() -> None:
    checks = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    without = [
        row[0]
        for row in rows("docs/security.md")
        if not any(found["test"] for found in NAMED.finditer(row[-1])) and not checks & set(MAKE.findall(row[-1]))
    ]
    assert without == []
    assert len(rows("docs/security.md")) > 20


def paragraphs(page: str, section: str) -> list[str]:
    """Return the paragraphs, lists and tables of a section, each in one piece."""
    sections = {part.partition("\n")[0]: part.partition("\n")[2] for part in (ROOT / page).read_text().split("\n## ")}
    return [part for part in sections[section].split("\n\n") if part.strip()]


RUNBOOKS = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "runbooks").glob("*.md"))
OF_STORES = "An old or empty table also loses", "Two cases are not noticed"
"""What is lost, and what is not noticed, is no promise."""


@pytest.mark.parametrize(
    ("page", "section"), [*((page, "What it means") for page in RUNBOOKS), ("docs/faults.md", "Known limits")]
)
def test_every_paragraph_that_says_what_holds_names_its_test(page: str, section: str) -> None:
    found = paragraphs(page, section)
    without = [text for text in found if not ALONE.search(text) and not NAMED.search(text)]
    assert [text for text in without if not text.startswith(OF_STORES) and len(text) > SHORT] == []
    assert found


SHORT = 160
"""A sentence that leads to the next paragraph or table."""


@pytest.mark.parametrize(
    ("page", "section", "least"),
    [
        ("docs/faults.md", "How runs stay correct", 15),
        ("docs/runbooks/reconcile-failed.md", "What it means", 4),
        ("docs/runbooks/restored-state.md", "What it means", 5),
    ],
)
def test_every_row_about_what_is_done_names_its_test(page: str, section: str, least: int) -> None:
    found = rows(page, section)
    without = [row[0] for row in found if not ALONE.search(row[-1]) and not NAMED.search(row[-1])]
    assert without == []
    assert len(found) >= least
