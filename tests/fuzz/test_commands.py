"""Every command, with bad files, options, environments and answers: a documented exit code and a sentence."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.commands import Maker, commands, play

SEED = 20261123
SAMPLE, ALL = 120, 6_000


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    files = tmp_path / "files"
    files.mkdir()
    return Maker(files)


def played(maker: Maker, numbers: range) -> Counter[str]:
    cases = (play(maker, Random(SEED + number), number) for number in numbers)  # noqa: S311 - to be played again
    return Counter(case.words[0] for case in cases if case.words)


def test_a_sample_of_odd_command_lines_ends_with_a_sentence(maker: Maker) -> None:
    assert sum(played(maker, range(SAMPLE)).values()) == SAMPLE


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(0, ALL, 300))
def test_odd_command_lines_end_with_a_sentence(maker: Maker, start: int) -> None:
    seen = played(maker, range(start, start + 300))
    assert {words[0] for words in commands()} - seen.keys() == set()
