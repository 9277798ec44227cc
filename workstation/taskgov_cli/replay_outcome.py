"""The results of a replay: waiting, use, loans, preemptions, for each team and in total."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, quantiles
from typing import TYPE_CHECKING

from taskgov_cli.replay_stays import steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov_cli.replay_series import Sample
    from taskgov_cli.replay_stays import Capacity, History, Stay
    from taskgov_cli.replay_traces import Job, Trace


@dataclass(frozen=True, slots=True)
class TeamOutcome:
    """What a replay came to for one team. Waiting is all time in the queue, again after a preemption too."""

    team: str
    quota: int
    jobs: int
    never_started: int
    mean_wait: float
    p95_wait: float
    waiting_gpu_hours: float
    used_gpu_hours: float
    borrowed_gpu_hours: float
    preemptions: int
    lost_gpu_hours: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay came to. `beyond_gpu_hours` were admitted while there were fewer GPUs than that."""

    name: str
    teams: tuple[TeamOutcome, ...]
    utilisation: float
    beyond_gpu_hours: float
    cycles: int
    plans: int
    samples: tuple[Sample, ...] = ()
    """Means over time, see `replay_series`."""


def team_outcome(team: str, trace: Trace, stays: list[Stay], history: History) -> TeamOutcome:
    """Return the team's results."""
    own = [stay for stay in stays if stay.job.team == team]
    jobs = {number: job for number, job in enumerate(trace.jobs) if job.team == team}
    waits = _waits(jobs, own)
    held = [(at, quotas.get(team, 0)) for at, quotas in history]
    weighted = sum(jobs[number].gpus * wait for number, wait in waits.items())
    return TeamOutcome(
        team=team,
        quota=held[0][1],
        jobs=len(jobs),
        never_started=len(jobs) - len(waits),
        mean_wait=fmean(waits.values()) if waits else 0.0,
        p95_wait=quantiles(waits.values(), n=20)[-1] if len(waits) > 1 else max(waits.values(), default=0.0),
        waiting_gpu_hours=weighted / 3600,
        used_gpu_hours=sum(stay.job.gpus * (stay.end - stay.start) for stay in own) / 3600,
        borrowed_gpu_hours=_above(own, held) / 3600,
        preemptions=sum(stay.preempted for stay in own),
        lost_gpu_hours=sum(stay.job.gpus * (stay.end - stay.start) for stay in own if stay.preempted) / 3600,
    )


def _waits(jobs: Mapping[int, Job], stays: Iterable[Stay]) -> dict[int, float]:
    """Return each started job's time in the queue."""
    since = {number: job.arrival for number, job in jobs.items()}
    waits: dict[int, float] = {}
    for stay in sorted(stays, key=lambda stay: stay.start):
        waits[stay.number] = waits.get(stay.number, 0.0) + stay.start - since[stay.number]
        since[stay.number] = stay.end
    return waits


def _above(stays: Iterable[Stay], limit: list[tuple[float, int]]) -> float:
    """Integrate what is held above a limit that changes in steps, in GPU-seconds."""
    return sum(max(0, held - bound) * (end - start) for start, end, held, bound in steps(stays, limit))


def totals(stays: list[Stay], trace: Trace, capacity: Capacity) -> tuple[float, float]:
    """Return utilisation while jobs came, and the GPU-hours held while there were fewer GPUs than that."""
    used = offered = beyond = 0.0
    for start, end, held, there in steps(stays, capacity):
        stretch = min(end, trace.span) - start
        if stretch > 0:
            used += min(held, there) * stretch
            offered += there * stretch
            beyond += max(0, held - there) * stretch
    return used / offered if offered else 0.0, beyond / 3600
