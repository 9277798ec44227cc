"""When did which job of a replay hold quota? The ground that outcome and series are counted on."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from taskgov.scheduling.instants import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from taskgov_cli.replay_traces import Job, Trace
    from taskgov_explain.timeline import Happening

Capacity = list[tuple[float, int]]
"""From when (seconds) how many GPUs there are."""
History = list[tuple[float, dict[str, int]]]
"""From when (seconds) which team has how many GPUs of quota."""


@dataclass(frozen=True, slots=True)
class Stay:
    """One job's time with quota: from its admission to its end, or to its preemption."""

    job: Job
    number: int
    start: float
    end: float
    preempted: bool


def stays_of(happenings: Iterable[Happening], trace: Trace) -> list[Stay]:
    """Return the times with quota of all jobs; a job that nobody preempts stays for its run time."""
    open_since: dict[int, float] = {}
    stays = []
    for happening in happenings:
        number, at = int(happening.uid), happening.at / SECOND
        job = trace.jobs[number]
        if happening.kind == "admitted":
            open_since[number] = at
        elif happening.kind == "preempted":
            stays.append(Stay(job, number, open_since.pop(number), at, preempted=True))
    for number, start in open_since.items():
        job = trace.jobs[number]
        stays.append(Stay(job, number, start, start + job.run_time, preempted=False))
    return stays


def steps(stays: Iterable[Stay], limit: list[tuple[float, int]]) -> Iterator[tuple[float, float, int, int]]:
    """Give stretches of time in which neither what is held nor the limit changes: start, end, held, limit."""
    events: list[tuple[float, int, int | None]] = []
    for stay in stays:
        heappush(events, (stay.start, stay.job.gpus, None))
        heappush(events, (stay.end, -stay.job.gpus, None))
    for at, bound in limit:
        heappush(events, (at, 0, bound))
    now, held, bound = 0.0, 0, limit[0][1]
    while events:
        at, change, new_bound = heappop(events)
        if at > now:
            yield now, at, held, bound
            now = at
        held, bound = held + change, bound if new_bound is None else new_bound
