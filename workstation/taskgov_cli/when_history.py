"""From what estimates have their history: a trace, or the days of a record of work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskgov.estimates.requests import Arrival, Ran, Request
from taskgov.services.work_record import read_day
from taskgov.work.attempt import End
from taskgov.work.day import Day, joined
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from taskgov.work.attempt import Attempt


@dataclass(frozen=True, slots=True)
class History:
    """What ran and came before a moment, and when it was recorded. Moments are seconds of the snapshot's clock."""

    runs: tuple[Ran, ...]
    arrivals: tuple[Arrival, ...]
    measured: tuple[tuple[float, float], ...]
    source: str

    @property
    def until(self) -> float:
        """The moment up to which it goes; before all time without anything."""
        return max((end for _, end in self.measured), default=float("-inf"))


def read_history(path: Path, now: float) -> History:
    """Read a record of work (a folder with days, `*.jsonl.gz`), or a trace, whose end is taken for now.

    Raises `ValueError` for a damaged day and for a form that is not known.
    """
    days = sorted(path.rglob("*.jsonl.gz")) if path.is_dir() else [path] if path.name.endswith(".jsonl.gz") else []
    if days:
        return _of_record(joined(read_day(str(file), file.read_bytes()) for file in days), now)
    return _of_trace(path, now)


def _of_record(record: Day, now: float) -> History:
    attempts = [attempt for attempt in record.attempts if attempt.end is not End.UNSEEN]
    runs = tuple(
        Ran(_request(attempt), attempt.admitted.timestamp(), float(seconds), ended=attempt.end is End.FINISHED)
        for attempt in attempts
        if attempt.admitted is not None and (seconds := attempt.run_seconds) is not None
    )
    first = {attempt.uid: attempt for attempt in reversed(attempts)}
    arrivals = tuple(Arrival(_request(attempt), attempt.created.timestamp()) for attempt in first.values())
    spans = tuple((span.start.timestamp(), min(span.end.timestamp(), now)) for span in record.measured)
    return History(runs, arrivals, spans, f"record of {len(runs)} runs")


def _request(attempt: Attempt) -> Request:
    limit = None if attempt.max_seconds is None else float(attempt.max_seconds)
    return Request(attempt.team, attempt.accelerators, attempt.owner or "", limit)


def _of_trace(path: Path, now: float) -> History:
    try:
        trace = read_trace(path)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a history: {error}") from error
    start = now - trace.span
    runs = tuple(
        Ran(
            Request(job.team, job.gpus),
            start + job.arrival,
            min(job.run_time, trace.span - job.arrival),
            ended=job.arrival + job.run_time <= trace.span,
        )
        for job in trace.jobs
    )
    arrivals = tuple(Arrival(Request(job.team, job.gpus), start + job.arrival) for job in trace.jobs)
    return History(runs, arrivals, ((start, now),) if trace.jobs else (), f"trace of {len(runs)} jobs")
