"""How did a replay go over time? Means of what was used, borrowed and waiting, slice by slice, for plots.

The slices divide the time in which jobs came; what is still queued or running after it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov_cli.replay_stays import steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from taskgov_cli.replay_stays import Capacity, History, Stay
    from taskgov_cli.replay_traces import Trace

SLICES: Final = 240


@dataclass(frozen=True, slots=True)
class Sample:
    """One slice: when it begins, in seconds since the first job, and means over it, in GPUs."""

    at: float
    machines: float
    """GPUs that there were."""
    used: float
    """GPUs held by admitted jobs."""
    borrowed: float
    """Held above the own quota, over all teams."""
    waiting: float
    """GPUs that queued jobs ask for, without those of jobs that never start."""


def samples(stays: list[Stay], trace: Trace, capacity: Capacity, history: History) -> tuple[Sample, ...]:
    """Return the slices in order; none for a trace in which all jobs come at once."""
    if not trace.span:
        return ()
    means = {name: _Means(trace.span) for name in ("machines", "used", "borrowed", "waiting")}
    for start, end, held, _ in steps(stays, [(0.0, 0)]):
        means["used"].add(start, end, held)
    for (start, gpus), (end, _) in zip(capacity, [*capacity[1:], (trace.span, 0)], strict=True):
        means["machines"].add(start, end, gpus)
    for team in trace.gpu_hours():
        own = (stay for stay in stays if stay.job.team == team)
        for start, end, held, quota in steps(own, [(at, quotas.get(team, 0)) for at, quotas in history]):
            means["borrowed"].add(start, end, max(0, held - quota))
    for start, end, gpus in _queued(stays, trace):
        means["waiting"].add(start, end, gpus)
    width = trace.span / SLICES
    return tuple(
        Sample(number * width, **{name: mean.values[number] for name, mean in means.items()})
        for number in range(SLICES)
    )


class _Means:
    """Adds up an amount over stretches of time, as means of equal slices."""

    def __init__(self, span: float) -> None:
        self._width = span / SLICES
        self._span = span
        self.values = [0.0] * SLICES

    def add(self, start: float, end: float, amount: float) -> None:
        """Add an amount that holds from one moment to another."""
        start, end = max(0.0, start), min(end, self._span)
        if not amount or end <= start:
            return
        number = min(int(start / self._width), SLICES - 1)
        while start < end and number < SLICES:
            until = end if number == SLICES - 1 else min(end, (number + 1) * self._width)
            self.values[number] += amount * (until - start) / self._width
            start, number = until, number + 1


def _queued(stays: Iterable[Stay], trace: Trace) -> Iterator[tuple[float, float, int]]:
    """Give the stretches in which jobs waited that start at some time: from when, until when, and how many GPUs."""
    since = {number: job.arrival for number, job in enumerate(trace.jobs)}
    for stay in sorted(stays, key=lambda stay: stay.start):
        yield since.pop(stay.number), stay.start, stay.job.gpus
        if stay.preempted:
            since[stay.number] = stay.end
