"""Copies of the tree in which mutants are tried. The checkout itself is only read."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutants.child import TIMED_OUT, WRONG_TREE
from tests.mutants.mutation import Mutant
from tests.mutants.source import instrumented

ROOT = Path(__file__).parents[2]
PRODUCT = Path("layers/taskgov/python/taskgov")
PACKAGE = PRODUCT / "allocation"
DIVISION = PRODUCT / "division.py"
"""The rule by which the allocation divides; it is beside the package because others use it, too."""
TESTS = ("tests/allocation", "tests/test_division.py", str(PACKAGE), str(DIVISION))
"""The tests of the allocation and of the division, and the examples in their docstrings."""
COPIED = ("pyproject.toml", "layers/taskgov/python", "tests", "workstation", "benchmarks")
LOG = "mutants.log"


class Outcome(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


class BrokenRunError(Exception):
    """The tests did not run, so that nothing can be said about a mutant."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What the tests touch: `file::function` of each test, what is touched before any test, and seconds."""

    touched: dict[str, frozenset[str]]
    always: frozenset[str]
    seconds: dict[str, float]

    def tests_of(self, mutant: Mutant) -> dict[str, float]:
        """Return the tests that a mutant can fail, and their seconds without it; quick ones first.

        All of them for what runs when a module is imported; the quickest for what no test calls: it imports the module.
        """
        name = f"{mutant.mutation.file}::{mutant.mutation.function}"
        everything = sorted(self.seconds, key=lambda test: (self.seconds[test], test))
        if not mutant.is_imported and name not in self.always:
            everything = [test for test in everything if name in self.touched[test]] or everything[:1]
        return {test: self.seconds[test] for test in everything}


class Copy:
    """One copy of what the tests need. `python` is the environment of the tests."""

    def __init__(self, folder: Path, python: Path, root: Path = ROOT) -> None:
        self._folder, self._python = folder, python
        for name in COPIED:
            source, target = root / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def measure(self, part: int, parts: int) -> Reach:
        """Run one part of the tests without a mutant; each has to pass."""
        files = [self._folder / path for path in mutated_files(self._folder)]
        originals = {path: (path.read_bytes(), path.stat()) for path in files}
        for path in files:
            path.write_text(instrumented(path.read_text(encoding="utf-8"), path.name), encoding="utf-8")
        report = self._folder / "report.json"
        try:
            tests = [path for path in TESTS if (self._folder / path).exists()]
            code = self._run({}, tests, part=part, parts=parts, report=report, timeout=None)
        finally:
            for path, (content, status) in originals.items():
                _restore(path, content, status)
        if code != 0:
            raise BrokenRunError(f"the tests fail without any mutant:\n{self._log()}")
        compiling = [str(self._python), "-m", "compileall", "-q", str(PRODUCT)]
        subprocess.run(compiling, cwd=self._folder, check=True)  # noqa: S603
        found = json.loads(report.read_text(encoding="utf-8"))
        always = frozenset(found["touched"].pop(""))
        touched = {test: frozenset(names) for test, names in found["touched"].items()}
        return Reach(touched, always, found["seconds"])

    def try_mutant(self, mutant: Mutant, tests: Mapping[str, float], timeout: float) -> Outcome:
        """Put a mutant in place of its file, run the tests, and take it out again."""
        path = self._folder / place_of(mutant.mutation.file)
        content, status = path.read_bytes(), path.stat()
        path.write_text(mutant.source, encoding="utf-8")
        paths = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        try:
            code = self._run(tests, paths, part=0, parts=0, report=None, timeout=timeout)
        except subprocess.TimeoutExpired:
            return Outcome.TIMED_OUT
        finally:
            _restore(path, content, status)
        if code == TIMED_OUT:
            return Outcome.TIMED_OUT
        if code in {4, 5, WRONG_TREE}:  # pytest: called wrongly, no tests
            raise BrokenRunError(f"exit code {code} for {mutant.mutation}:\n{self._log()}")
        return Outcome.SURVIVED if code == 0 else Outcome.KILLED

    def _run(
        self,
        tests: Mapping[str, float],
        paths: Sequence[str],
        *,
        part: int,
        parts: int,
        report: Path | None,
        timeout: float | None,
    ) -> int:
        choice = {"tests": dict(tests), "paths": paths, "part": part, "parts": parts, "report": str(report or "")}
        chosen = self._folder / "choice.json"
        chosen.write_text(json.dumps(choice), encoding="utf-8")
        command = [str(self._python), "-m", "tests.mutants.child", str(chosen)]
        # Only what runs without a mutant may leave bytecode behind: a mutant's has the size of the original's.
        kept = {} if report else {"PYTHONDONTWRITEBYTECODE": "1"}
        environment = {**_environment(), **kept, "PYTHONHASHSEED": "0"}
        with (self._folder / LOG).open("wb") as log:
            child = subprocess.Popen(command, cwd=self._folder, env=environment, stdout=log, stderr=log)  # noqa: S603
            try:
                return child.wait(timeout)
            finally:
                if child.poll() is None:
                    child.kill()
                    child.wait()

    def _log(self) -> str:
        return (self._folder / LOG).read_text(encoding="utf-8", errors="replace")[-4000:]


def _environment() -> dict[str, str]:
    """Return this process's environment without what would point Python to the checkout or to other options."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"}
    }


def _restore(path: Path, content: bytes, status: os.stat_result) -> None:
    """Write a file as it was, with its time, so that its bytecode is valid again."""
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def place_of(name: str) -> Path:
    """Return where a mutated file is, from the root of the tree. Names are unique."""
    return DIVISION if name == DIVISION.name else PACKAGE / name


def mutated_files(root: Path = ROOT) -> list[Path]:
    """Return the files that are mutated, from the root of the tree, by name."""
    names = {path.name for path in (root / PACKAGE).glob("*.py")} | {DIVISION.name}
    return [place for place in map(place_of, sorted(names)) if (root / place).exists()]


def this_python() -> Path:
    """Return the interpreter of the running environment, by the path that makes it that environment."""
    return Path(sys.executable)
