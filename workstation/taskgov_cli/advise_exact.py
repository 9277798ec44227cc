"""Replay work with the exact model: the scheduling model on the Kueue objects that HyperPod makes of the quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.advice.judging import NEVER, Result, judge
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.hyperpod.names import local_queue_of, namespace_of
from taskgov.quantities import GPU
from taskgov.scheduling import PodSet, Workload
from taskgov.scheduling.instants import SECOND
from taskgov_cli.replay_run import MACHINE, world_of
from taskgov_cli.replay_stays import stays_of
from taskgov_cli.replay_traces import Job, Trace
from taskgov_explain.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.advice.candidates import TeamTerms, Terms
    from taskgov.advice.past import Piece


def replay_exactly(terms: Terms, pieces: Sequence[Piece], batch: int) -> Result:
    """Return what work comes to under these terms, as `taskgov.advice.playing.Player` does, by the exact model."""
    scheduler = SchedulerConfig.model_validate({"FairShare": "Enabled" if terms.fair else "Disabled"})
    world = world_of([_quota(team, own) for team, own in terms.teams], scheduler)
    simulation = Simulation(world, requeue_batch=batch * SECOND, keep_finished=False)
    for number, piece in enumerate(pieces):
        at = round(piece.arrival * SECOND)
        pods = PodSet("main", 1, ((GPU, piece.gpus),))
        namespace, queue = namespace_of(piece.team), local_queue_of(piece.team)
        work = Workload(
            namespace, f"j{number}", queue, (pods,), priority=piece.priority, created=at, uid=f"{number:08}"
        )
        simulation.arrive(work, at, round(piece.run_time * SECOND))
    end = max((piece.arrival for piece in pieces), default=0.0) + NEVER
    timeline = simulation.run(round(end * SECOND))
    jobs = tuple(Job(piece.team, piece.arrival, piece.run_time, piece.gpus) for piece in pieces)
    stays = stays_of(timeline.happenings, Trace("advised", jobs, 0))
    times = [(stay.number, stay.start, min(stay.end, end), stay.preempted) for stay in stays]
    return judge(pieces, times, loops=timeline.loop is not None)


def _quota(team: str, own: TeamTerms) -> ComputeQuota:
    """Return a quota of machines with one GPU each, so that it is as fine as the terms."""
    limits = [{"InstanceType": MACHINE, "Count": own.limit}]
    sharing = (
        {"Strategy": "DontLend"} if own.limit is None else {"Strategy": "LendAndBorrow", "AbsoluteBorrowLimits": limits}
    )
    return ComputeQuota.model_validate(
        {
            "ComputeQuotaId": team,
            "Name": team,
            "ComputeQuotaVersion": 1,
            "Status": "Created",
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [{"InstanceType": MACHINE, "Count": own.quota}],
                "ResourceSharingConfig": sharing,
                "PreemptTeamTasks": "Never" if own.never else "LowerPriority",
            },
            "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": own.weight},
        }
    )
