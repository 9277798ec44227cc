"""The survivors that are known to be harmless: docs/testing.md lists them, with the reason, and nothing else does."""

import re
from pathlib import Path

from tests.mutants.copies import ROOT
from tests.mutants.mutation import Mutation

PAGE = ROOT / "docs" / "testing.md"
START, END = "<!-- survivors -->", "<!-- /survivors -->"
HEADING = re.compile(r"#### `(?P<file>[a-z_]+\.py)`: `(?P<function>[^`]+)`")
ENTRY = re.compile(r"\* `(?P<before>[^`]+)`(?: \((?P<nth>\d+)\))? → `(?P<after>[^`]*)`: (?P<why>\S.*)")


def listed_survivors(page: Path = PAGE) -> dict[Mutation, str]:
    """Return the listed mutations, each with the reason why it does no harm.

    Raises:
        ValueError: A line of the list is neither a heading nor an entry, or an entry is there twice.
    """
    listed: dict[Mutation, str] = {}
    heading: re.Match[str] | None = None
    text = page.read_text(encoding="utf-8")
    entries = re.sub(r"\n  +", " ", text.partition(START)[2].partition(END)[0])  # one line each
    for line in entries.splitlines():
        if not line.strip():
            continue
        if found := HEADING.fullmatch(line):
            heading = found
            continue
        entry = ENTRY.fullmatch(line)
        if entry is None or heading is None:
            raise ValueError(f"{page.name}: not an entry of the list of survivors: {line}")
        nth = int(entry["nth"] or 1)
        mutation = Mutation(heading["file"], heading["function"], entry["before"], entry["after"], nth)
        if mutation in listed:
            raise ValueError(f"{page.name}: listed twice: {line}")
        listed[mutation] = entry["why"]
    return listed
