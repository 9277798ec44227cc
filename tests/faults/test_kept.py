"""What came of thousands of cases is kept, so that they may be played in parts and go on after an interruption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults import kept
from tests.faults.fault_cases import Case, Outcome, name_of
from tests.faults.sites import Call, Cell, Kind, Site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CALL = Call("ApplyChangeRole", "dynamodb", "PutItem")
CASES: list[Case] = [(Cell(Site(CALL, number), Kind.LATE),) for number in range(1, 5)]


class Table:
    """A player of cases: those of `wrong` fail; `played` has what it was asked to play."""

    def __init__(self, wrong: Iterable[Case] = (), most: int = 100) -> None:
        self.wrong, self.most = list(wrong), most
        self.played: list[Case] = []

    def play(self, cases: Iterable[Case]) -> Iterator[Outcome]:
        for case in cases:
            if len(self.played) == self.most:
                raise KeyboardInterrupt
            self.played.append(case)
            yield Outcome(case, 1, 0, ("a quota is wrong",) if case in self.wrong else ())


def test_an_interrupted_run_continues_where_it_stopped(tmp_path: Path) -> None:
    file, first, second = tmp_path / "faults" / "pairs.jsonl", Table(most=2), Table()
    with pytest.raises(KeyboardInterrupt):
        list(kept.go_on(file, CASES, first.play, "a1"))
    with file.open("a") as lines:
        lines.write('{"case": "cut o')
    found = list(kept.go_on(file, CASES, second.play, "a1"))
    assert (first.played, second.played) == (CASES[:2], CASES[2:])
    assert sorted(case.case for case in found) == sorted(map(name_of, CASES))
    assert len(kept.read(file)) == len(CASES)


def test_what_failed_is_played_again(tmp_path: Path) -> None:
    file, again = tmp_path / "pairs.jsonl", Table()
    failed = list(kept.go_on(file, CASES, Table(wrong=CASES[1:2]).play, "a1"))
    assert [case.case for case in failed if case.mark == "FAIL"] == [name_of(CASES[1])]
    found = list(kept.go_on(file, CASES, again.play, "a1"))
    assert (again.played, {case.mark for case in found}) == (CASES[1:2], {"ok"})


def test_what_another_commit_came_to_counts_only_when_that_is_asked_for(tmp_path: Path) -> None:
    file, other, anyone = tmp_path / "pairs.jsonl", Table(), Table()
    list(kept.go_on(file, CASES[:3], Table().play, "a1"))
    found = list(kept.go_on(file, CASES, anyone.play, "b2", lambda _commit: True))
    assert (anyone.played, [case.commit for case in found]) == (CASES[3:], ["a1", "a1", "a1", "b2"])
    list(kept.go_on(file, CASES, other.play, "b2"))
    assert other.played == CASES[:3]


def test_parts_make_up_the_whole() -> None:
    parts = [case for number in (1, 2, 3) for case in kept.part(CASES, f"{number}/3")]
    assert sorted(map(name_of, parts)) == sorted(map(name_of, CASES))


@pytest.mark.parametrize("which", ["0/3", "4/3", "2", "a/b", "1/0", ""])
def test_what_is_no_part_is_refused_with_an_example(which: str) -> None:
    with pytest.raises(ValueError, match='like "2/5"'):
        kept.part(CASES, which)


def test_the_report_has_problems_marks_and_commits(tmp_path: Path) -> None:
    found = list(kept.go_on(tmp_path / "pairs.jsonl", CASES, Table(wrong=CASES[:1]).play, "a1"))
    lines = list(kept.report(found, "pairs", "of cells"))
    assert lines == [
        f"FAIL {name_of(CASES[0])}",
        "     a quota is wrong",
        "ok 3, FAIL 1",
        "4 at a1",
        "pairs: 4 of cells, 1 failed",
    ]
