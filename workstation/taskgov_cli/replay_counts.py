"""How much waiting could lending have removed? From counts of GPUs by minute, as the Helios cluster published them.

There are no jobs in such counts, so nothing is simulated: minute by minute, the GPUs that wait are held against the
GPUs that are idle in teams which have nothing waiting, within a borrow limit. Two readings bound the truth: GPU by GPU
(a job may be served in part), and whole jobs of the team's mean waiting size. Both ignore where the idle GPUs are, and
that a job served earlier would also have ended earlier.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from taskgov_cli.trace_rows import converted, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from taskgov_cli.trace_rows import Row

COLUMNS: Final = frozenset(
    {"time", "total_gpu_num", "running_gpu_num", "pending_gpu_num", "pending_gpujob_num", "idle_gpu_num"}
)
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

    borrow_limit: int | None
    """Percent of the own quota, of every team; None where each team has its own."""
    served_gpu_hours: float
    """GPU by GPU: an upper bound."""
    served_whole_jobs_gpu_hours: float
    """In whole jobs of the mean waiting size."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How one team shares: what it may borrow, in percent of its own quota, and if it lends."""

    borrow_percent: int
    lends: bool = True


@dataclass(frozen=True, slots=True)
class TeamCounts:
    """One team's counts, in GPU-hours; `quota` is the most that it had, in GPUs."""

    team: str
    quota: int
    running: float
    idle: float
    waiting: float


@dataclass(frozen=True, slots=True)
class Hour:
    """The mean of one hour over all teams, in GPUs."""

    at: str
    running: float
    idle: float
    waiting: float


@dataclass(frozen=True, slots=True)
class CountsOutcome:
    """What the counts say, in GPU-hours."""

    name: str
    teams: int
    minutes: int
    gpus: int
    running: float
    idle: float
    waiting: float
    minutes_waiting_beside_idle: int
    by_team: tuple[TeamCounts, ...]
    limits: tuple[LimitOutcome, ...]
    by_policy: LimitOutcome | None
    """What the sharing of a policy document could have done, where one is given."""
    hours: tuple[Hour, ...]


def is_counts(path: Path) -> bool:
    """Return whether a folder holds one file of counts for each team."""
    return path.is_dir() and any(path.glob("vc*.csv*"))


def read_counts(folder: Path, tell: Callable[[float], None] = lambda _: None) -> dict[str, dict[str, Minute]]:
    """Return the minutes of every team: team -> time -> counts."""
    files = sorted(folder.glob("vc*.csv*"))
    teams = {}
    for number, file in enumerate(files, 1):
        teams[file.name.partition(".")[0]] = _minutes(file)
        tell(number / len(files))
    return teams


def judge_counts(
    name: str,
    teams: Mapping[str, Mapping[str, Minute]],
    borrow_limits: Iterable[int],
    policy: Mapping[str, Sharing] | None = None,
) -> CountsOutcome:
    """Return what lending within each of these borrow limits could have served, and what a policy's sharing could."""
    by_time: dict[str, dict[str, Minute]] = defaultdict(dict)
    for team, minutes in teams.items():
        for time, minute in minutes.items():
            by_time[time][team] = minute
    everything = list(by_time.values())
    alike = dict.fromkeys(teams, Sharing(NO_LIMIT))
    return CountsOutcome(
        name=name,
        teams=len(teams),
        minutes=len(everything),
        gpus=max(sum(team.quota for team in minute.values()) for minute in everything),
        running=_hours(team.running for minute in everything for team in minute.values()),
        idle=_hours(team.idle for minute in everything for team in minute.values()),
        waiting=_hours(team.waiting for minute in everything for team in minute.values()),
        minutes_waiting_beside_idle=sum(
            bool(_pool(minute, alike)) and any(m.waiting for m in minute.values()) for minute in everything
        ),
        by_team=tuple(_team(team, minutes.values()) for team, minutes in sorted(teams.items())),
        limits=tuple(_limited(everything, limit, dict.fromkeys(teams, Sharing(limit))) for limit in borrow_limits),
        by_policy=None if policy is None else _limited(everything, None, policy),
        hours=tuple(_by_hour(by_time)),
    )


