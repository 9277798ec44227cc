"""The queue whose futures are drawn: which jobs wait or run at a moment, and under which setting."""

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
    """A job that is there: waits, or runs (`held`). `ran` is the longest time that it ran so far, in seconds."""

    workload: Workload
    request: Request
    held: Held | None = None
    ran: float = 0.0
    fixed: float | None = None
    """How long it runs in all, where somebody said so: that wins over the laws."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A queue at a moment: who is there, under which setting, and how those who come become workloads.

    `newcomer` gives the workload of an arrival that has a number of its own; None where nothing like it can come.
    """

    now: Instant
    setting: Setting
    present: Sequence[Present]
    newcomer: Callable[[Coming, int, Instant], Workload | None]
