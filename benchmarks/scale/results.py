"""What was measured last, in `benchmarks/results.json`, and the table that docs/scale.md shows of it."""

import json
import os
import platform
import shutil
import subprocess
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.pages import write_sections
from benchmarks.scale.functions import fits, function_table
from benchmarks.scale.measured import ALL, figures
from taskgov_embedded.cloudformation.template import translate
from taskgov_embedded.deployable import TEMPLATE

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "benchmarks" / "results.json"
PAGE: Final = ROOT / "docs" / "scale.md"
PAGE_WIDTH: Final = 120
Row = Mapping[str, Any]


def facts(scale: float) -> dict[str, Any]:
    """Return what figures depend on besides the row: scale, commit, day, Python and the machine."""
    return {
        "scale": scale,
        "commit": _commit(),
        "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memoryGiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
    }


def keep(rows: Iterable[Row], about: Mapping[str, Any]) -> None:
    """Put rows into the file, each in place of what was measured of it before, and the table into the page."""
    kept = {row["row"]: row for row in (*stored(), *({**row, **about} for row in rows)) if row["row"] in ALL}
    in_order = sorted(kept.values(), key=lambda row: ALL.index(row["row"]))
    RESULTS.write_text(json.dumps(in_order, indent=1) + "\n")
    write_sections(PAGE, sections(in_order))


def sections(rows: Sequence[Row]) -> dict[str, str]:
    """Return the parts of the page that are made from the file and the template."""
    return {"measured": page_table(rows), "functions": function_table(fits(rows, functions()))}


def functions() -> Mapping[str, Mapping[str, Any]]:
    """Return the properties of the template's functions, by logical id."""
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # the translator wants one
    return translate(TEMPLATE, {}).resources_of("AWS::Lambda::Function")


def stored() -> list[Row]:
    """Return the rows of the file; none where there is none."""
    rows: list[Row] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return rows


def page_table(rows: Sequence[Row]) -> str:
    """Return the table of the page, and under it on what it was measured."""
    head = ("row", "size", "ratio", "aim", "CPU s", "MiB", "aim", "exponent", "aim")
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        cells = (
            f"`{row['row']}`",
            f"{row['sizes'][-1]:,}",
            *figures(row),
        )
        lines.append(_line(cells))
    return "\n".join([*lines, "", *_measured_on(rows)])


def _measured_on(rows: Sequence[Row]) -> list[str]:
    """Say on what rows were measured, a line for each machine and scale."""
    found: dict[str, list[str]] = {}
    for row in rows:
        when = f"scale {row['scale']:g}, {row['date']}, commit {row['commit']}"
        about = f"{when}, Python {row['python']}, {_machine(row)}"
        found.setdefault(about, []).append(row["row"])
    lines = []
    for about, names in found.items():
        which = "All rows" if len(found) == 1 else ", ".join(f"`{name}`" for name in names)
        text = f"* {which}: {about}."
        lines += textwrap.wrap(text, PAGE_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _machine(row: Row) -> str:
    """Name the machine; rows of earlier releases do not say how large it was."""
    size = f", {row['cores']} cores, {row['memoryGiB']:g} GiB" if "cores" in row else ""
    return f"{row['processor']}{size}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _commit() -> str:
    """Return the commit that is checked out, with a `+` where files differ from it; `unknown` without git."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    done = subprocess.run(  # noqa: S603 - git itself
        [git, "describe", "--always", "--abbrev=8", "--dirty=+", "--match=no-tag"],
        check=False,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    """Return the name of the processor, as Linux has it, or the kind of machine."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
