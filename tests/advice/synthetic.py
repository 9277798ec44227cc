"""Made-up histories whose best advice is known: each fact about them stands in its function."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from taskgov.advice.advising import Adviser
from taskgov.advice.past import DAY, HOUR, Past, Piece
from taskgov.advice.playing import Player
from taskgov.advice.today import TeamToday, Today
from taskgov.quantities import GPU
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.day import KEY, Day, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

WEEKS = 6
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
"""When histories begin."""


def history(draw: Callable[[random.Random], Iterable[Piece]], seed: int = 7) -> Past:
    return Past.of(draw(random.Random(seed)), WEEKS * 7 * DAY)  # noqa: S311 -- the same each time, no secret


def steady(chance: random.Random, team: str, gpus: float, hours: float = 2.0, size: int = 1) -> Iterator[Piece]:
    """Give jobs that would hold so many GPUs on average, all the time."""
    at = 0.0
    while at < WEEKS * 7 * DAY:
        at += chance.expovariate(gpus / size) * hours * HOUR
        yield Piece(team, at, chance.uniform(0.5, 1.5) * hours * HOUR, size)


def by_clock(chance: random.Random, team: str, gpus: int, first: int, last: int) -> Iterator[Piece]:
    """Give jobs that hold so many GPUs between two hours of each day, and nothing else."""
    for day in range(WEEKS * 7):
        for hour in range(first, last, 2):
            for _ in range(gpus):
                yield Piece(team, day * DAY + hour * HOUR + chance.uniform(0, HOUR / 4), 1.6 * HOUR, 1)


def two_teams() -> Past:
    """Return a history in which team-a's work comes in the morning, and team-b's all day."""
    return history(lambda chance: [*by_clock(chance, "team-a", 6, 8, 14), *steady(chance, "team-b", 0.5)])


def written(past: Past, file: Path) -> Path:
    """Write a history as a trace in Philly's form."""
    rows = [
        f"{MONDAY + timedelta(seconds=round(piece.arrival)):%F %T},{piece.run_time:.0f},{piece.gpus},0,{piece.team}"
        for piece in past.pieces
    ]
    file.write_text("\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *rows]) + "\n")
    return file


def recorded(past: Past, folder: Path, instance_type: str) -> Path:
    """Write a history as a record of work."""
    for key, body in with_record(past, MONDAY, instance_type).items():
        (folder / key.rpartition("/")[2]).write_bytes(body)
    return folder


def with_record(past: Past, begun: datetime, instance_type: str) -> dict[str, bytes]:
    """Return a record of work by key: a file for each day in which a job ended, started as soon as it came."""
    attempts = []
    for number, piece in enumerate(past.pieces):
        came = begun + timedelta(seconds=round(piece.arrival))
        ended = came + timedelta(seconds=round(piece.run_time))
        held = (Held(instance_type, GPU, piece.gpus),)
        attempts.append(
            Attempt(
                uid=f"u{number}",
                number=1,
                team=piece.team,
                owner=None,
                stem="train",
                kind="Job",
                priority_class=None,
                priority=piece.priority,
                held=held,
                max_seconds=None,
                created=came,
                queued=came,
                admitted=came,
                ended=ended,
                end=End.FINISHED,
            )
        )
    days = Day(attempts=tuple(attempts)).by_day()
    return {KEY.format("ml-cluster", day): to_bytes(part, day) for day, part in days.items()}


def adviser(past: Past, *teams: TeamToday) -> Adviser:
    today = Today(teams)
    return Adviser(past, lambda _: today, Player(300), looks_back=2)


team = partial(TeamToday, weight=10)
