"""Convert a `KueueModel` to a setting and jobs, so that both models replay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.futures.jobs import Held, Job, Jobs
from taskgov.futures.setting import Setting
from taskgov.scheduling.instants import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Workload
    from taskgov.scheduling.view import KueueModelView

    Lasts = Callable[[Workload, Instant | None], tuple[int, int | None]]
    """Says of a workload, and since when it holds quota, how long it runs and how long it still runs."""


def setting_of(model: KueueModelView, batch: int = SECOND) -> Setting:
    """Return the queues of a model, and what else decides who starts when."""
    specs = model.specs()
    return Setting(*specs, config=model.config, batch=batch)


def jobs_of(model: KueueModelView, at: Instant, lasts: Lasts) -> Jobs:
    """Return who runs or waits in a model at a moment; who is finished is left out."""
    jobs = []
    for standing in model.standings():
        run_time, remaining = lasts(standing.workload, standing.since)
        held = None
        if standing.admission is not None and standing.since is not None:
            held = Held(standing.admission, standing.since)
        jobs.append(Job(standing.workload, at, run_time, held, remaining))
    return Jobs(jobs)


def obstacles(model: KueueModelView) -> tuple[str, ...]:
    """Return what of a model's state a replay does not know: the exact model has to go on from there."""
    return tuple(dict.fromkeys(_obstacles(model)))


def _obstacles(model: KueueModelView) -> Iterator[str]:
    if any(model.pending(queue)[1] for queue in model.cluster_queues()):
        yield "a job waits out of line"
    for standing in model.standings():
        if standing.evicted:
            yield "a job is evicted and still holds quota"
        elif standing.barred:
            yield "a job may not queue now"
        elif standing.has_checks:
            yield "a job has admission checks"
        elif standing.admission is None and standing.queued_since != standing.workload.created:
            yield "a job has lost its place in line"
        elif standing.admission is not None and standing.since is None:
            yield "a job runs since an unknown moment"