def _team(team: str, minutes: Collection[Minute]) -> TeamCounts:
    return TeamCounts(
        team,
        max(team.quota for team in minutes),
        _hours(team.running for team in minutes),
        _hours(team.idle for team in minutes),
        _hours(team.waiting for team in minutes),
    )


def _limited(
    everything: Iterable[Mapping[str, Minute]], limit: int | None, rules: Mapping[str, Sharing]
) -> LimitOutcome:
    minutes = list(everything)
    return LimitOutcome(
        limit,
        _hours(_served(minute, rules) for minute in minutes),
        _hours(_served_whole(minute, rules) for minute in minutes),
    )


def _by_hour(by_time: Mapping[str, Mapping[str, Minute]]) -> Iterator[Hour]:
    """Give the means of the hours, in order; a time is written as `2020-05-01 00:00:00`."""
    for hour, times in groupby(sorted(by_time), key=lambda time: time[:13]):
        minutes = [by_time[time].values() for time in times]
        sums = (
            sum(getattr(team_minute, name) for minute in minutes for team_minute in minute)
            for name in ("running", "idle", "waiting")
        )
        yield Hour(hour, *(total / len(minutes) for total in sums))


def _minutes(file: Path) -> dict[str, Minute]:
    with gzip.open(file, "rt", newline="") if file.suffix == ".gz" else file.open(newline="") as opened:
        try:
            return _of_rows(csv.DictReader(opened))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{file} is not gzip, or is cut off: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is not CSV in UTF-8: {error.reason}") from error
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error


def _of_rows(rows: csv.DictReader[str]) -> dict[str, Minute]:
    if missing := sorted(COLUMNS - set(rows.fieldnames or ())):
        raise ValueError(f"columns are missing: {', '.join(missing)}")
    if not (minutes := dict(converted(rows, _minute))):
        raise ValueError("it has no rows")
    return minutes


def _minute(row: Row) -> tuple[str, Minute]:
    return text(row, "time"), Minute(
        quota=whole(row, "total_gpu_num"),
        running=whole(row, "running_gpu_num"),
        waiting=whole(row, "pending_gpu_num"),
        waiting_jobs=whole(row, "pending_gpujob_num"),
        idle=whole(row, "idle_gpu_num"),
    )


def _pool(minute: Mapping[str, Minute], rules: Mapping[str, Sharing]) -> int:
    """Return what is idle in lending teams that have nothing waiting: nobody disputes that it could have been lent."""
    return sum(
        team_minute.idle for team, team_minute in minute.items() if not team_minute.waiting and rules[team].lends
    )


def _served(minute: Mapping[str, Minute], rules: Mapping[str, Sharing]) -> int:
    wanted = sum(min(team_minute.waiting, _limit(team_minute, rules[team])) for team, team_minute in minute.items())
    return min(_pool(minute, rules), wanted)


def _served_whole(minute: Mapping[str, Minute], rules: Mapping[str, Sharing]) -> float:
    """Serve whole jobs, the smallest first."""
    pool, served = float(_pool(minute, rules)), 0.0
    waiting = [
        (team_minute, rules[team])
        for team, team_minute in minute.items()
        if team_minute.waiting_jobs and team_minute.waiting
    ]
    for demand, rule in sorted(waiting, key=lambda pair: pair[0].waiting / pair[0].waiting_jobs):
        size = demand.waiting / demand.waiting_jobs
        jobs = min(demand.waiting_jobs, int(min(pool, _limit(demand, rule)) // size))
        pool, served = pool - jobs * size, served + jobs * size
    return served


def _limit(team_minute: Minute, rule: Sharing) -> int:
    return team_minute.quota * rule.borrow_percent // 100


def _hours(gpus: Iterable[float]) -> float:
    return sum(gpus) / 60
