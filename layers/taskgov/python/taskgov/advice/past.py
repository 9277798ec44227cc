"""The jobs of the past, and what each team used: the input of quota rules.

Times are seconds since the history began. A view as of some moment has only what was known then: a job that still ran
counts with the time that it had run.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY


class Piece(NamedTuple):
    """A job: team, arrival and run time in seconds, GPUs and priority."""

    team: str
    arrival: float
    run_time: float
    gpus: int
    priority: int = 0


@dataclass(frozen=True)
class Past:
    """The jobs of a history, by arrival. The history is known up to `end`."""

    pieces: tuple[Piece, ...]
    end: float

    @classmethod
    def of(cls, pieces: Iterable[Piece], end: float | None = None) -> Past:
        """Sort the jobs. The history ends with the last arrival unless `end` is given."""
        ordered = tuple(sorted(pieces, key=lambda piece: (piece.arrival, piece)))
        return cls(ordered, end if end is not None else ordered[-1].arrival if ordered else 0.0)

    @cached_property
    def teams(self) -> tuple[str, ...]:
        """The teams of the jobs, by name."""
        return tuple(sorted({piece.team for piece in self.pieces}))

    @cached_property
    def _arrivals(self) -> list[float]:
        return [piece.arrival for piece in self.pieces]

    def between(self, first: float, last: float) -> tuple[Piece, ...]:
        """Return the jobs that arrived from `first` up to, but not including, `last`."""
        return self.pieces[bisect_left(self._arrivals, first) : bisect_left(self._arrivals, last)]

    def seen(self, first: float, last: float) -> tuple[Piece, ...]:
        """Return the jobs that arrived in this time, as known at its end: run times are cut at `last`.

        Example:
            >>> Past.of([Piece("a", 0, 100, 1), Piece("a", 50, 100, 1)]).seen(0, 120)
            (Piece(team='a', arrival=0, run_time=100, gpus=1, priority=0), \
Piece(team='a', arrival=50, run_time=70, gpus=1, priority=0))

        """
        return tuple(
            piece if piece.arrival + piece.run_time <= last else piece._replace(run_time=last - piece.arrival)
            for piece in self.between(first, last)
        )


@dataclass(frozen=True, slots=True)
class Use:
    """What a team requested in a period."""

    gpu_seconds: float = 0.0
    peak: float = 0.0
    """95th percentile of the hourly means of GPUs that the team would have held without waiting."""


def uses(pieces: Sequence[Piece], first: float, last: float) -> dict[str, Use]:
    """Return what each team requested in a period. Each job counts from its arrival, as if it had not waited."""
    hours = max(1, round((last - first) / HOUR))
    held: dict[str, list[float]] = {}
    total: dict[str, float] = {}
    for team, arrival, run_time, gpus, _ in pieces:
        start, end = max(arrival, first) - first, min(arrival + run_time, last) - first
        if end <= start:
            continue
        total[team] = total.get(team, 0.0) + gpus * (end - start)
        means = held.setdefault(team, [0.0] * hours)
        for hour in range(int(start // HOUR), min(int(end // HOUR), hours - 1) + 1):
            means[hour] += gpus * (min(end, (hour + 1) * HOUR) - max(start, hour * HOUR)) / HOUR
    return {team: Use(total[team], _percentile(held[team])) for team in sorted(total)}


def _percentile(values: list[float]) -> float:
    """Return the 95th percentile: the lowest value that 95 % of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-95 * len(ordered) // 100) - 1)]
