"""Replay jobs under the terms of a candidate, with the fast replay of Kueue's queues (`taskgov.futures`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.advice.judging import NEVER, Result, Stay, judge
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


class Player:
    """Replays sequences of jobs and caches their preparation. Quota freed within `batch` seconds counts together."""

    def __init__(self, batch: int = 300) -> None:
        self._batch = batch
        self._prepared: dict[int, tuple[Sequence[Piece], Jobs]] = {}

    def __call__(self, terms: Terms, pieces: Sequence[Piece]) -> Result:
        """Return the result of the jobs under these terms, from an empty cluster until all have ended.

        The replay ends `NEVER` seconds after the last arrival. Raises `ValueError` for jobs that the fast replay does
        not support.
        """
        jobs = self._jobs(pieces)
        setting = setting_of(terms, self._batch)
        if reasons := accepts(setting, jobs):
            raise ValueError(f"the fast replay does not follow this: {', '.join(reasons)}")
        end = round((max((piece.arrival for piece in pieces), default=0.0) + NEVER) * SECOND)
        starts = replay(setting, jobs, end)
        stays = [
            Stay(stay.job, stay.start / SECOND, (end if stay.end is None else stay.end) / SECOND, stay.preempted)
            for stay in starts.stays
        ]
        return judge(pieces, stays, loops=bool(starts.loop))

    def _jobs(self, pieces: Sequence[Piece]) -> Jobs:
        known = self._prepared.get(id(pieces))
        if known is None or known[0] is not pieces:
            known = self._prepared[id(pieces)] = (pieces, prepared(pieces))
        return known[1]


def prepared(pieces: Sequence[Piece]) -> Jobs:
    """Return the pieces as jobs of their teams' queues, in the same order."""
    return Jobs(map(_job, pieces, range(len(pieces))))


def _job(piece: Piece, place: int) -> Job:
    arrival = round(piece.arrival * SECOND)
    pods = PodSet("main", 1, ((GPU, piece.gpus),))
    name, namespace, queue = f"j{place}", namespace_of(piece.team), local_queue_of(piece.team)
    work = Workload(namespace, name, queue, (pods,), priority=piece.priority, created=arrival, uid=f"{place:08}")
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
