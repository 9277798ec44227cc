"""Evaluate a replay: waits, work lost to preemption, and teams that are worse off than under other settings."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf
from typing import TYPE_CHECKING, Final

from taskgov.advice.past import DAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov.advice.past import Piece

NEVER: Final = 14 * DAY
"""Wait of a job that never starts, or not again after a preemption, and the most for any job, in seconds."""
NOT_STARTED: Final = inf
WORSE_BY: Final = 1.05
WORSE_FROM: Final = 180.0
"""A team is worse off if its mean wait is longer by 5 % plus three minutes. Smaller differences are noise."""


Row = tuple[int, float, float | None, bool]
"""One time that a job holds quota: its index, the start, the end (None: it still runs), and whether it was preempted.

A preempted stay is lost work.
"""


@dataclass(frozen=True, slots=True)
class TeamResult:
    """Number of a team's jobs, and their mean wait in seconds."""

    jobs: int
    mean_wait: float


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a replay. Waits are in seconds, and include the time in the queue after a preemption."""

    jobs: int
    mean_wait: float
    p95_wait: float
    never_started: int
    preemptions: int
    lost_gpu_hours: float
    work_gpu_hours: float
    teams: Mapping[str, TeamResult]
    loops: bool = False
    """Jobs preempted each other without end. The replay stops there, and later jobs count as never started."""

    @property
    def lost(self) -> float:
        """The part of the work that preemption lost."""
        return self.lost_gpu_hours / self.work_gpu_hours if self.work_gpu_hours else 0.0

    def worse_than(self, other: Result) -> tuple[str, ...]:
        """Return the teams that wait noticeably longer than under another setting."""
        return tuple(
            team
            for team, own in sorted(self.teams.items())
            if own.mean_wait > WORSE_BY * other.teams[team].mean_wait + WORSE_FROM
        )


def judge(pieces: Sequence[Piece], stays: Iterable[Row], *, unit: float = 1.0, loops: bool = False) -> Result:
    """Return the result of a replay, given the stays of its jobs. A job without a stay never started.

    Stays of one job are in the order of time. Their times are in seconds multiplied by `unit`.
    """
    since = [piece.arrival for piece in pieces]
    waits = [NOT_STARTED] * len(pieces)
    lost: list[float] = []
    sent_away: set[int] = set()
    for place, started, ended, preempted in stays:
        start, before = started / unit, waits[place]
        waits[place] = (0.0 if before is NOT_STARTED else before) + start - since[place]
        if preempted and ended is not None:
            since[place] = end = ended / unit
            lost.append(pieces[place].gpus * (end - start))
            sent_away.add(place)
        elif place in sent_away:
            sent_away.remove(place)
    for place in sent_away:
        waits[place] = NEVER
    counted: list[float] = []
    by_team: dict[str, list[float]] = {}
    for piece, waited in zip(pieces, waits, strict=True):
        # Times were rounded to microseconds, so a start can be slightly before its arrival.
        wait = NEVER if waited > NEVER else 0.0 if waited < 0 else waited
        counted.append(wait)
        by_team.setdefault(piece.team, []).append(wait)
    ordered = sorted(counted)
    return Result(
        jobs=len(pieces),
        mean_wait=sum(counted) / len(counted) if counted else 0.0,
        p95_wait=ordered[-(-95 * len(ordered) // 100) - 1] if ordered else 0.0,
        never_started=sum(waited is NOT_STARTED for waited in waits),
        preemptions=len(lost),
        lost_gpu_hours=fsum(lost) / 3600,
        work_gpu_hours=sum(piece.gpus * piece.run_time for piece in pieces) / 3600,
        teams={team: TeamResult(len(own), sum(own) / len(own)) for team, own in sorted(by_team.items())},
        loops=loops,
    )
