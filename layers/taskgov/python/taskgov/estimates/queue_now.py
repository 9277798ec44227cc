"""The state from which futures are drawn: the waiting and running jobs of a queue, and its setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskgov.estimates.arrivals import Coming
    from taskgov.estimates.requests import Request
    from taskgov.futures import Held, Setting
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Workload


class Present(NamedTuple):
    """A job that waits, or runs (`held`). `ran` is the longest time that it has run so far, in seconds."""

    workload: Workload
    request: Request
    held: Held | None = None
    ran: float = 0.0
    fixed: float | None = None
    """Its total run time in seconds, if somebody gave it. It is then not drawn."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A queue at one moment: its jobs, its setting, and how arrivals become workloads.

    `newcomer` returns the workload of an arrival, given its number and time; None if its team has no suitable queue.
    """

    now: Instant
    setting: Setting
    present: Sequence[Present]
    newcomer: Callable[[Coming, int, Instant], Workload | None]
