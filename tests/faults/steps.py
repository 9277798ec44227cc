"""What must hold at every step of a cell, and not only at its end: looked at after each write and each use of the lock.

Nothing here asks the product: the limits are this module's own, and what is judged is read from the emulated services.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tests.faults.scenario import MINIMUM, TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov_embedded.aws_api.aws_requests import Call

LEASE_SECONDS: Final = 300
"""No lock may last longer than this without being renewed."""
_VARYING: Final = re.compile(r"[0-9a-f]{8,}|[0-9]+")


@dataclass(frozen=True, slots=True)
class LockSeen:
    """The lock of the cluster right after a call that wrote a quota, or the lock itself."""

    at: datetime
    writes: str | None
    """The quota or cluster policy that the automation wrote with the call; None for a call about the lock."""
    owner: str | None
    until: datetime | None

    @classmethod
    def of(cls, call: Call, writes: str | None, state: Mapping[str, Any]) -> LockSeen:
        """Read it from the state item of the cluster."""
        until = datetime.fromtimestamp(int(state["lockExpires"]), UTC) if "lockExpires" in state else None
        return cls(call.time, writes, state.get("lockOwner"), until)


def locks(seen: Iterable[LockSeen]) -> Iterator[str]:
    """Check that nothing is written without a lock that runs, and that no lease is longer than it may be."""
    for seen_lock in seen:
        runs = seen_lock.owner is not None and seen_lock.until is not None and seen_lock.until >= seen_lock.at
        if seen_lock.writes is not None and not runs:
            yield f"{seen_lock.writes} was written at {seen_lock.at:%H:%M:%S} without a lock"
        if seen_lock.until is not None and (seen_lock.until - seen_lock.at).total_seconds() > LEASE_SECONDS:
            yield f"at {seen_lock.at:%H:%M:%S} the lock was leased until {seen_lock.until:%H:%M:%S}"


def floors(name: str, before: int, after: int) -> Iterator[str]:
    """Check that a write puts nobody below the minimum at which, or above which, it stood."""
    least = MINIMUM.get(name.removesuffix("-quota"), 0)
    if after < least <= before:
        yield f"{name} was lowered to {after} x {TYPE}, and its minimum is {least}"


def notices(sent: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Check that people were told once of one cause: subject and error, whatever numbers and ids are in them."""
    told = Counter((subject, _VARYING.sub("#", _error(text))) for subject, text in sent)
    for (subject, error), times in told.items():
        if times > 1:
            yield f"people were told {times} times of one cause: {subject}: {error}"


def _error(text: str) -> str:
    """Return the line of a notice that says what went wrong."""
    return next((line for line in text.splitlines() if line.startswith("Error: ")), "")
