"""The scheduling model, as a ratio to this repository's commit of before it was made faster.

Played are Kueue's performance scenario, and queues of one cohort with fair sharing, half of whose jobs wait. Both codes
run in the same measurement, one after the other. Where git does not have the commit (an archive, a shallow clone) there
is no ratio.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.scale import models
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
HALF_WAITING: Final = "model: queues, half waiting"
QUEUES: Final = 80
"""So many queues has that row at full scale."""
ROWS: Final = (HALF_WAITING, *VARIANTS)
_CYCLES: Final = 100
"""Its CPU seconds are those of so many cycles."""


def measure(row: str, number: int) -> Figures:
    """Return what it takes to play so many cohorts, or queues; the yardstick is the code of before."""
    with tempfile.TemporaryDirectory(prefix="taskgov-bench-") as folder:
        if row == HALF_WAITING:
            file, arguments = Path(folder, "objects.json"), [str(Path(__file__).with_name("settled.py"))]
            file.write_text(json.dumps(models.half_waiting(number)))
            arguments.append(str(file))
        else:
            file = Path(folder, "scenario.json")
            variant = {name: value for name, value in SCENARIO["variants"][row].items() if name != "expected"}
            file.write_text(json.dumps(SCENARIO | {"variants": {row: {**variant, "cohorts": number}}}))
            arguments = ["-m", "benchmarks.engine", "--scenario", str(file), "--variant", row, "--json"]
        now = _played(ROOT, arguments)
        figures = _figures(row, now)
        before = _checkout(Path(folder, "before"))
        if before is not None:
            then = _played(before, arguments)
            if then["decisionsSha256"] != now["decisionsSha256"]:
                raise RuntimeError(f"{row}: the decisions are not those of commit {BEFORE}")
            figures |= {"yardstickSeconds": _figures(row, then)["cpuSeconds"], "rssMiBBefore": then["peakMegabytes"]}
    return figures


def _figures(row: str, played: Mapping[str, Any]) -> Figures:
    return {
        "cpuSeconds": played["cpuSeconds"] * (_CYCLES / played["cycles"] if row == HALF_WAITING else 1),
        "rssMiB": played["peakMegabytes"],
        "decisions": played["admissions"] + played["preemptions"],
    }


def _played(checkout: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Play with the code of a checkout in a process of its own."""
    path = os.pathsep.join(str(checkout / part) for part in CODE)
    done = subprocess.run(  # noqa: S603 - our own modules
        [sys.executable, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path},
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
