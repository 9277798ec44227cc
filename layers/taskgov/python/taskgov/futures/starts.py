"""The result of a replay: who ran from when to when, who was preempted, who never started."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.scheduling.instants import Instant


class Stay(NamedTuple):
    """One job's time with quota, in microseconds; `job` is its index. `end` is `None` while it still runs.

    The work of a stay that ended by preemption is lost: the job starts again.
    """

    job: int
    start: Instant
    end: Instant | None
    preempted: bool


class Starts(NamedTuple):
    """The stays of all jobs, by the moment at which they ended; those that still run come last.

    `loop` names the jobs (indexes) that went on preempting one another: then the replay is over at `end`, and
    the exact model (`taskgov_explain.simulation`) decides whether that continues forever.
    """

    stays: Sequence[Stay]
    end: Instant
    loop: tuple[int, ...] = ()

    def first(self) -> dict[int, Instant]:
        """Return when each job started for the first time; jobs that never did are missing."""
        first: dict[int, Instant] = {}
        for job, start, _, _ in self.stays:
            if start < first.get(job, start + 1):
                first[job] = start
        return first
