"""`make lines`: what counts as code, and which lines moved."""

from collections import Counter

import pytest

from benchmarks import code_lines
from benchmarks.code_lines import Room, code_of, compare, main, table

SOURCE = '''"""What it is."""

LIMIT = 3  # of them
"""Why."""


def limited(text: str) -> str:
    """Return it."""
    # a comment
    return f"""
      {text}

    """[:LIMIT]
'''
LAYER = "layers/taskgov/python/taskgov"


def test_blanks_comments_and_documenting_strings_are_no_code() -> None:
    assert code_of("a.py", SOURCE) == Counter(
        ["LIMIT = 3  # of them", "def limited(text: str) -> str:", 'return f"""', "{text}", '"""[:LIMIT]']
    )


def test_a_state_machine_has_lines_without_comments() -> None:
    assert code_of("a.asl.yaml", "# why\nStates:\n\n  First: {}\n").total() == 2


def test_a_line_that_is_in_another_file_now_moved_and_is_not_gone() -> None:
    then = {f"{LAYER}/usage/a.py": Counter(["x = 1", "y = 2", "z = 3"])}
    now = {
        f"{LAYER}/usage/b.py": Counter(["x = 1"]),
        "workstation/taskgov_cli/c.py": Counter(["y = 2", "new = 4"]),
    }
    assert compare(then, now) == {
        "taskgov.usage": Room(then=3, now=1, gone=1, new=0, moved_away=2, moved_in=1),
        "taskgov_cli": Room(then=0, now=2, gone=0, new=1, moved_away=0, moved_in=1),
    }


def test_a_line_that_stood_twice_and_stands_once_is_gone_once() -> None:
    then = {"functions/a/app.py": Counter(["x = 1"]), "functions/b/app.py": Counter(["x = 1"])}
    now = {"functions/a/app.py": Counter(["x = 1"])}
    assert compare(then, now) == {"functions": Room(then=2, now=1, gone=1)}


def test_the_sum_leaves_out_what_is_beside_the_product() -> None:
    rooms = {"taskgov": Room(then=200, now=150, gone=60, new=10), "tests": Room(then=5, now=9, new=4)}
    shown = [line.split() for line in table(rooms, since="abc")]
    assert ["sum", "200", "60", "10", "0", "0", "150"] in shown
    assert shown[-1] == ["-25.0", "%", "since", "abc"]


def test_this_repository_is_counted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_lines, "PRODUCT", ("functions", "statemachines"))  # all of it takes seven seconds
    monkeypatch.setattr(code_lines, "BESIDE", ())
    assert main(["--since", "HEAD"]) == 0
    shown = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert {"functions", "statemachines", "sum"} < shown.keys()
    then, *_, now = (int(number.replace(",", "")) for number in shown["sum"])
    assert min(then, now) > 100


def test_an_unknown_commit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--since", "no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err
