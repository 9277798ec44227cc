"""Does the engine decide as Kueue decided? Runs recorded decision tables: `taskgov conformance DIR`.

Prints the failing cases with their first difference, a table by kind, and last `N passed, M failed`. What an
expectation does not give is not compared.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from taskgov_cli.conformance_compare import first_difference
from taskgov_cli.conformance_kinds import KINDS
from taskgov_cli.conformance_kinds import answer as answer_of
from taskgov_cli.conformance_recorded import as_cycles, is_recorded
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, unfolded
from taskgov_cli.grid import table
from taskgov_cli.output import NO, NOT_UNDERSTOOD, OK, AsJson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType


UNKNOWN: Final = "unknown form"
"""What the table calls the kind of a file or case that cannot be read."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How the engine differs from the record; `expected` and `found` are empty where there was no answer."""

    sentence: str
    expected: Any = None
    found: Any = None

    def lines(self) -> list[str]:
        """Return the difference as a unified diff."""
        before, after = (json.dumps(side, indent=1, sort_keys=True) for side in (self.expected, self.found))
        return list(unified_diff(before.splitlines(), after.splitlines(), "Kueue", "taskgov", lineterm=""))


@dataclass(frozen=True, slots=True)
class Played:
    """One case, or one file that cannot be read, and its result: `difference` is `None` when it passed."""

    file: str
    case: str
    kind: str
    difference: Difference | None


def play(directory: Path) -> Iterator[Played]:
    """Play every case of every `*.json` and `*.json.gz` of a directory; what cannot be read is one failure."""
    for path in sorted([*directory.glob("*.json"), *directory.glob("*.json.gz")]):
        try:
            cases = _cases(path)
        except (OSError, EOFError, zlib.error, ValueError) as error:
            yield Played(path.name, path.name, UNKNOWN, Difference(f"{UNKNOWN}: {error}"))
            continue
        for place, case in enumerate(cases, 1):
            yield _played(path.name, place, case)


def check(case: Mapping[str, Any]) -> Difference | None:
    """Return how the engine differs from a record of a known kind, `None` when it does not."""
    try:
        found = answer_of(case)
        sentence = first_difference(case["kind"], case["expected"], found)
    except Exception as error:  # noqa: BLE001 -- one broken case must not hide the others, and counts as failed
        return Difference(f"{type(error).__name__}: {error}")
    if sentence is None:
        return None
    return Difference(sentence, case["expected"], {name: found.get(name) for name in case["expected"]})


def conformance(
    cases: Annotated[
        Path,
        typer.Argument(file_okay=False, exists=True, metavar="CASES", help="A folder of recorded Kueue decisions."),
    ],
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show each difference as a diff.")] = False,
) -> None:
    """Compare the scheduling model with recorded decisions of Kueue, and show every difference.

    Example: taskgov conformance kueue-cases
    """
    raise typer.Exit(run(cases, form, as_json=as_json, verbose=verbose))


def run(directory: Path, form: Form = Form.TABLE, *, as_json: bool = False, verbose: bool = False) -> int:
    """Run all cases of a directory and show the result.

    Returns the exit code: 0 when all pass, 1 when some fail, 2 when there are none.
    """
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    failures = []
    for played in play(directory):
        (passed if played.difference is None else failed)[played.kind] += 1
        if played.difference is not None:
            failures.append((played, played.difference))
    differences = [{"file": p.file, "case": p.case, "difference": d.sentence} for p, d in failures]
    data = {"passed": passed.total(), "failed": failed.total(), "differences": differences}
    answer(lambda: data, _shown(failures, passed, failed, verbose=verbose), form, as_json=as_json)
    if not passed.total() + failed.total():
        return NOT_UNDERSTOOD
    return NO if failed.total() else OK


def _cases(path: Path) -> Sequence[Any]:
    """Return the cases of a file. Raises `ValueError` for a file of another form."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply to be read") from None
    cases = content.get("cases") if isinstance(content, dict) else content
    if not isinstance(cases, list):
        raise ValueError('a file of cases is a list, or an object with a list "cases"')  # noqa: TRY004 - reported with others
    return cases


def _played(file: str, place: int, case: Any) -> Played:
    name = f"case {place}"
    if not isinstance(case, dict):
        return Played(file, name, UNKNOWN, Difference(f"{UNKNOWN}: a case is an object, not {json.dumps(case)[:60]}"))
    name = str(case.get("name") or name)
    try:
        known = as_cycles(case) if is_recorded(case) else case
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Played(file, name, UNKNOWN, Difference(f"{UNKNOWN}: {type(error).__name__}: {error}"))
    kind = known.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        told = f"the kind {json.dumps(kind)} is not one of {', '.join(sorted(KINDS))}"
        return Played(file, name, UNKNOWN, Difference(f"{UNKNOWN}: {told}"))
    if not isinstance(known.get("expected"), dict) or not known["expected"]:
        return Played(file, name, UNKNOWN, Difference(f'{UNKNOWN}: it has no "expected"'))
    return Played(file, name, kind, check(known))


def _shown(
    failures: list[tuple[Played, Difference]], passed: Counter[str], failed: Counter[str], *, verbose: bool
) -> Iterator[RenderableType]:
    for played, difference in failures:
        yield unfolded(f"FAIL {played.file}: {played.case}")
        yield unfolded(f"     {difference.sentence}")
        for line in difference.lines() if verbose else ():
            yield unfolded(f"     {line}")
    rows = [(kind, passed[kind], failed[kind]) for kind in sorted({*passed, *failed})]
    yield table("Cases", ("kind", "passed #", "failed #"), rows, main=True)
    yield Text(f"{passed.total()} passed, {failed.total()} failed")
