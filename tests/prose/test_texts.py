"""No text has a sentence that the review of the texts asked to rewrite, and the linter finds what it is made for."""

import re
from pathlib import Path

import pytest

from tests.prose.style import WORDS

READ = ("*.md", "*.py", "*.yaml", "*.j2", "*.html")
WIDTH = 120
REWRITTEN = Path(__file__).with_name("rewritten.txt")


def everything() -> dict[str, str]:
    """Return what each file of the checkout says, without line ends; this folder names the sentences itself."""
    names = [str(path) for kind in READ for path in Path().rglob(kind) if not path.parts[0].startswith((".", "build"))]
    kept = [name for name in names if not name.startswith("tests/prose/") and name != "CHANGELOG.md"]
    return {name: " ".join(Path(name).read_text(errors="replace").split()) for name in kept}


def test_no_text_has_a_sentence_that_was_to_be_rewritten() -> None:
    sentences = REWRITTEN.read_text().splitlines()
    assert len(sentences) > 30
    found = {sentence: name for name, text in everything().items() for sentence in sentences if sentence in text}
    assert found == {}


@pytest.mark.parametrize("words", WORDS)
def test_each_rule_of_the_style_is_a_pattern(words: str) -> None:
    assert re.compile(words).search("plain words") is None


def test_markdown_wraps_at_120_characters() -> None:
    """Tables, code, generated parts and what cannot be broken (a long link) may be wider."""
    wide = []
    for page in sorted(path for path in Path().rglob("*.md") if not path.parts[0].startswith((".", "build"))):
        text = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1 *$", "", page.read_text())
        wide += [
            f"{page}: {line[:80]}"
            for line in text.splitlines()
            if len(line) > WIDTH and not line.lstrip().startswith("|") and " " in line[WIDTH // 2 : WIDTH].strip()
        ]
    assert wide == []
