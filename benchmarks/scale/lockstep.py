"""Kueue's performance scenario, as a ratio to this repository's commit of before the model was made faster.

Both run in the same measurement, one after the other. Where git does not have the commit (an archive, a shallow clone)
there is no ratio.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.scenario import SCENARIO

Figures = dict[str, float]
ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "5ec7326"
"""The commit that ratios are to."""
CODE: Final = ("layers/taskgov/python", "workstation", ".")
"""What a checkout needs on its path."""
_NAMES: Final = ("baseline_lockstep", "big_lockstep")
VARIANTS: Final[Mapping[str, int]] = {name: SCENARIO["variants"][name]["cohorts"] for name in _NAMES}
"""Row -> its cohorts at full scale."""


def measure(row: str, cohorts: int) -> Figures:
    """Return what it takes to play a variant with so many cohorts; the yardstick is the code of before."""
    variant = {name: value for name, value in SCENARIO["variants"][row].items() if name != "expected"}
    scenario = SCENARIO | {"variants": {row: {**variant, "cohorts": cohorts}}}
    with tempfile.TemporaryDirectory(prefix="taskgov-bench-") as folder:
        file = Path(folder, "scenario.json")
        file.write_text(json.dumps(scenario))
        now = _played(ROOT, file, row)
        figures: Figures = {
            "cpuSeconds": now["cpuSeconds"],
            "rssMiB": now["peakMegabytes"],
            "decisions": now["admissions"] + now["preemptions"],
        }
        before = _checkout(Path(folder, "before"))
        if before is not None:
            then = _played(before, file, row)
            if then["decisionsSha256"] != now["decisionsSha256"]:
                raise RuntimeError(f"{row}: the decisions are not those of commit {BEFORE}")
            figures |= {"yardstickSeconds": then["cpuSeconds"], "rssMiBBefore": then["peakMegabytes"]}
    return figures


def _played(checkout: Path, scenario: Path, variant: str) -> dict[str, Any]:
    """Run the engine's benchmark of a checkout in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engine", "--scenario", str(scenario), "--variant", variant, "--json"]
    path = os.pathsep.join(str(checkout / part) for part in CODE)
    done = subprocess.run(  # noqa: S603 - our own module
        command, check=True, stdout=subprocess.PIPE, text=True, cwd=checkout, env={**os.environ, "PYTHONPATH": path}
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _checkout(folder: Path) -> Path | None:
    """Write the code of the commit of before into a folder; None where git does not have it."""
    git = shutil.which("git")
    if git is None:
        return None
    archive = folder.with_suffix(".tar")
    command = [git, "archive", "--output", str(archive), BEFORE, "benchmarks", "layers/taskgov/python", "workstation"]
    if subprocess.run(command, check=False, cwd=ROOT, stderr=subprocess.DEVNULL).returncode:  # noqa: S603 - git itself
        return None
    shutil.unpack_archive(archive, folder, filter="data")
    return folder
