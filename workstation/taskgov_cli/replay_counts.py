"""How much waiting could lending have removed? From counts of GPUs by minute, as the Helios cluster published them.

There are no jobs in such counts, so nothing is simulated: minute by minute, the GPUs that wait are held against the
GPUs that are idle in teams which have nothing waiting, within a borrow limit. Two readings bound the truth: GPU by GPU
(a job may be served in part), and whole jobs of the team's mean waiting size. Both ignore where the idle GPUs are, and
that a job served earlier would also have ended earlier.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

NO_LIMIT: Final = 10_000
"""The largest BorrowLimit that HyperPod takes, in percent."""


@dataclass(frozen=True, slots=True)
class Minute:
    """One team in one minute: its quota, what waits (in how many jobs), and what is idle, in GPUs."""

    quota: int
    running: int
    waiting: int
    waiting_jobs: int
    idle: int


@dataclass(frozen=True, slots=True)
class LimitOutcome:
    """What one borrow limit could have done."""

    borrow_limit: int
    served_gpu_hours: float
    """GPU by GPU: an upper bound."""
    served_whole_jobs_gpu_hours: float
    """In whole jobs of the mean waiting size."""


@dataclass(frozen=True, slots=True)
class CountsOutcome:
    """What the counts say, in GPU-hours; `by_team` is what waits, by team."""

    name: str
    teams: int
    minutes: int
    gpus: int
    running: float
    idle: float
    waiting: float
    minutes_waiting_beside_idle: int
    by_team: Mapping[str, float]
    limits: tuple[LimitOutcome, ...]


def is_counts(path: Path) -> bool:
    """Say whether a folder holds one file of counts for each team."""
    return path.is_dir() and any(path.glob("vc*.csv*"))


def read_counts(folder: Path, tell: Callable[[float], None] = lambda _: None) -> dict[str, dict[str, Minute]]:
    """Return the minutes of every team: team -> time -> counts."""
    files = sorted(folder.glob("vc*.csv*"))
    teams = {}
    for number, file in enumerate(files, 1):
        teams[file.name.partition(".")[0]] = _minutes(file)
        tell(number / len(files))
    return teams


def judge_counts(name: str, teams: Mapping[str, Mapping[str, Minute]], borrow_limits: Iterable[int]) -> CountsOutcome:
    """Return what lending within each of these borrow limits (percent of the own quota) could have served."""
    by_time: dict[str, list[Minute]] = defaultdict(list)
    for minutes in teams.values():
        for time, minute in minutes.items():
            by_time[time].append(minute)
    everything = list(by_time.values())
    return CountsOutcome(
        name=name,
        teams=len(teams),
        minutes=len(everything),
        gpus=max(sum(one.quota for one in minute) for minute in everything),
        running=_hours(one.running for minute in everything for one in minute),
        idle=_hours(one.idle for minute in everything for one in minute),
        waiting=_hours(one.waiting for minute in everything for one in minute),
        minutes_waiting_beside_idle=sum(
            bool(_pool(minute)) and any(m.waiting for m in minute) for minute in everything
        ),
        by_team={team: _hours(one.waiting for one in minutes.values()) for team, minutes in sorted(teams.items())},
        limits=tuple(
            LimitOutcome(
                limit,
                _hours(_served(minute, limit) for minute in everything),
                _hours(_served_whole(minute, limit) for minute in everything),
            )
            for limit in borrow_limits
        ),
    )


def _minutes(file: Path) -> dict[str, Minute]:
    with gzip.open(file, "rt", newline="") if file.suffix == ".gz" else file.open(newline="") as text:
        return {
            row["time"]: Minute(
                quota=int(row["total_gpu_num"]),
                running=int(row["running_gpu_num"]),
                waiting=int(row["pending_gpu_num"]),
                waiting_jobs=int(row["pending_gpujob_num"]),
                idle=int(row["idle_gpu_num"]),
            )
            for row in csv.DictReader(text)
        }


def _pool(minute: Iterable[Minute]) -> int:
    """Return what is idle in teams that have nothing waiting: nobody disputes that it could have been lent."""
    return sum(one.idle for one in minute if not one.waiting)


def _served(minute: list[Minute], limit: int) -> int:
    return min(_pool(minute), sum(min(one.waiting, one.quota * limit // 100) for one in minute))


def _served_whole(minute: list[Minute], limit: int) -> float:
    """Serve whole jobs, the smallest first."""
    pool, served = float(_pool(minute)), 0.0
    waiting = [one for one in minute if one.waiting_jobs and one.waiting]
    for one in sorted(waiting, key=lambda one: one.waiting / one.waiting_jobs):
        size = one.waiting / one.waiting_jobs
        jobs = min(one.waiting_jobs, int(min(pool, one.quota * limit // 100) // size))
        pool, served = pool - jobs * size, served + jobs * size
    return served


def _hours(gpus: Iterable[float]) -> float:
    return sum(gpus) / 60
