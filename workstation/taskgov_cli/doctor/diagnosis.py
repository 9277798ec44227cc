"""What one check says: its status, why, and the commands that fix it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a check came out. What could not be read is unknown: neither well nor broken."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One check's answer. `fix` are commands to be typed as they are, in their order; `note` is what to know first."""

    check: str
    status: Status
    because: str
    fix: tuple[str, ...] = ()
    note: str = ""


def ok(check: str, because: str) -> Diagnosis:
    """Return that all is well."""
    return Diagnosis(check, Status.OK, because)


def failed(check: str, because: str, *fix: str, note: str = "") -> Diagnosis:
    """Return that it is broken, and what fixes it."""
    return Diagnosis(check, Status.FAILED, because, fix, note)


def warning(check: str, because: str, *fix: str, note: str = "") -> Diagnosis:
    """Return that it works, and should be examined."""
    return Diagnosis(check, Status.WARNING, because, fix, note)


def unknown(check: str, reason: str, *fix: str, note: str = "") -> Diagnosis:
    """Return that it could not be read, and what may let it be."""
    return Diagnosis(check, Status.UNKNOWN, reason, fix, note)
