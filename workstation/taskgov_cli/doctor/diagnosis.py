"""What one check says: well or not, why, and the commands that mend it."""

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
    """One check's answer. `mend` are commands to be typed as they are, in their order; `note` is what to know first."""

    check: str
    status: Status
    because: str
    mend: tuple[str, ...] = ()
    note: str = ""


def ok(check: str, because: str) -> Diagnosis:
    """Return that all is well."""
    return Diagnosis(check, Status.OK, because)


def failed(check: str, because: str, *mend: str, note: str = "") -> Diagnosis:
    """Return that it is broken, and what mends it."""
    return Diagnosis(check, Status.FAILED, because, mend, note)


def warning(check: str, because: str, *mend: str, note: str = "") -> Diagnosis:
    """Return that it works, and should be looked at."""
    return Diagnosis(check, Status.WARNING, because, mend, note)


def unknown(check: str, reason: str, *mend: str, note: str = "") -> Diagnosis:
    """Return that it could not be read, and what may let it be."""
    return Diagnosis(check, Status.UNKNOWN, reason, mend, note)
