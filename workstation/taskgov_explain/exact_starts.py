"""The same question as `taskgov.futures.replay`, answered by the exact model: for what the fast replay cannot do.

Both take one `Setting` and the same `Jobs`, so that their answers can be compared; `starts` chooses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.futures import Starts, Stay, accepts, obstacles, replay
from taskgov.scheduling.instants import timestamp
from taskgov.scheduling.kueue_model import KueueModel
from taskgov.scheduling.writing import admission_object
from taskgov_explain.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from taskgov.futures import Change, Held, Jobs, Setting
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects_in import Value
    from taskgov_explain.timeline import Timeline


def starts(
    setting: Setting,
    jobs: Jobs,
    until: Instant | None = None,
    changes: Sequence[Change] = (),
    world: KueueModel | None = None,
) -> Starts:
    """Return who starts when: by the fast replay where it can, else by the exact model.

    Where setting and jobs are those of a `world`, the exact model continues from that; it is not changed.
    """
    if not accepts(setting, jobs, changes) and not (world is not None and obstacles(world)):
        found = replay(setting, jobs, until, changes)
        if not found.loop:
            return found
    return exact_starts(setting, jobs, until, changes, None if world is None else world.copy())


def exact_starts(
    setting: Setting,
    jobs: Jobs,
    until: Instant | None = None,
    changes: Sequence[Change] = (),
    world: KueueModel | None = None,
) -> Starts:
    """Return who starts when, by the exact model; from a `world` as it stands, where its state is more than the jobs'.

    The world is changed.
    """
    simulation = Simulation(
        _world(setting, jobs) if world is None else world, requeue_batch=setting.batch, keep_finished=False
    )
    for change in changes:
        for queue in change.queues:
            simulation.change(queue, change.at)
    for job in jobs.jobs:
        simulation.arrive(job.workload, job.arrival, job.run_time, job.remaining)
    return _starts(simulation.run(until), jobs)


def _world(setting: Setting, jobs: Jobs) -> KueueModel:
    """Return the model of a setting, in which those run who hold quota at the beginning."""
    world = KueueModel(setting.config)
    for name, labels in setting.namespaces.items():
        world.put_namespace(name, labels)
    values: tuple[Value, ...] = (*setting.flavors, *setting.cohorts, *setting.queues, *setting.doors)
    for value in values:
        world.put(value)
    for job in jobs.jobs:
        if job.held is not None:
            world.submit(job.workload, _status(job.held))
    return world


def _status(held: Held) -> Mapping[str, Any]:
    since = timestamp(held.since)
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": since}
        for kind in ("QuotaReserved", "Admitted")
    ]
    return {"admission": admission_object(held.admission), "conditions": conditions}


def _starts(timeline: Timeline, jobs: Jobs) -> Starts:
    index = {job.workload.key: number for number, job in enumerate(jobs.jobs)}
    since = {number: job.arrival for number, job in enumerate(jobs.jobs) if job.held is not None}
    first = dict(since)
    stays = []
    for happening in timeline.happenings:
        job = index[happening.workload]
        if happening.kind == "admitted":
            since[job] = happening.at
            continue
        stays.append(Stay(job, since.pop(job), happening.at, preempted=True))
        first.pop(job, None)
    for number, start in since.items():
        left = jobs.jobs[number].remaining if number in first else None
        run_time = jobs.jobs[number].run_time if left is None else left
        over = start + run_time <= timeline.end
        stays.append(Stay(number, start, start + run_time if over else None, preempted=False))
    loop = () if timeline.loop is None else tuple(sorted(index[key] for key in timeline.loop.workloads))
    return Starts(stays, timeline.end, loop)
