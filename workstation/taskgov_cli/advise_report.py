"""What `taskgov advise` answers: the advice, and what was made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskgov.advice.advising import Advice
    from taskgov.advice.judging import Result


@dataclass(frozen=True, slots=True)
class Report:
    """Advice, and what was made of it: the changed document, what its plan gives, and the exact model's word."""

    advice: Advice
    fair: bool
    before: str | None
    changed: str | None
    """The document with the advice; None without one, or where it is left as it is."""
    unlike: tuple[str, ...]
    """Teams to whom the plan of the changed document gives another number than was advised."""
    exact: tuple[Result, Result] | None
    """The last split by the exact model: under today's terms, and as advised."""
    held: tuple[str, ...]
    """Which quotas are kept, and why."""
    unmeasured: float = 0.0
    """Seconds of the history of which nothing is known: the record of work does not cover them."""
    left_out: tuple[str, ...] = ()
    """Teams of a record of work that the document does not have any more."""
