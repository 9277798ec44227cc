"""What the pages print to be typed on files only, typed: in this process, in a folder with the files that they name."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from taskgov_cli.main import app
from taskgov_embedded.server.account import WORKERS
from tests.advice.synthetic import recorded, two_teams
from tests.typed.pages import ROOT, Command, commands
from tests.typed.tables import ENDS, FILES, filled, is_on_files, why_not

if TYPE_CHECKING:
    from pathlib import Path


def typed_on_files() -> dict[str, list[Command]]:
    """Return by page what needs no account."""
    found: dict[str, list[Command]] = {}
    for command in commands():
        if is_on_files(command.text) and why_not(command.text) is None:
            found.setdefault(command.page, []).append(command)
    return found


@pytest.mark.parametrize("page", typed_on_files())
def test_what_a_page_types_on_files_ends_as_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("docs", "events", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name, source in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, tmp_path / name)
    (tmp_path / "work").mkdir()
    recorded(two_teams(), tmp_path / "work", WORKERS.instance_type)
    monkeypatch.chdir(tmp_path)
    failed = []
    for command in typed_on_files()[page]:
        words = shlex.split(filled(command.text), comments=True)
        result = CliRunner().invoke(app, words[1:])
        if result.exit_code != ENDS.get(command.text, (0, ""))[0]:
            failed.append(f"{command}\nended with {result.exit_code}: {result.output}")
    assert failed == []


def test_the_readme_asks_its_questions_of_the_examples() -> None:
    asked = [one.text for one in typed_on_files()["README.md"] if "-s " in one.text]
    assert len(asked) >= 7
    assert [text for text in asked if "-s examples/snapshot.json" not in text] == []
