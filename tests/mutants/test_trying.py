"""Mutants are tried in a copy: they survive, are killed, or run out of time, and the copy is whole again afterwards."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import main
from tests.mutants.copies import PACKAGE, BrokenRunError, Copy, Outcome, this_python
from tests.mutants.mutation import Mutant, Mutation

pytestmark = pytest.mark.long

SOURCE = '''"""A toy."""

from functools import cache

START = 1


@cache
def size(count):
    """Return one more.

    >>> size(1)
    2
    """
    while count < 0:
        count += 1
    return count + START


def unused():
    return 1 - 1
'''
TESTS = """from hypothesis import given, strategies as st
from taskgov.allocation.toy import size

def test_one(): assert size(1) == 2

@given(st.integers(0, 3))
def test_many(count): assert size(count) > count

def test_nothing(): pass
"""
ONE, MANY, NOTHING = (f"tests/allocation/test_toy.py::test_{name}" for name in ("one", "many", "nothing"))
EXAMPLE = f"{PACKAGE}/toy.py::taskgov.allocation.toy.size"
NAME = Mutation("toy.py", "size", "", "")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    root = tmp_path_factory.mktemp("root")
    (root / PACKAGE).mkdir(parents=True)
    (root / "tests" / "allocation").mkdir(parents=True)
    for name in ("workstation", "benchmarks"):
        (root / name).mkdir()
    (root / PACKAGE / "toy.py").write_text(SOURCE)
    (root / PACKAGE / "__init__.py").touch()
    (root / PACKAGE.parent / "__init__.py").touch()
    (root / "tests" / "allocation" / "test_toy.py").write_text(TESTS)
    checkout = Path(__file__).parents[2]
    shutil.copytree(checkout / "tests" / "mutants", root / "tests" / "mutants")
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(checkout / name, root / name)
    return Copy(tmp_path_factory.mktemp("copy"), this_python(), root)


def changed(old: str, new: str, name: Mutation = NAME) -> Mutant:
    assert SOURCE.count(old) == 1
    return Mutant(name, SOURCE.replace(old, new))


def test_the_tests_of_a_mutant_are_those_that_touch_its_function(copy: Copy) -> None:
    reach = copy.measure(0, 1)
    assert set(reach.seconds) == {ONE, MANY, NOTHING, EXAMPLE}
    mutant = changed("count + START", "count")
    assert set(reach.tests_of(mutant)) == {ONE, MANY, EXAMPLE}
    assert set(reach.tests_of(Mutant(mutant.mutation, mutant.source, is_imported=True))) == set(reach.seconds)
    assert len(reach.tests_of(Mutant(Mutation("toy.py", "unused", "", ""), ""))) == 1


def test_a_mutant_is_killed_by_a_test_or_an_example_that_fails(copy: Copy) -> None:
    mutant = changed("count + START", "count - START")
    assert copy.try_mutant(mutant, {ONE: 1}, timeout=60) is Outcome.KILLED
    assert copy.try_mutant(mutant, {MANY: 1}, timeout=60) is Outcome.KILLED
    assert copy.try_mutant(mutant, {EXAMPLE: 1}, timeout=60) is Outcome.KILLED
    assert copy.try_mutant(changed("START = 1", "START = 1 / 0"), {ONE: 1}, timeout=60) is Outcome.KILLED


def test_a_mutant_survives_what_passes_and_the_copy_is_whole_again(copy: Copy) -> None:
    mutant = changed("count + START", "count - START")
    assert copy.try_mutant(mutant, {NOTHING: 1}, timeout=60) is Outcome.SURVIVED
    assert copy.try_mutant(Mutant(NAME, SOURCE), {ONE: 1, MANY: 1, EXAMPLE: 1}, timeout=60) is Outcome.SURVIVED


def test_an_endless_loop_ends(copy: Copy) -> None:
    endless = changed("while count < 0", "while count < 9**19")
    assert copy.try_mutant(endless, {ONE: -0.9}, timeout=60) is Outcome.TIMED_OUT  # after a second
    assert copy.try_mutant(endless, {ONE: 100}, timeout=2) is Outcome.TIMED_OUT
    assert copy.try_mutant(Mutant(NAME, SOURCE), {ONE: 1}, timeout=60) is Outcome.SURVIVED


def test_a_run_without_tests_says_nothing_about_a_mutant(copy: Copy) -> None:
    with pytest.raises(BrokenRunError):
        copy.try_mutant(Mutant(NAME, SOURCE), {"tests/allocation/test_toy.py::test_gone": 1}, timeout=60)


@pytest.mark.parametrize(
    ("survivors", "listed", "code", "last"),
    [
        (0, 0, 0, "mutants: 100 sampled, 100 killed, 0 survived (listed: 0, not listed: 0)"),
        (15, 15, 0, "mutants: 100 sampled, 85 killed, 15 survived (listed: 15, not listed: 0)"),
        (15, 14, 1, "mutants: 100 sampled, 85 killed, 15 survived (listed: 14, not listed: 1)"),
        (16, 16, 1, "more than 15% survived"),
    ],
)
def test_what_survives_has_to_be_listed_and_few(
    survivors: int,
    listed: int,
    code: int,
    last: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mutants = [Mutant(Mutation("toy.py", f"f{number}", "old", "new"), "") for number in range(100)]
    outcomes = [(mutant, Outcome.SURVIVED if at < survivors else Outcome.KILLED) for at, mutant in enumerate(mutants)]
    known = {mutant.mutation: "harmless" for mutant in mutants[:listed]}
    monkeypatch.setattr("tests.mutants.__main__.make_mutants", lambda *_: mutants)
    monkeypatch.setattr("tests.mutants.__main__._outcomes", lambda *_: iter(outcomes))
    monkeypatch.setattr("tests.mutants.__main__.listed_survivors", lambda: known)
    assert main(["--tool", sys.executable]) == code
    assert capsys.readouterr().out.splitlines()[-1] == last
