"""When has Kueue nothing more to do for a sequence?

`journal` reads it from the log. Where that cannot be read (a given cluster), it is when nothing changes for a while.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from tests.cluster.differential.api import Workloads

_QUIET_SECONDS: Final = 1.0
_BATCH_SECONDS: Final = 2.5
"""Kueue looks at inadmissible workloads again a second after something became free; then it has as long again."""


class RestlessError(AssertionError):
    """Kueue does not stop changing something in a sequence."""


class Rest(Protocol):
    """Knows when Kueue has nothing more to do for a sequence."""

    def wait_for_rest(
        self, lane: str, since: float, *, batch: bool, cohort: bool, silent: bool = False, door: bool = False
    ) -> None:
        """Wait until what was done at `since` has come to its end."""

    def wait_for_finish(self, lane: str, since: float) -> float:
        """Wait until Kueue has seen that a workload is finished; return when it saw the last one."""

    def was_hurried(self, lane: str, since: float) -> bool:
        """Say whether the second between a change and reconsideration may have been over before cycles ended."""

    def place(self) -> int:
        """Return how long Kueue's log is now."""

    def excerpt(self, lane: str, place: int) -> list[str]:
        """Return what Kueue's log says of a sequence, and of cycles, from a place on."""

    def stop(self) -> None:
        """Be done with it."""


class Stillness:
    """Takes it that Kueue rests when no workload of the sequence has changed for a while."""

    def __init__(self, workloads: Workloads) -> None:
        self._workloads = workloads

    def wait_for_rest(
        self, lane: str, since: float, *, batch: bool, cohort: bool, silent: bool = False, door: bool = False
    ) -> None:
        """Wait until what was done at `since` has had its time, and nothing changes any more."""
        earliest = since + (_BATCH_SECONDS if batch else _QUIET_SECONDS)
        while (now := time.time()) < max(earliest, self._workloads.last_change(lane) + _QUIET_SECONDS):
            time.sleep(max(0.01, min(0.2, earliest - now)))

    def wait_for_finish(self, lane: str, since: float) -> float:
        """Take it that Kueue sees it now."""
        return time.time()

    def was_hurried(self, lane: str, since: float) -> bool:
        """Nobody can tell."""
        return True

    def place(self) -> int:
        """There is no log."""
        return 0

    def excerpt(self, lane: str, place: int) -> list[str]:
        """There is no log."""
        return []

    def stop(self) -> None:
        """Nothing runs here."""
