"""What did a replay come to? Waiting, work lost to preemption, and who is worse off than under something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.advice.past import DAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov.advice.past import Piece

NEVER: Final = 14 * DAY
"""What a job counts that never starts, and the most that any job counts."""
WORSE_BY: Final = 1.05
WORSE_FROM: Final = 180.0
"""A team is worse off when its mean wait is 5 % and three minutes longer: less is chance."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A job's time with quota, by its place among the pieces, in seconds; a stay that was preempted is lost work."""

    piece: int
    start: float
    end: float
    preempted: bool


@dataclass(frozen=True, slots=True)
class TeamResult:
    """Jobs of a team, and their mean wait in seconds."""

    jobs: int
    mean_wait: float


@dataclass(frozen=True, slots=True)
class Result:
    """What a replay came to. Waits are in seconds: all time in the queue, again after a preemption too."""

    jobs: int
    mean_wait: float
    p95_wait: float
    never_started: int
    preemptions: int
    lost_gpu_hours: float
    work_gpu_hours: float
    teams: Mapping[str, TeamResult]
    loops: bool = False
    """Work preempted itself without end: the replay ends there, and what comes after it never starts."""

    @property
    def lost(self) -> float:
        """Part of the work that preemption threw away."""
        return self.lost_gpu_hours / self.work_gpu_hours if self.work_gpu_hours else 0.0

    def worse_than(self, other: Result) -> tuple[str, ...]:
        """Return the teams that wait noticeably longer than under another setting."""
        return tuple(
            team
            for team, own in sorted(self.teams.items())
            if own.mean_wait > WORSE_BY * other.teams[team].mean_wait + WORSE_FROM
        )


def judge(pieces: Sequence[Piece], stays: Iterable[Stay], *, loops: bool = False) -> Result:
    """Return what stays of the pieces came to; a job without any never started."""
    waits: dict[int, float] = {}
    since: dict[int, float] = {}
    lost = preemptions = 0.0
    for stay in sorted(stays, key=lambda stay: stay.start):
        place = stay.piece
        waits[place] = waits.get(place, 0.0) + stay.start - since.get(place, pieces[place].arrival)
        since[place] = stay.end
        if stay.preempted:
            preemptions += 1
            lost += pieces[place].gpus * (stay.end - stay.start)
    # Moments are rounded to microseconds on the way: nobody starts before arriving.
    counted = [min(max(waits.get(place, NEVER), 0.0), NEVER) for place in range(len(pieces))]
    by_team: dict[str, list[float]] = {}
    for piece, wait in zip(pieces, counted, strict=True):
        by_team.setdefault(piece.team, []).append(wait)
    ordered = sorted(counted)
    return Result(
        jobs=len(pieces),
        mean_wait=sum(counted) / len(counted) if counted else 0.0,
        p95_wait=ordered[-(-95 * len(ordered) // 100) - 1] if ordered else 0.0,
        never_started=len(pieces) - len(waits),
        preemptions=round(preemptions),
        lost_gpu_hours=lost / 3600,
        work_gpu_hours=sum(piece.gpus * piece.run_time for piece in pieces) / 3600,
        teams={team: TeamResult(len(own), sum(own) / len(own)) for team, own in sorted(by_team.items())},
        loops=loops,
    )
