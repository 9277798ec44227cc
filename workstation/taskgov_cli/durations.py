"""Run times as people type them: `--runs team-b/train-7b=2h30m`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from taskgov_explain.find import UnknownNameError, find_workload

if TYPE_CHECKING:
    from taskgov.snapshot.model import Snapshot

Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--runs", help="How long a workload runs in total, e.g. team-b/train-7b=2h30m. Repeat.", metavar="NAME=TIME"
    ),
]
_FORM: Final = re.compile(r"(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?")


def duration(text: str) -> timedelta:
    """Read a duration. Raises `ValueError` for anything else.

    Example:
        >>> duration("2h30m"), duration("1d")
        (datetime.timedelta(seconds=9000), datetime.timedelta(days=1))

    """
    found = _FORM.fullmatch(text)
    if not text or found is None:
        raise ValueError(f"{text!r} is not a duration such as 2h30m, 45m or 1d")
    return timedelta(**{unit: int(number) for unit, number in found.groupdict().items() if number})


def run_times(snapshot: Snapshot, runs: list[str] | None) -> dict[str, timedelta]:
    """Return the run times that `--runs` gives, by Kueue's key. Raises `typer.BadParameter` with every wrong value."""
    found: dict[str, timedelta] = {}
    wrong = []
    for run in runs or ():
        name, _, text = run.rpartition("=")
        said: list[str] = []
        key, long = None, None
        try:
            key = find_workload(snapshot.kueue.workloads, name).key
        except UnknownNameError as error:
            said.append(str(error))
        try:
            long = duration(text)
        except ValueError as error:
            said.append(str(error))
        if key is not None and long is not None:
            found[key] = long
        else:
            wrong.append(f"--runs {run}: {'; '.join(said)}")
    if wrong:
        raise typer.BadParameter("\n".join(wrong))
    return found
