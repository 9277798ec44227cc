"""A table at every width: no word of ordinary length and no short cell is cut in two."""

import io
import random

import pytest
from rich.console import Console
from rich.table import Table

from taskgov_cli.grid import Grid, table

JOBS = table(
    "",
    ("team", "task", "priority", "for", "instance type", "requests", "beyond quota", "waiting #"),
    [
        ("research", "evaluation", "training-priority (70)", "4 min 46 s", "ml.g5.8xlarge", "1 GPU", "1 GPU", "0"),
        ("speech", "voices", "training-priority (70)", "1 h 2 min", "", "2 GPUs, 96 cpu, 512Gi memory", "", "12"),
    ],
)
WHOLE = ("research", "evaluation", "training-priority", "4 min 46 s", "ml.g5.8xlarge", "1 GPU", "1 h 2 min", "96", "12")


def shown(width: int, *, terminal: bool, what: Grid = JOBS) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, no_color=True, highlight=False)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()


@pytest.mark.parametrize("terminal", [False, True], ids=["a pipe", "a terminal"])
def test_no_word_and_no_short_cell_is_cut(*, terminal: bool) -> None:
    for width in range(40, 160):
        lines = shown(width, terminal=terminal)
        assert max(map(len, lines)) <= width
        assert [word for word in WHOLE if not any(word in line for line in lines)] == [], (width, lines)


def test_the_columns_that_need_least_are_whole_first() -> None:
    heading, *rows = shown(110, terminal=True)
    assert "beyond quota" in heading
    assert "training-priority (70)" in rows[0]
    assert len(rows) > 2, "what is requested takes more lines"


def test_a_block_that_begins_with_a_number_says_of_what() -> None:
    changes = table("", ("change #", "team", "operation"), [("2", "shared-pool", "update-quota")])
    assert shown(24, terminal=False, what=changes)[0].rstrip() == " change 2"


WORDS = ("a", "team-12", "ml.p5.48xlarge", "evaluation", "日本語", "x" * 40, "e\u0301", "two  spaces", " ", "1,234")


@pytest.mark.parametrize("seed", range(30))
def test_a_pipe_gets_the_lines_that_rich_makes_of_the_table(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret

    def cell() -> str:
        return " ".join(chance.choices(WORDS, k=chance.choice((0, 1, 5, 30))))

    columns = ("team", "because", "waiting #")
    some = table("Title", columns, [tuple(cell() for _ in columns) for _ in range(4)])
    for width in (60, 90, 140):
        assert shown(width, terminal=False, what=some) == shown(width, terminal=True, what=some)


def test_a_pipe_gets_long_cells_without_a_table_of_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[str] = []
    monkeypatch.setattr(Table, "add_row", lambda _, *row: rows.extend(row))
    long = table("", ("team", "because"), [("research", "guaranteed 1 " * 20)])
    assert len(shown(80, terminal=False, what=long)) > 3
    assert rows == []
