"""What is measured of estimates: the futures of a queue as long as estimates are made for."""

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from benchmarks.scale.objects import TYPES
from benchmarks.scale.rows import Figures, estimated, measured
from benchmarks.scale.serving import Cluster
from benchmarks.scale.world import JOBS, NAME, Size, write_world
from taskgov.estimates.all_waiting import MOST_PRESENT
from taskgov.quantities import GPU
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.day import KEY, Day, to_bytes
from taskgov.work.measured import Span

ROW: Final = "futures"
MOST: Final = MOST_PRESENT
DAYS: Final = 28
RUNS: Final = 20
"""Runs of each team in these days: of the length of a day or more, so that the queue moves slowly."""


def measure(workloads: int) -> Figures:
    """Estimate the starts of all who wait, with a record of work of four weeks."""
    teams = workloads // JOBS
    with tempfile.TemporaryDirectory(prefix="taskgov-bench-") as folder:
        write_world(Path(folder), Size(teams))
        cluster = Cluster.of(Path(folder))
        span = Span(cluster.clock.at - timedelta(days=DAYS), cluster.clock.at)
        for day, part in Day(tuple(_attempts(cluster, teams)), (span,)).by_day().items():
            cluster.documents.put(KEY.format(NAME, day.isoformat()), to_bytes(part, day), "application/gzip")
        return measured(lambda: estimated(cluster))


def _attempts(cluster: Cluster, teams: int) -> Iterator[Attempt]:
    for number in range(teams):
        for run in range(RUNS):
            began = cluster.clock.at - timedelta(days=run + 1, hours=number % 24)
            yield Attempt(
                uid=f"past-{number}-{run}",
                number=1,
                team=f"team-{number}",
                owner=None,
                stem="train",
                kind="PyTorchJob",
                priority_class=None,
                priority=0,
                held=(Held(TYPES[number % len(TYPES)], GPU, 8),),
                max_seconds=None,
                created=began,
                queued=began,
                admitted=began,
                ended=began + timedelta(hours=1 + run % 7),
                end=End.FINISHED,
            )
