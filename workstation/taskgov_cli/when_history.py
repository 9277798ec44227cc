"""The history that a command's estimates use: a trace, the days of a record of work, or a stack's record."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from taskgov.estimates.batches import sized
from taskgov.estimates.history import History, of_record
from taskgov.estimates.requests import Arrival, Ran, Request, of_another_batch
from taskgov.services.estimate_starts import READ_DAYS
from taskgov.services.work_record import RecordedWork, read_day
from taskgov.work.day import joined
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from taskgov.ports import DocumentStore
    from taskgov.snapshot.model import Snapshot


def read_history(path: Path, now: float) -> History:
    """Read a record of work (a folder with days, `*.jsonl.gz`), or a trace, whose end is taken for now.

    Raises `ValueError` for a damaged day, for days in more than one folder, and for a form that is not known.
    """
    days = sorted(path.rglob("*.jsonl.gz")) if path.is_dir() else [path] if path.name.endswith(".jsonl.gz") else []
    folders = sorted({str(file.parent) for file in days})
    if len(folders) > 1:
        some = ", ".join(folders[:3])
        raise ValueError(f"{path} has the days of {len(folders)} clusters or more, in {some}: give the folder of one")
    if days:
        record = joined(read_day(str(file), file.read_bytes()) for file in days)
        return of_record(record.attempts, record.measured, now)
    return _of_trace(path, now)


def kept_history(documents: DocumentStore, known: Snapshot) -> History:
    """Return the history that a stack keeps of a cluster. Raises GovernanceError."""
    now = known.taken_at
    done = RecordedWork(documents).between(known.cluster.name, now - READ_DAYS, now + timedelta(days=1))
    return of_record(done.ended, done.measured, now.timestamp(), done.still)


def _of_trace(path: Path, now: float) -> History:
    try:
        trace = read_trace(path)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a history: {error}") from error
    start = now - trace.span
    requests = sized([(Request(job.team, job.gpus), start + job.arrival) for job in trace.jobs])
    runs = tuple(
        Ran(
            request,
            start + job.arrival,
            min(job.run_time, trace.span - job.arrival),
            ended=job.arrival + job.run_time <= trace.span,
        )
        for job, request in zip(trace.jobs, requests, strict=True)
    )
    arrivals = tuple(
        Arrival(of_another_batch(request), start + job.arrival)
        for job, request in zip(trace.jobs, requests, strict=True)
    )
    return History(runs, arrivals, ((start, now),) if trace.jobs else (), f"trace of {len(runs)} jobs")
