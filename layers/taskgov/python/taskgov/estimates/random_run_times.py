"""Random run times of the jobs of futures. Those of a batch are correlated (`taskgov.estimates.batches`)."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from taskgov.estimates.batches import BETWEEN, BETWEEN_ADDS, NO_BATCH, WITHIN, WITHIN_ADDS, batches
from taskgov.estimates.requests import alike
from taskgov.estimates.run_law import NORMAL
from taskgov.scheduling.instants import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.queue_now import Present
    from taskgov.estimates.requests import Chance, Group, Request
    from taskgov.estimates.run_times import Prospect, RunTimes


class RandomRunTimes:
    """Draws the run times of present jobs and of arrivals, one future after the other."""

    def __init__(self, chance: Chance, together: float, run_times: RunTimes, present: Sequence[Present] = ()) -> None:
        """Take the present jobs in the order in which they start."""
        self._chance, self._together, self._run_times, self._present = chance, together, run_times, present
        self._prospects = [run_times.prospect(job.request, job.ran) for job in present]
        self._batches = batches([(alike(job.request), job.workload.created / SECOND) for job in present])
        self._shared: dict[Group, tuple[float, int]] = {}

    def begin(self) -> list[float]:
        """Begin another future, and return the total run time of each present job, in seconds."""
        self._shared = {}
        return [
            self._drawn(job.request, prospect, batch) if job.fixed is None else job.fixed
            for job, prospect, batch in zip(self._present, self._prospects, self._batches, strict=True)
        ]

    def seconds(self, request: Request, batch: int) -> float:
        """Return the total run time of a job that comes next, in seconds."""
        return self._drawn(request, self._run_times.prospect(request), batch)

    def _drawn(self, request: Request, prospect: Prospect, batch: int) -> float:
        group = alike(request)
        shared, last = self._shared.get(group) or (self._normal(), NO_BATCH)
        keeps, adds = (WITHIN, WITHIN_ADDS) if batch == last else (BETWEEN, BETWEEN_ADDS)
        shared = keeps * shared + adds * self._normal()
        self._shared[group] = shared, batch
        return prospect.seconds(sqrt(self._together) * shared + sqrt(1.0 - self._together) * self._normal())

    def _normal(self) -> float:
        return NORMAL.inv_cdf(max(self._chance.random(), 1e-12))
