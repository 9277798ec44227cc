"""What came, when, from whom: GPU jobs out of public trace formats, or out of one's own series of snapshots.

| format | recognised by | team | note |
| --- | --- | --- | --- |
| Philly (2017) | columns `timestamp,duration,num_gpus,...,cluster` | virtual cluster | times are local to the cluster |
| openb (Alibaba, 2023) | columns `name,...,gpu_milli,...,qos` | QoS class | a part of a GPU counts as a whole one |
| snapshot series | a folder of snapshots | namespace's team | runs from admission to its end or the last snapshot |
| record of work | a folder of days, `*.jsonl.gz` | the team on record | runs as long as its longest attempt |

Jobs without GPUs or without a run time are left out, and counted.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from taskgov.advice.recorded import pieces_of
from taskgov.kueue.named import named
from taskgov.scheduling.instants import SECOND, instant
from taskgov.scheduling.reading import read_workload
from taskgov.scheduling.status_reading import read_conditions
from taskgov.usage.amounts import accelerators
from taskgov.work import day as days
from taskgov_cli.snapshots import parsed
from taskgov_cli.trace_rows import converted, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from taskgov.snapshot.model import KubernetesObject
    from taskgov_cli.trace_rows import Row


@dataclass(frozen=True, slots=True)
class Job:
    """One job: when it came and how long it ran, in seconds since the first one came."""

    team: str
    arrival: float
    run_time: float
    gpus: int
    priority: int = 0
    """Only the record of work has one."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs by arrival; `skipped` were left out."""

    name: str
    jobs: tuple[Job, ...]
    skipped: int
    unmeasured: float = 0.0
    """Seconds that a record of work does not cover, between its first and its last moment."""
    instance_types: tuple[str, ...] = ()
    """Types on which jobs of a record of work had accelerators; other traces do not name any."""

    @property
    def span(self) -> float:
        """Seconds from the first arrival to the last."""
        return self.jobs[-1].arrival if self.jobs else 0.0

    def gpu_hours(self) -> dict[str, float]:
        """Return what each team's jobs need, by team."""
        hours: dict[str, float] = {}
        for job in self.jobs:
            hours[job.team] = hours.get(job.team, 0.0) + job.gpus * job.run_time / 3600
        return dict(sorted(hours.items()))

    def between(self, first: float, last: float) -> Trace:
        """Return the jobs that came within a window, in seconds after the first one."""
        jobs = tuple(job for job in self.jobs if first <= job.arrival < last)
        return _trace(self.name, jobs, self.skipped)


def read_trace(path: Path, instance_type: str | None = None) -> Trace:
    """Read a trace. Raises `ValueError` for a form that is not known.

    Of a record of work, jobs on other instance types than the given one are left out.
    """
    if path.is_dir() and any(path.glob("*.jsonl.gz")):
        return _recorded(path, instance_type)
    if path.is_dir():
        return _trace(path.name, *_counted(_snapshot_jobs(path)))
    try:
        known = _of_csv(path)
    except csv.Error as error:
        raise ValueError(f"{path} is not CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not CSV in UTF-8: {error.reason}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if known is not None:
        return known
    raise ValueError(f"{path} has none of the known formats (Philly, openb, a folder of snapshots or of Helios counts)")


def _of_csv(path: Path) -> Trace | None:
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        columns = set(rows.fieldnames or ())
        if {"timestamp", "duration", "num_gpus", "cluster"} <= columns:
            return _trace(path.stem, *_counted(converted(rows, _philly)))
        if {"num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time"} <= columns:
            return _trace(path.stem, *_counted(converted(rows, _openb)))
    return None


def _trace(name: str, jobs: Iterable[Job], skipped: int) -> Trace:
    """Order jobs by arrival, and count time from the first one."""
    ordered = sorted(jobs, key=lambda job: (job.arrival, job.team, job.run_time, job.gpus))
    start = ordered[0].arrival if ordered else 0.0
    return Trace(name, tuple(replace(job, arrival=job.arrival - start) for job in ordered), skipped)


def _counted(jobs: Iterable[Job]) -> tuple[list[Job], int]:
    everything = list(jobs)
    kept = [job for job in everything if job.gpus > 0 and job.run_time > 0]
    return kept, len(everything) - len(kept)


def _philly(row: Row) -> Job:
    written = text(row, "timestamp")
    try:
        arrival = datetime.fromisoformat(f"{written}+00:00").timestamp()
    except ValueError as error:
        raise ValueError(f"timestamp is {written[:40]!r}: it is written as 2017-10-01 00:00:00") from error
    return Job(text(row, "cluster"), arrival, number(row, "duration"), whole(row, "num_gpus"))


def _openb(row: Row) -> Job:
    created = number(row, "creation_time")
    started = number(row, "scheduled_time") if row.get("scheduled_time") else created
    ended = number(row, "deletion_time") if row["deletion_time"] else started
    return Job(row["qos"] or "none", created, ended - started, whole(row, "num_gpu") if row["num_gpu"] else 0)


def _snapshot_jobs(folder: Path) -> Iterator[Job]:
    """Give the jobs that a series of snapshots saw, each as it was seen last."""
    last: dict[str, tuple[KubernetesObject, float]] = {}
    for file in sorted(folder.glob("*.json")):
        snapshot, _ = parsed(file)
        for item in snapshot.kueue.workloads:
            last[named(item).key] = (item, instant(snapshot.taken_at) / SECOND)
    if not last:
        raise ValueError(f"{folder} has no snapshots with workloads (*.json, see `taskgov snapshot`)")
    for item, seen in last.values():
        yield _snapshot_job(item, seen)


def _snapshot_job(item: KubernetesObject, seen: float) -> Job:
    workload, conditions = read_workload(item, {}), read_conditions(item.get("status") or {})
    admitted, finished = conditions.get("Admitted"), conditions.get("Finished")
    end = finished.since / SECOND if finished and finished.status else seen
    ran = end - admitted.since / SECOND if admitted and admitted.status else 0.0
    asked: dict[str, int] = {}
    for pods in workload.pod_sets:
        for resource, amount in pods.requests:
            asked[resource] = asked.get(resource, 0) + pods.count * amount
    return Job(named(item).team, workload.created / SECOND, ran, accelerators(asked))


def _recorded(folder: Path, instance_type: str | None) -> Trace:
    """Read a record of work."""
    record = days.joined(_days(folder))
    jobs = (Job(*piece) for piece in pieces_of(record.attempts, instance_type))
    types = {attempt.instance_type for attempt in record.attempts if attempt.accelerators and attempt.instance_type}
    trace = replace(_trace(folder.name, *_counted(jobs)), instance_types=tuple(sorted(types)))
    if not record.measured:
        return trace
    lasted = (record.measured[-1].end - record.measured[0].start).total_seconds()
    return replace(trace, unmeasured=lasted - sum(span.seconds for span in record.measured))


def _days(folder: Path) -> Iterator[days.Day]:
    for file in sorted(folder.glob("*.jsonl.gz")):
        try:
            yield days.from_bytes(file.read_bytes())
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
