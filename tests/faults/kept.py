"""Keep what came of each case in a file: thousands of pairs are played in parts, and after an interruption go on.

A line of the file is one case, with the commit at which it was played. Files are in build/faults.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.faults import fault_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.faults.fault_cases import Case, Outcome

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "faults"


@dataclass(frozen=True, slots=True)
class Kept:
    """What came of one case."""

    case: str
    """The cells as they are printed."""
    mark: str
    """What the table shows of it."""
    problems: tuple[str, ...]
    commit: str

    @classmethod
    def of(cls, outcome: Outcome, commit: str) -> Kept:
        """Keep this of an outcome; a case whose fault never struck has failed for that."""
        problems = outcome.problems or (("no fault ever struck",) if outcome.mark == "FAIL" else ())
        return cls(str(outcome), outcome.mark, problems, commit)


def commit_of(folder: Path = ROOT) -> str:
    """Return the commit of a checkout, with `-dirty` where files differ from it; `unknown` without Git."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    return answer.stdout.strip() or "unknown"


def part(cases: Sequence[Case], which: str) -> list[Case]:
    """Return a part of the cases: `2/5` is the second of five. Raises ValueError for what is no part.

    >>> part(["a", "b", "c"], "1/2"), part(["a", "b", "c"], "2/2")
    (['a', 'c'], ['b'])
    """
    number, _, parts = which.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise ValueError(f'TASKGOV_FAULTS_PART is "{which}"; it is to be like "2/5", the second of five parts')
    return list(cases[int(number) - 1 :: int(parts)])


def read(file: Path) -> dict[str, Kept]:
    """Return what is kept, by the name of the case: the last line of each. A line cut off by the end is left out."""
    if not file.exists():
        return {}
    lines = file.read_text().splitlines(keepends=True)
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    return {line["case"]: Kept(line["case"], line["mark"], tuple(line["problems"]), line["commit"]) for line in whole}


def go_on(
    file: Path,
    cases: Iterable[Case],
    play: Callable[[Iterable[Case]], Iterable[Outcome]],
    commit: str,
    commits: Callable[[str], bool] | None = None,
) -> Iterator[Kept]:
    """Play the cases that have not come out right yet, keep each, and give what came of all.

    Counted as played is what was played at this commit, or at one of `commits`. What failed is played again.
    """
    counts = commits or (lambda played_at: played_at == commit)
    earlier = read(file)
    done, left = [], []
    for case in cases:
        kept = earlier.get(fault_cases.name_of(case))
        if kept is not None and kept.mark != "FAIL" and counts(kept.commit):
            done.append(kept)
        else:
            left.append(case)
    yield from done
    file.parent.mkdir(parents=True, exist_ok=True)
    _end_line(file)
    for outcome in play(left):
        kept = Kept.of(outcome, commit)
        with file.open("a") as lines:
            lines.write(json.dumps(asdict(kept)) + "\n")
        yield kept


def _end_line(file: Path) -> None:
    """Cut off a line that an interruption left without an end."""
    if not file.exists():
        return
    text = file.read_text()
    if text and not text.endswith("\n"):
        file.write_text(text[: text.rfind("\n") + 1])


def report(kept: Sequence[Kept], name: str, cases: str) -> Iterator[str]:
    """Return what failed with its problems, the count, and at which commits it was played."""
    failed = [case for case in kept if case.mark == "FAIL"]
    for case in failed:
        yield f"FAIL {case.case}"
        yield from (f"     {problem}" for problem in case.problems)
    marks = Counter(case.mark for case in kept)
    yield ", ".join(f"{mark} {number}" for mark, number in marks.most_common())
    yield from (f"{number} at {commit}" for commit, number in Counter(case.commit for case in kept).items())
    yield f"{name}: {len(kept)} {cases}, {len(failed)} failed"
