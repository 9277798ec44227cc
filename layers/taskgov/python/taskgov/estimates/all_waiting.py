"""Estimate the start of every waiting job of a queue from one set of futures, within the limits stated below."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from taskgov.estimates import drawing, looks
from taskgov.estimates.enough import is_enough
from taskgov.estimates.kept import NO_ESTIMATES, Before
from taskgov.estimates.quantiles import estimate_of, quantile
from taskgov.futures import Job, Jobs, accepts
from taskgov.futures.counting import Count
from taskgov.scheduling.instants import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov.estimates.drawing import Together
    from taskgov.estimates.history import Basis
    from taskgov.estimates.queue_now import Present, Scene
    from taskgov.estimates.requests import Chance
    from taskgov.estimates.scenes import Queue
    from taskgov.futures.queues import Kind
    from taskgov.scheduling.instants import Instant

FUTURES: Final = 100
LEAST_FUTURES: Final = 20
"""With fewer futures there is no estimate: the time was too short, or the queue is too large."""
MOST_WAITING: Final = 500
"""Most jobs that get an estimate: highest priority first, then oldest first."""
MOST_PRESENT: Final = 5_000
"""A queue with more jobs is not simulated: one future alone may take too long."""
EARLY: Final = 0.1
MOST_BEFORE: Final = 3
"""Most running workloads that an estimate names as those whose end it depends on."""


def waiting_of(scene: Scene) -> list[int]:
    """Return the indexes of the jobs that wait for quota, in queue order.

    Jobs in a LocalQueue that is held, or that has no ClusterQueue or a held one, are left out: no quota starts them.
    """
    queues = {queue.name for queue in scene.setting.queues if queue.stop_policy == "None"}
    doors = scene.setting.doors
    lead = {
        (door.namespace, door.name) for door in doors if door.cluster_queue in queues and door.stop_policy == "None"
    }
    waiting = [
        place
        for place, job in enumerate(scene.present)
        if job.held is None and (job.workload.namespace, job.workload.queue) in lead
    ]
    works = [job.workload for job in scene.present]
    return sorted(waiting, key=lambda place: (-works[place].priority, works[place].created, works[place].key))


def digest_of(queue: Queue) -> str:
    """Return a digest of all that decides which job starts next, except time: waiting and running jobs, and quotas."""
    standing = sorted(
        (uid, repr(_what_decides(job, queue.scene.now)))
        for uid, job in zip(queue.uids, queue.scene.present, strict=True)
    )
    setting = queue.scene.setting
    parts = standing, queue.blocked, setting.queues, setting.doors, setting.flavors, setting.cohorts
    return sha256(repr(parts).encode()).hexdigest()[:32]


def _what_decides(job: Present, now: Instant) -> tuple[object, ...]:
    work = job.workload
    since: Instant | str | None = None
    if job.held is not None:  # while an admission check is pending, it is always now
        since = job.held.since if job.held.since < now else "reserved"
    return work.priority, work.queue, work.pod_sets, job.request.gpus, job.request.limit, since


def needs_exact_model(scene: Scene) -> tuple[str, ...]:
    """Return why the futures of a scene need the exact model. Arrivals are plain jobs and never need it."""
    return accepts(scene.setting, _jobs(scene))


def _jobs(scene: Scene) -> Jobs:
    return Jobs(Job(job.workload, scene.now, SECOND, job.held) for job in scene.present)


def draw_all(
    queue: Queue, basis: Basis, chance: Chance, goes_on: Callable[[], bool], count: int = FUTURES
) -> looks.Drawing:
    """Return the estimates of all jobs that wait for quota. `goes_on` returns whether there is time for another future.

    The notes of the result name what is left out, and why.
    """
    scene, waiting = queue.scene, waiting_of(queue.scene)
    lacks = basis.lacks or _too_much(scene)
    if lacks or not waiting:
        return looks.Drawing(waits=len(waiting), notes=(f"{NO_ESTIMATES}{lacks}",) if lacks and waiting else ())
    never = {place for place in _never_admitted(scene) if scene.present[place].held is None}
    blocked = frozenset(queue.blocked)
    never.update(place for place, key in enumerate(queue.keys) if key in blocked)
    watched = [place for place in waiting if place not in never]
    notes = list(queue.notes)
    if len(watched) < len(waiting):
        notes.append(
            f"{len(waiting) - len(watched)} of {len(waiting)} waiting have no estimate: no free quota starts them"
        )
    if len(watched) > MOST_WAITING:
        notes.append(
            f"{len(watched) - MOST_WAITING} of {len(watched)} waiting have no estimate: at most {MOST_WAITING} get one"
        )
    if not watched:
        return looks.Drawing(waits=len(waiting), notes=tuple(notes))
    if not basis.past.is_representative:
        notes.append("only the earliest starts are known: less than a day of the last 14 was measured")
    found = drawing.waits_together(
        scene,
        watched[:MOST_WAITING],
        basis.run_times,
        basis.past,
        chance,
        drawing.Drawing(count, player=drawing.fast),
        goes_on,
    )
    fewest = min((len(waits) for waits in found.waits.values() if not is_enough(waits)), default=LEAST_FUTURES)
    if fewest < LEAST_FUTURES:
        lacks = f"{fewest} futures were played in the time there is, and it takes {LEAST_FUTURES}"
        return looks.Drawing(futures=found.futures, waits=len(waiting), notes=(f"{NO_ESTIMATES}{lacks}",))
    drawn = tuple(_drawn(queue, found, place) for place in watched[:MOST_WAITING])
    return looks.Drawing(drawn, found.futures, len(waiting), tuple(notes), basis.past.is_representative)


def _never_admitted(scene: Scene) -> set[int]:
    """Return the jobs that request more than their queue can ever have, or that no flavor suits."""
    jobs = _jobs(scene)
    kinds = zip(jobs.index, Count(scene.setting, jobs).kind_of, strict=True)
    return {place for place, kind in kinds if kind.asks is None and not _may_fit(kind)}


def _may_fit(kind: Kind) -> bool:
    """Return whether pods with a choice of flavors could ever have what they request, each search by itself."""
    potential = kind.queue.potential
    return bool(kind.searches) and all(
        any(
            option is not None and all(amount <= potential[place] for place, amount in option)
            for option in search.options
        )
        for search in kind.searches
    )


def _too_much(scene: Scene) -> str:
    if len(scene.present) > MOST_PRESENT:
        return f"{len(scene.present)} workloads are in the cluster; estimates are made for at most {MOST_PRESENT}"
    reasons = needs_exact_model(scene)
    return f"the exact model is needed ({', '.join(reasons[:3])}); `taskgov when` computes them" if reasons else ""


def _drawn(queue: Queue, found: Together, place: int) -> looks.Drawn:
    waits = found.waits[place]
    ends = found.after[place].most_common(MOST_BEFORE)
    before = (Before(queue.uids[job], queue.scene.present[job].request.team, futures) for job, futures in ends)
    team = queue.scene.present[place].request.team
    return looks.Drawn(queue.uids[place], team, quantile(waits, EARLY), estimate_of(waits), len(waits), tuple(before))
