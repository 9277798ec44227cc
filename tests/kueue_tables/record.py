"""How are decisions of Kueue's scheduler recorded? Its tests run with a recorder in the place of two calls."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling import KueueModel, ManagerConfig
from taskgov.scheduling.store import KINDS
from tests.cluster.binaries import CACHE, kueue_module

if TYPE_CHECKING:
    from collections.abc import Mapping

TESTS: Final = (
    "^(TestSchedule|TestScheduleForFairSharing|TestScheduleRecomputePreemptionTargets|TestLastSchedulingContext)$"
)
"""Kueue's table tests of whole cycles that the model follows; those of topologies are not among them."""
WORLDS: Final = "^TestTaskgovWorlds$"
_REFUSED_WRITE: Final = "error_during_admission"
"""A test whose API server refuses to store an admission."""
PACKAGE: Final = "pkg/scheduler"
RECORDER: Final = Path(__file__).parent / "recorder_test.go"
_CYCLE: Final = re.compile(r"\b(\w+)\.schedule\((\w+)\)")
_COHORT: Final = re.compile(r"\b(\w+)\.AddOrUpdateCohort\((&\w+)\)")


class RecordingError(Exception):
    """Why nothing can be recorded, in a sentence for the person who asked."""


def record(out: Path, tests: str, worlds: Path | None) -> str:
    """Record and write `out`/cases.json; return a sentence about it. Raises `RecordingError`."""
    if shutil.which("go") is None:
        raise RecordingError("There is no Go on this machine: Kueue's tests cannot be run, and nothing is recorded.")
    module = kueue_module()
    if module is None:
        raise RecordingError("Kueue's Go module is not at hand: `make cluster-programs` fetches it.")
    with tempfile.TemporaryDirectory() as folder:
        lines = _run(_linked(module), Path(folder), WORLDS if worlds else tests, worlds)
    cases = [case for line in lines if _is_followed(case := json.loads(line))]
    if not cases:
        raise RecordingError("Kueue's tests ran, and none of them recorded a case.")
    out.mkdir(parents=True, exist_ok=True)
    (out / "cases.json").write_text(json.dumps(_distinct(cases), indent=1))
    return f"{out / 'cases.json'}: {len(_distinct(cases))} cases, {len(lines) - len(cases)} skipped"


def _linked(module: Path) -> Path:
    """Return a tree of links to the module's files: `go` takes no overlay below the module cache."""
    tree = CACHE.parent / "kueue-tables" / module.name
    if not tree.exists():
        unfinished = tree.with_suffix(".linking")
        shutil.rmtree(unfinished, ignore_errors=True)
        left_out = shutil.ignore_patterns("docs", "keps", "site", ".github")
        shutil.copytree(module, unfinished, ignore=left_out, copy_function=_link)
        unfinished.rename(tree)
    return tree


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def overlay(module: Path, folder: Path) -> Path:
    """Write changed copies of Kueue's test files, and the file that tells `go test` to take them instead."""
    replaced = {str(module / PACKAGE / "taskgov_recorder_test.go"): str(RECORDER)}
    for path in sorted((module / PACKAGE).glob("*_test.go")):
        text = path.read_text()
        changed = with_recorder(text)
        if changed != text and "_bench_" not in path.name:
            copy = folder / path.name
            copy.write_text(changed)
            replaced[str(path)] = str(copy)
    told = folder / "overlay.json"
    told.write_text(json.dumps({"Replace": replaced}))
    return told


def with_recorder(source: str) -> str:
    """Return a Go test with the recorder in place of the scheduler's cycle and of the cache's cohorts.

    Example:
        >>> with_recorder("scheduler.schedule(ctx)")
        'taskgovSchedule(t, scheduler, ctx)'
        >>> with_recorder("if err := cqCache.AddOrUpdateCohort(&cohort); err != nil {")
        'if err := taskgovCohort(cqCache, &cohort); err != nil {'

    """
    return _COHORT.sub(r"taskgovCohort(\1, \2)", _CYCLE.sub(r"taskgovSchedule(t, \1, \2)", source))


def _run(module: Path, folder: Path, tests: str, worlds: Path | None) -> list[str]:
    recorded = folder / "recorded.jsonl"
    command = ["go", "test", "-mod=readonly", f"-overlay={overlay(module, folder)}", "-count=1", "-run", tests]
    told = {**os.environ, "TASKGOV_RECORD": str(recorded)}
    if worlds is not None:
        told["TASKGOV_WORLDS"] = str(worlds.resolve())
    done = subprocess.run(  # noqa: S603 - fixed words and paths
        [*command, f"./{PACKAGE}"], cwd=module, env=told, text=True, capture_output=True, check=False
    )
    if not recorded.exists():
        raise RecordingError(f"Kueue's tests recorded nothing:\n{(done.stdout + done.stderr)[-3000:]}")
    if done.returncode:
        print(f"Kueue's tests did not all pass:\n{_telling(done.stdout)}")
    return recorded.read_text().splitlines()


def _telling(output: str) -> str:
    """Return the lines around the first panic or failure."""
    at = max(output.find("panic:"), 0) or max(output.find("--- FAIL"), 0)
    return output[at : at + 1500]


def _distinct(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep one of the cases that ask and answer the same: Kueue runs its tables with several ways to write."""
    seen: dict[str, dict[str, Any]] = {}
    for case in cases:
        what = {field: case[field] for field in ("objects", "config", "expected")}
        seen.setdefault(json.dumps(what, sort_keys=True), case)
    return list(seen.values())


def _is_followed(case: Mapping[str, Any]) -> bool:
    """Say whether a case can be compared: nothing in it is beyond the form, or known not to be modelled."""
    if case.get("skipped") or _REFUSED_WRITE in case["name"]:
        return False
    known = [obj for obj in case["objects"] if obj["kind"] in KINDS]
    model = KueueModel(ManagerConfig(gates=case["config"]["gates"]))
    model.load(known)
    return not model.not_modelled
