"""Build the tables of a scene: present jobs and possible arrivals, their rules, and their run times."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.arrivals import BLOCK, SPREAD, Coming
from taskgov.estimates.batches import BETWEEN, BETWEEN_ADDS, WITHIN, WITHIN_ADDS, batches
from taskgov.estimates.flat.tables import Came, Here, Lasting, Terms
from taskgov.estimates.requests import alike
from taskgov.futures import Job, Jobs, accepts
from taskgov.futures.counting import Count
from taskgov.scheduling.config import Strategy
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import ANY, LOWER_PRIORITY, NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskgov.estimates.arrivals import Past
    from taskgov.estimates.queue_now import Scene
    from taskgov.estimates.requests import Group, Request
    from taskgov.estimates.run_times import Prospect, RunTimes
    from taskgov.futures.queues import Kind, Queue, Tree

PLACE: Final = 0
"""The only flavor and resource."""


class Flat(NamedTuple):
    """The tables of some trees of a scene. Each tree has the scene indexes of its jobs."""

    terms: Terms
    here: Here
    jobs: Sequence[int]
    """Index in the scene of each job of `here`."""
    kinds: Mapping[Request, int]
    """The kind of each request that may arrive."""


def flat(scene: Scene, watched: Sequence[int], requests: Sequence[Request]) -> list[Flat] | None:
    """Return the trees of the watched jobs (indexes); None if only `taskgov.futures` can simulate them.

    `requests` are all that may arrive.
    """
    newcomers = [scene.newcomer(Coming(request, 0.0), place, scene.now) for place, request in enumerate(requests)]
    coming = [work for work in newcomers if work is not None]
    jobs = Jobs(
        [
            *(Job(job.workload, scene.now, SECOND, job.held) for job in scene.present),
            *(Job(work, scene.now, SECOND) for work in coming),
        ]
    )
    strategies = scene.setting.config.strategies
    if not scene.setting.config.fair_sharing or accepts(scene.setting, jobs):
        return None
    count = Count(scene.setting, jobs)
    kind_of = dict(zip(jobs.index, count.kind_of, strict=True))
    of_request: dict[Request, Kind] = {}
    place = len(scene.present)
    for request, work in zip(requests, newcomers, strict=True):
        if work is not None:
            of_request[request] = kind_of[place]
            place += 1
    trees = list(dict.fromkeys(kind_of[job].queue.tree for job in watched))
    if len(count.places) > 1 or any(kind.queue.tree is None for kind in kind_of.values()):
        return None
    found = []
    for tree in trees:
        if not _is_plain(tree, jobs, kind_of, len(scene.present)):
            return None
        found.append(_flat(tree, scene, jobs, kind_of, of_request, watched, strategies))
    return found


def _is_plain(tree: Tree, jobs: Jobs, kind_of: Mapping[int, Kind], there: int) -> bool:
    """Return whether these functions support the rules of a tree and all that is held in it."""
    namespaces: dict[str, Queue] = {}
    sizes: dict[Kind, int] = {}
    for index, job in enumerate(jobs.jobs):
        queue = kind_of[index].queue
        if queue.tree is not tree:
            continue
        if namespaces.setdefault(job.workload.namespace, queue) is not queue or job.workload.created > job.arrival:
            return False
        held = job.held
        if index < there and held is not None:
            asks, usage = kind_of[index].asks, list(held.usage().values())
            if held.admission.cluster_queue != queue.spec.name or len(usage) != 1:
                return False
            if usage != [asks[0][1] if asks else sizes.setdefault(kind_of[index], usage[0])]:
                return False
    return all(map(_has_plain_rules, tree.queues)) and len(namespaces) == len({*map(id, namespaces.values())})


def _has_plain_rules(queue: Queue) -> bool:
    rules = queue.spec.preemption
    return (
        queue.open
        and not any(queue.local)
        and rules.reclaim_within_cohort == ANY
        and rules.within_cluster_queue in {NEVER, "", LOWER_PRIORITY}
        and all(not kind.searches and (kind.asks is None or len(kind.asks) == 1) for kind in queue.kinds.values())
    )


def _flat(
    tree: Tree,
    scene: Scene,
    jobs: Jobs,
    kind_of: Mapping[int, Kind],
    of_request: Mapping[Request, Kind],
    watched: Sequence[int],
    strategies: Sequence[Strategy],
) -> Flat:
    queues, kinds, first_kind = tree.queues, [], [0]
    namespace = {kind.queue: f"{jobs.jobs[index].workload.namespace}/" for index, kind in kind_of.items()}
    in_order = sorted(queues, key=lambda queue: namespace.get(queue, ""))
    for queue in queues:
        kinds += list(queue.kinds.values())
        first_kind.append(len(kinds))
    # What can never be admitted again may run, since before its queue got less.
    sizes = {kind_of[i]: sum(job.held.usage().values()) for i, job in enumerate(jobs.jobs) if job.held is not None}
    asks = [kind.asks[0][1] if kind.asks else sizes.get(kind, 0) for kind in kinds]
    number = {kind: place for place, kind in enumerate(kinds)}
    place_of = {queue: place for place, queue in enumerate(queues)}
    terms = Terms(
        nominal=[queue.nominal[PLACE] for queue in queues],
        most=[queue.nominal[PLACE] + (0 if queue.alone else queue.limit[PLACE]) for queue in queues],
        weight=[float(queue.spec.weight) for queue in queues],
        door=[in_order.index(queue) for queue in queues],
        within=[int(queue.spec.preemption.within_cluster_queue == LOWER_PRIORITY) for queue in queues],
        first_kind=first_kind,
        kind_queue=[place_of[kind.queue] for kind in kinds],
        kind_amount=asks,
        kind_priority=[kind.priority for kind in kinds],
        kind_never=[int(kind.asks is None) for kind in kinds],
        capacity=queues[0].nominal[PLACE] if queues[0].alone else tree.subtree[PLACE],
        lendable=tree.lendable[PLACE],
        batch=scene.setting.batch,
        alone=queues[0].alone,
        final=strategies[0] is Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
        second=len(strategies) > 1,
    )
    there = len(scene.present)
    own = [(rank, index) for rank, index in enumerate(jobs.index) if index < there and kind_of[index] in number]
    asked = frozenset(watched)
    by_uid = {rank: place for place, (_, rank) in enumerate(sorted((jobs.uid_place[rank], rank) for rank, _ in own))}
    present = [scene.present[index] for _, index in own]
    here = Here(
        kind=[number[kind_of[index]] for _, index in own],
        prospect=[],
        created=[job.workload.created for job in present],
        place=[by_uid[rank] for rank, _ in own],
        since=[-1 if job.held is None else job.held.since for job in present],
        watched=[int(index in asked) for _, index in own],
        batch=batches([(alike(job.request), job.workload.created / SECOND) for job in present]),
    )
    return Flat(
        terms,
        here,
        [index for _, index in own],
        {request: number[kind] for request, kind in of_request.items() if kind in number},
    )


def lasting_of(
    tree: Flat, scene: Scene, run_times: RunTimes, requests: Sequence[Request], together: float
) -> tuple[Lasting, list[int], dict[Request, int]]:
    """Return the run times of present jobs and possible arrivals, and the prospect of each job and request."""
    table = Lasted(run_times, together)
    of_job = [table.row(job.request, job.ran, job.fixed) for job in (scene.present[index] for index in tree.jobs)]
    of_request = {request: table.row(request, 0.0, None) for request in requests if request in tree.kinds}
    return table.lasting(), of_job, of_request


class Lasted:
    """Collects laws and prospects."""

    def __init__(self, run_times: RunTimes, together: float) -> None:
        self.run_times, self.together = run_times, together
        self.rows: dict[tuple[Request, float, float | None], int] = {}
        self.laws: dict[int, int] = {}
        self.times: list[float] = []
        self.law: list[int] = []
        self.age: list[float] = []
        self.limit: list[float] = []
        self.fixed: list[float] = []
        self.below: list[float] = []
        self.group: list[int] = []
        self.groups: dict[Group, int] = {}

    def row(self, request: Request, ran: float, fixed: float | None) -> int:
        """Return the index of a prospect."""
        key = (request, ran, fixed)
        found = self.rows.get(key)
        if found is None:
            found = self.rows[key] = len(self.age)
            self._add(request, self.run_times.prospect(request, ran), -1.0 if fixed is None else fixed)
        return found

    def _add(self, request: Request, prospect: Prospect, fixed: float) -> None:
        place = self.laws.get(id(prospect.law))
        if place is None:
            place = self.laws[id(prospect.law)] = len(self.laws)
            self.times += prospect.law.times
        self.law.append(place)
        self.age.append(prospect.age)
        self.limit.append(prospect.limit)
        self.fixed.append(fixed)
        self.below.append(prospect.below)
        self.group.append(self.groups.setdefault(alike(request), len(self.groups)))

    def lasting(self) -> Lasting:
        """Return the tables."""
        return Lasting(
            self.times,
            self.law,
            self.age,
            self.limit,
            self.fixed,
            self.below,
            self.group,
            len(self.groups),
            sqrt(self.together),
            sqrt(1 - self.together),
            WITHIN,
            WITHIN_ADDS,
            BETWEEN,
            BETWEEN_ADDS,
        )


def came_of(tree: Flat, past: Past, horizon: float, prospects: Mapping[Request, int]) -> Came:
    """Return the arrivals that may be copied."""
    at, request = past.rows
    first, source, start = [0], list[float](), 0.0
    while start < horizon:
        source += past.sources(past.now + start)
        first.append(len(source))
        start += BLOCK
    kinds = [tree.kinds.get(request, -1) for request in past.requests]
    return Came(
        at,
        request,
        past.batches,
        kinds,
        [prospects.get(request, 0) for request in past.requests],
        first,
        source,
        BLOCK,
        SPREAD,
    )
