"""A mutant keeps its name when other lines move; a sample is seeded and spread; the list of survivors is about code."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.copies import DIVISION, PACKAGE, ROOT, mutated_files, place_of
from tests.mutants.listed import END, START, listed_survivors
from tests.mutants.mutation import Mutation
from tests.mutants.sample import Spot, drawn
from tests.mutants.source import MODULE, Source, instrumented

TEXT = """LIMIT = 3

class Team:
    size: int | None = None

    @property
    def free(self) -> int:
        left = LIMIT - 1
        return left

def total(teams):
    count = 0
    for team in teams:
        count = count + 1
    else:
        count = count + 1
    return count
"""


def renamed(text: str, old: str, new: str, last: bool = False) -> Mutation:
    """Return the name of the mutation that replaces the first or last `old`."""
    place = text.rindex(old) if last else text.index(old)
    return Source(text).mutation("team.py", text[:place] + new + text[place + len(old) :])


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ("LIMIT = 3", "LIMIT = 4", Mutation("team.py", MODULE, "LIMIT = 3", "LIMIT = 4")),
        ("int | None = None", "int = 1", Mutation("team.py", "Team", "size: int | None = None", "size: int = 1")),
        ("LIMIT - 1", "LIMIT + 1", Mutation("team.py", "Team.free", "left = LIMIT - 1", "left = LIMIT + 1")),
        ("\n    @property", "", Mutation("team.py", "Team.free", "@property", "(removed)")),
    ],
)
def test_a_mutation_is_named_by_its_function_and_its_text(old: str, new: str, want: Mutation) -> None:
    assert renamed(TEXT, old, new) == want
    assert renamed(f'"""More."""\n\n\ndef other():\n    pass\n\n\n{TEXT}', old, new) == want


def test_the_same_line_twice_in_a_function_is_distinguished() -> None:
    first = renamed(TEXT, "count + 1", "count - 1")
    second = renamed(TEXT, "count + 1", "count - 1", last=True)
    assert (first.nth, second.nth) == (1, 2)
    assert replace(second, nth=1) == first


def test_annotations_are_not_mutated() -> None:
    source = Source(
        "if TYPE_CHECKING:\n    import x\ndef f(a: int | None = 1 | 2) -> int | str: ...\ny: int | None = 3\n"
    )
    places = [(1, 3), (3, 13), (3, 32), (4, 7)]
    assert all(source.is_only_for_types(*place) for place in places)
    assert not source.is_only_for_types(3, 24)
    assert not source.is_only_for_types(4, 16)


def test_what_is_called_is_noted_and_works_as_before() -> None:
    touched: set[str] = set()
    space = {"__touched__": touched}
    exec(instrumented(TEXT, "team.py"), space)  # noqa: S102
    assert touched == set()
    assert eval("total([1, 2]), Team().free", space) == (3, 2)  # noqa: S307
    assert touched == {"team.py::total", "team.py::Team.free"}


def spots(function: str, places: int, file: str = "a.py", changes: int = 3) -> list[Spot]:
    return [
        Spot(file, function, place, f"swap:{change}", place * changes + change, place)
        for place in range(places)
        for change in range(changes)
    ]


def test_a_sample_takes_each_function_once_before_any_twice() -> None:
    every = [spot for number in range(10) for spot in spots(f"f{number}", 1 + number)]
    order = list(drawn(every, seed=1))
    assert sorted(order, key=str) == sorted(every, key=str)
    assert len({spot.function for spot in order[:10]}) == 10
    of_the_last = [spot.place for spot in order if spot.function == "f9"]
    assert len(set(of_the_last[:10])) == 10


def test_a_sample_depends_on_the_seed_alone() -> None:
    every = [spot for number in range(10) for spot in spots(f"f{number}", 4)]
    assert list(drawn(every, seed=1)) == list(drawn(reversed(every), seed=1))
    assert list(drawn(every, seed=1)) != list(drawn(every, seed=2))


def test_another_function_does_not_change_what_is_drawn_from_the_rest() -> None:
    some = [spot for number in range(10) for spot in spots(f"f{number}", 4)]
    with_more = [*spots("new", 5), *some]
    assert [spot for spot in drawn(with_more, seed=1) if spot.function != "new"] == list(drawn(some, seed=1))


def test_the_list_is_read(tmp_path: Path) -> None:
    page = tmp_path / "testing.md"
    page.write_text(
        f"# Tests\n{START}\n\n#### `a.py`: `f`\n\n* `x = 1` → `x = 2`: why.\n"
        f"* `y = 1` (2) → `(removed)`: why not.\n{END}\n* no\n"
    )
    assert listed_survivors(page) == {
        Mutation("a.py", "f", "x = 1", "x = 2"): "why.",
        Mutation("a.py", "f", "y = 1", "(removed)", nth=2): "why not.",
    }


@pytest.mark.parametrize(
    "lines",
    [
        "* `x = 1` → `x = 2`: no heading.",
        "#### `a.py`: `f`\n* `x = 1` → `x = 2`",
        "#### `a.py`: `f`\n* `x = 1` → `x = 2`: why.\n* `x = 1` → `x = 2`: twice.",
    ],
)
def test_an_entry_without_function_or_reason_is_refused(tmp_path: Path, lines: str) -> None:
    page = tmp_path / "testing.md"
    page.write_text(f"{START}\n{lines}\n{END}\n")
    with pytest.raises(ValueError, match=r"testing\.md"):
        listed_survivors(page)


def test_the_allocation_and_the_division_are_mutated() -> None:
    files = mutated_files()
    assert {DIVISION, PACKAGE / "grants.py", PACKAGE / "planner.py"} <= set(files)
    assert [place_of(path.name) for path in files] == files


def test_every_listed_survivor_is_about_code_that_exists() -> None:
    gone = []
    for mutation in listed_survivors():
        path = ROOT / place_of(mutation.file)
        source = Source(path.read_text(encoding="utf-8") if path.exists() else "")
        spans = [span for span in source.spans if span.name == mutation.function]
        if mutation.function == MODULE:
            spans = [source.holder(0)]
        text = "\n".join(line for span in spans for line in source.lines[span.first - 1 : span.last])
        if " ".join(text.split()).count(mutation.before) < mutation.nth:
            gone.append(str(mutation))
    assert gone == []
