"""Replay jobs under the terms of a candidate, with the fast replay of Kueue's queues (`taskgov.futures`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.advice.judging import NEVER, Result, judge
from taskgov.futures import Job, Jobs, Setting, accepts, replay
from taskgov.hyperpod.names import cluster_queue_of, local_queue_of, namespace_of
from taskgov.quantities import GPU
from taskgov.scheduling.config import ManagerConfig
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import (
    ANY,
    BorrowWithinCohort,
    ClusterQueue,
    Fungibility,
    LocalQueue,
    PodSet,
    Preemption,
    Quota,
    ResourceFlavor,
    ResourceGroup,
    Selector,
    Workload,
    flavor_resource,
)
from taskgov.scheduling.objects import (
    NEVER as NOBODY,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.advice.candidates import TeamTerms, Terms
    from taskgov.advice.past import Piece

FLAVOR: Final = "gpus"
COHORT: Final = "teams"
LOWER_PRIORITY: Final = "LowerPriority"
NO_JOBS: Final = Jobs(())


class Player:
    """Replays sequences of jobs and caches their preparation. Quota freed within `batch` seconds counts together."""

    def __init__(self, batch: int = 300) -> None:
        self._batch = batch
        self._prepared: dict[int, tuple[Sequence[Piece], Jobs]] = {}
        self._accepted: set[tuple[int, frozenset[str]]] = set()

    def __call__(self, terms: Terms, pieces: Sequence[Piece]) -> Result:
        """Return the result of the jobs under these terms, from an empty cluster until all have ended.

        The replay ends `NEVER` seconds after the last arrival. Raises `ValueError` for jobs that the fast replay does
        not support.
        """
        jobs, setting = self._jobs(pieces), setting_of(terms, self._batch)
        if reasons := self._reasons(setting, jobs, pieces):
            raise ValueError(f"the fast replay does not follow this: {', '.join(reasons)}")
        end = round((max((piece.arrival for piece in pieces), default=0.0) + NEVER) * SECOND)
        starts = replay(setting, jobs, end)
        return judge(pieces, starts.stays, unit=SECOND, loops=bool(starts.loop))

    def _reasons(self, setting: Setting, jobs: Jobs, pieces: Sequence[Piece]) -> tuple[str, ...]:
        """Return why the exact model is needed. Jobs are checked once for all settings with the same teams."""
        question = id(pieces), frozenset(setting.namespaces)
        reasons = accepts(setting, NO_JOBS if question in self._accepted else jobs)
        if not reasons:
            self._accepted.add(question)
        return reasons

    def _jobs(self, pieces: Sequence[Piece]) -> Jobs:
        known = self._prepared.get(id(pieces))
        if known is None or known[0] is not pieces:
            known = self._prepared[id(pieces)] = (pieces, prepared(pieces))
        return known[1]


def prepared(pieces: Sequence[Piece]) -> Jobs:
    """Return the pieces as jobs of their teams' queues, in the same order."""
    pods = {gpus: (PodSet("main", 1, ((GPU, gpus),)),) for gpus in {piece.gpus for piece in pieces}}
    doors = {team: (namespace_of(team), local_queue_of(team)) for team in {piece.team for piece in pieces}}
    return Jobs(_job(piece, place, doors[piece.team], pods[piece.gpus]) for place, piece in enumerate(pieces))


def _job(piece: Piece, place: int, door: tuple[str, str], pods: tuple[PodSet, ...]) -> Job:
    arrival = round(piece.arrival * SECOND)
    namespace, queue = door
    work = Workload(namespace, f"j{place}", queue, pods, priority=piece.priority, created=arrival, uid=f"{place:08}")
    return Job(work, arrival, round(piece.run_time * SECOND))


def setting_of(terms: Terms, batch: int) -> Setting:
    """Return the queues that HyperPod renders from these terms (`taskgov.kueue.render`), with GPUs only."""
    return Setting(
        queues=tuple(_queue(team, own) for team, own in terms.teams),
        doors=tuple(
            LocalQueue(namespace_of(team), local_queue_of(team), cluster_queue_of(team)) for team, _ in terms.teams
        ),
        flavors=(ResourceFlavor(FLAVOR),),
        config=ManagerConfig(fair_sharing=terms.fair),
        namespaces={namespace_of(team): {} for team, _ in terms.teams},
        batch=batch * SECOND,
    )


def _queue(team: str, own: TeamTerms) -> ClusterQueue:
    return ClusterQueue(
        cluster_queue_of(team),
        cohort=None if own.limit is None else COHORT,
        groups=(ResourceGroup((GPU,), (FLAVOR,)),),
        quotas={flavor_resource(FLAVOR, GPU): Quota(own.quota, own.limit)},
        namespace_selector=Selector(),
        preemption=Preemption(NOBODY if own.never else LOWER_PRIORITY, ANY, BorrowWithinCohort(LOWER_PRIORITY)),
        fungibility=Fungibility(when_can_borrow="TryNextFlavor"),
        weight=float(own.weight),
    )
