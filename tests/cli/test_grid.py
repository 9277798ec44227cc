"""A table at every width: no word of ordinary length and no short cell is cut in two."""

import io

import pytest
from rich.console import Console

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
