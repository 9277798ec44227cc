"""Files that code generates: kept fresh by tests, rewritten with TASKGOV_UPDATE_GOLDEN=1."""

import os
from pathlib import Path


def assert_golden(path: Path, text: str) -> None:
    """Fail when the file is not what the code generates now; with TASKGOV_UPDATE_GOLDEN=1 write it instead."""
    if os.environ.get("TASKGOV_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text, f"{path} is stale: run the test once with TASKGOV_UPDATE_GOLDEN=1"


def assert_section(path: Path, name: str, text: str) -> None:
    """Do the same for one part of a file, between `<!-- begin NAME -->` and `<!-- end NAME -->`."""
    begin, end = f"<!-- begin {name} -->\n", f"\n<!-- end {name} -->"
    before, _, rest = path.read_text().partition(begin)
    _, found, after = rest.partition(end)
    assert found, f"{path} has no section {name!r}"
    assert_golden(path, before + begin + text + end + after)
