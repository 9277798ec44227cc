"""Pages are read as they are meant, each of their commands is typed or has its reason, and each reason is needed."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.typed.pages import ROOT, commands, commands_of, pages
from tests.typed.tables import ACCOUNTS, ENDS, FILES, NOT_RUN, NOT_TYPED, WORDS, filled, why_not

if TYPE_CHECKING:
    from pathlib import Path

TEXTS: Final = [one.text for one in commands()]
MADE: Final = sorted({text for text in TEXTS if text.startswith("make ")})
TYPED: Final = [text for text in TEXTS if text not in MADE and why_not(text) is None]
RUN: Final = (ROOT / ".ci" / "run").read_text()

PAGE: Final = """# A page

Type `taskgov status -s a.json`, `make test`, or `taskgov plan`; `taskgov snapshot --stack` takes a name. `sam deploy`
and `taskgov preflight -p Name=...` are names.

```bash
STACK=taskgov

out() { one; }      # a function
for each in 1 2; do
  out $each
done
aws s3 ls \\
  --recursive
```

1. In a list:

   ```console
   $ taskgov history ml-cluster
   Runs of ml-cluster
   $ taskgov stop
   ```

```console
$ taskgov plan [OPTIONS]
```

Example: taskgov demo 08-lend

```text
Next:
  taskgov validate a.yaml
taskgov is not typed here
```
"""


def test_what_is_typed_is_read_from_blocks_and_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr("tests.typed.pages.ROOT", tmp_path)
    assert [(one.line, one.text, one.printed) for one in commands_of(tmp_path / "page.md")] == [
        (3, "taskgov status -s a.json", None),
        (3, "make test", None),
        (7, "STACK=taskgov", None),
        (9, "out() { one; }      # a function", None),
        (10, "for each in 1 2; do\n  out $each\ndone", None),
        (13, "aws s3 ls \\\n  --recursive", None),
        (20, "taskgov history ml-cluster", "Runs of ml-cluster"),
        (22, "taskgov stop", None),
        (29, "taskgov demo 08-lend", None),
        (33, "taskgov validate a.yaml", None),
    ]


def test_there_are_commands_on_most_pages() -> None:
    assert len(TEXTS) > 300
    assert len({one.page for one in commands()}) > 40


def test_a_block_with_commands_says_so() -> None:
    """What is in a block without a language, or of another one, is not typed: it may hold no command."""
    others = [
        (page.name, line)
        for page in pages()
        for language, text in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL)
        if language not in {"bash", "console"}
        for line in text.splitlines()
        if re.match(r"\$ |(taskgov|make|aws|kubectl|sam) [a-z-]+", line)
    ]
    assert others == []


def test_words_in_capitals_are_filled_in() -> None:
    assert filled("taskgov explain TEAM/TASK --cluster CLUSTER") == (
        "taskgov explain team-a/training --cluster ml-cluster"
    )
    assert filled('aws s3 cp a "s3://$(out BucketName)/b" --query STACK_NAME') == (
        'aws s3 cp a "s3://$(out BucketName)/b" --query STACK_NAME'
    )
    assert filled("STACK=taskgov; echo $STACK") == "STACK=taskgov; echo $STACK"


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_is_filled_in_is_on_a_page(word: str) -> None:
    assert any(filled(text) != text and re.search(rf"\b{word}\b", text) for text in TYPED)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_put_there_is_named_on_a_page(name: str) -> None:
    assert any(name in filled(text) for text in TYPED)


@pytest.mark.parametrize("pattern", ACCOUNTS)
def test_a_command_that_needs_another_account_is_on_a_page(pattern: str) -> None:
    assert any(re.match(pattern, text) for text in TYPED)


@pytest.mark.parametrize("text", ENDS)
def test_a_command_that_ends_with_something_else_is_on_a_page(text: str) -> None:
    assert text in TYPED


@pytest.mark.parametrize("beginning", NOT_TYPED)
def test_what_is_not_typed_is_on_a_page(beginning: str) -> None:
    assert any(f"{text} ".startswith(f"{beginning} ") for text in TEXTS)


@pytest.mark.parametrize("command", MADE)
def test_make_has_every_target_that_a_page_names(command: str) -> None:
    asked = ["/bin/bash", "-c", f"make --dry-run {command.removeprefix('make ')}"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own pages
    assert done.returncode == 0, done.stderr


def test_what_a_page_says_to_make_is_run_before_work_lands_or_has_its_reason() -> None:
    named = {re.sub(r"[A-Z]+=\S+ ", "", text[5:]).split()[0] for text in MADE}
    assert named - set(re.findall(r"make ([a-z-]+)", RUN)) == set(NOT_RUN)
