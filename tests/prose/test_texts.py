"""No text has a sentence that the review of the texts asked to rewrite, and the linter finds what it is made for."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.prose.style import PHRASES, WORDS
from tests.prose.texts import files_of_people, of_python, prose_of, texts_of

READ = ("*.md", "*.py", "*.yaml", "*.yml", "*.j2", "*.html", "*.tf", "*.json", "Makefile")
HIDDEN = (Path(".ci/run"), *(path for path in Path(".github").rglob("*") if path.is_file()))
LEFT_OUT = ("tests/prose/", "tests/forms/")
"""This folder names the sentences itself; records of earlier releases keep theirs."""
WIDTH = 120
REWRITTEN = Path(__file__).with_name("rewritten.txt")


@cache
def of_the_checkout() -> tuple[Path, ...]:
    """Return the files of the checkout, without what is hidden or built: environments have ten times as many."""
    tops = [top for top in Path().iterdir() if not top.name.startswith((".", "build"))]
    return tuple(path for top in tops for path in (top, *top.rglob("*")))


def everything() -> dict[str, str]:
    """Return what each file of the checkout says, without line ends."""
    paths = [path for kind in READ for path in of_the_checkout() if path.match(kind)]
    kept = [name for name in map(str, [*paths, *HIDDEN]) if not name.startswith(LEFT_OUT)]
    return {name: " ".join(Path(name).read_text(errors="replace").split()) for name in kept}


def test_no_text_has_a_sentence_that_was_to_be_rewritten() -> None:
    sentences = REWRITTEN.read_text().splitlines()
    assert len(sentences) > 30
    found = {sentence: name for name, text in everything().items() for sentence in sentences if sentence in text}
    assert found == {}


@pytest.mark.parametrize("words", WORDS)
def test_each_rule_of_the_style_is_a_pattern(words: str) -> None:
    assert re.compile(words).search("plain words") is None


def test_no_text_has_a_word_that_the_style_replaces() -> None:
    """Pages, docstrings, comments, messages, templates: what `make lint` checks, without proselint."""
    avoided = re.compile("|".join((rf"\b(?:{'|'.join(WORDS)})\b", *PHRASES)), re.IGNORECASE)
    files = files_of_people()
    assert {file.suffix for file in files} == {".md", ".py", ".j2", ".yaml", ".yml", ""}
    found = [
        f"{file}:{begins + text.count(chr(10), 0, match.start())}: {match[0]!r}"
        for file in files
        for begins, text in texts_of(file)
        for match in avoided.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_avoided"),
    [
        ("a.yaml is no YAML", True),
        ("a second start is\n    no second run", True),
        ("types, of which there are many", True),
        ("There is no YAML", False),
        ("there\n    is no YAML", False),
        ("it is no longer there, and is no more than a note", False),
        ("a type of which there are no nodes", False),
    ],
)
def test_is_no_and_of_which_are_avoided(text: str, is_avoided: bool) -> None:
    assert any(re.search(phrase, text, re.IGNORECASE) for phrase in PHRASES) is is_avoided


def test_pages_say_guarantee_of_quotas_as_those_of_aws_do() -> None:
    """One word for one thing: quotas guarantee, and a task holds beyond quota what they do not guarantee."""
    pages = [file for file in files_of_people() if file.suffix == ".md" or file.name == "template.yaml"]
    found = [
        f"{file}: {match[0]!r}"
        for file in pages
        for _, text in texts_of(file)
        for match in re.finditer(r"(?i)\bpromis(?:es?|ed|ing)\b[^\n]{0,30}", text)
    ]
    assert found == []


SOURCE = '''"""What a module does."""

NAME = "taskgov/knows"
SAID = f"{NAME} tells nobody"  # a comment that hears


def done(text: str) -> str:
    """Return it.

    >>> tell("me")
    `tells` is code.
    """
    return "one_word" + "two words" + text
'''


def test_texts_of_python_are_docstrings_messages_and_comments_without_code() -> None:
    texts = {" ".join(text.split()): line for line, text in of_python(SOURCE)}
    assert texts == {
        "What a module does.": 1,
        "{} tells nobody": 4,
        "# a comment that hears": 4,
        "Return it. is code.": 8,
        "two words": 13,
    }


def test_texts_of_markdown_keep_their_lines_and_lose_code_addresses_and_comments() -> None:
    page = "# A page\n\n```console\n$ tell\n```\n\nSee `tell` and [it](tells.md).\n<!-- told -->\n"
    prose = prose_of(page)
    assert (len(prose), prose.count("\n")) == (len(page), page.count("\n"))
    assert prose.split() == ["#", "A", "page", "See", "and", "[it", "."]


@pytest.mark.parametrize(
    ("name", "source", "texts"),
    [
        ("a.yaml", "Key: 1 # why\nDescription: A text\nOther: no text\n", ["why", "A text"]),
        ("a.j2", "<p>Seen {{ tells }}</p>{# a note #}{% if told %}", ["Seen", "a", "note"]),
        ("Makefile", "all: one ## Make it\n\tcc one\n", ["Make it"]),
    ],
)
def test_texts_of_other_files(tmp_path: Path, name: str, source: str, texts: list[str]) -> None:
    file = tmp_path / name
    file.write_text(source)
    assert " ".join(" ".join(text.split()) for _, text in texts_of(file)) == " ".join(texts)


def test_markdown_wraps_at_120_characters() -> None:
    """Tables, code, generated parts and what cannot be broken (a long link) may be wider."""
    wide = []
    for page in sorted(path for path in of_the_checkout() if path.match("*.md")):
        text = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1 *$", "", page.read_text())
        wide += [
            f"{page}: {line[:80]}"
            for line in text.splitlines()
            if len(line) > WIDTH and not line.lstrip().startswith("|") and " " in line[WIDTH // 2 : WIDTH].strip()
        ]
    assert wide == []
