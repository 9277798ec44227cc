"""What would have happened to a trace's jobs under a policy? Planned by the planner, scheduled by the scheduling model.

A machine is one instance with one GPU, so that quotas are as fine as the trace. The plan is made as in operation: from
a snapshot of the machines and the policy document, again each time when their number changes. A preempted job begins
again (no checkpoint): that is the worst case of what preemption costs.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.written import WrittenCluster
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig, ResourceSharingConfig, SchedulerConfig, SharingStrategy
from taskgov.hyperpod.names import local_queue_of, namespace_of
from taskgov.kueue.render import render
from taskgov.policy.document import PolicyDocument
from taskgov.quantities import GPU
from taskgov.scheduling import KueueModel, ManagerConfig, PodSet, Workload
from taskgov.scheduling.instants import SECOND
from taskgov.snapshot.model import ClusterFacts, Node, Snapshot
from taskgov_cli.replay_outcome import Outcome, team_outcome, totals
from taskgov_cli.replay_series import samples
from taskgov_cli.replay_stays import stays_of
from taskgov_explain.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskgov.hyperpod.model import ComputeQuota
    from taskgov.policy.document import TeamPolicy
    from taskgov_cli.replay_stays import Capacity
    from taskgov_cli.replay_traces import Trace

MACHINE: Final = "ml.g5.8xlarge"
"""One GPU, whose numbers are known."""
ARN: Final = "arn:aws:sagemaker:us-east-1:111122223333:cluster/replay000000"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
BATCH: Final = 60 * SECOND
"""How long freed quota is gathered before waiting jobs are reconsidered: Kueue's second, made a minute for speed."""
STEPS: Final = 200
"""How often progress is shown."""


def default_policy(trace: Trace, borrow_limit: int) -> PolicyDocument:
    """Return a document in which each team's share is its part of the trace's GPU-hours, and everybody lends."""
    hours = trace.gpu_hours()
    total = sum(hours.values())
    sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": borrow_limit}
    return PolicyDocument.model_validate(
        {
            "apiVersion": "taskgov/v1",
            "cluster": {"name": "replay", "arn": ARN},
            "schedulerConfig": {"FairShare": "Enabled"},
            "teams": [
                {
                    "name": team,
                    # At least one GPU: a team without quota may borrow nothing, since limits are percentages of it.
                    "share": [{"instanceType": MACHINE, "percent": 100 * own / total, "floor": 1}],
                    "quota": {"ResourceSharingConfig": sharing, "PreemptTeamTasks": "LowerPriority"},
                    "fairShareWeight": 10,
                }
                for team, own in hours.items()
            ],
        }
    )


def partitioned(policy: PolicyDocument) -> PolicyDocument:
    """Return the document with the same promises, but without lending and borrowing."""
    alone = ResourceSharingConfig(strategy=SharingStrategy.DONT_LEND)
    teams = tuple(team.model_copy(update={"quota": _sharing(team, alone)}) for team in policy.teams)
    return policy.model_copy(update={"teams": teams})


def failing(gpus: int, span: float, mtbf_days: float, repair_hours: float, per_machine: int = 8) -> Capacity:
    """Return a capacity in which machines of so many GPUs fail and come back, each by itself, to the hour.

    Times between failures and of repairs are exponential, from a fixed seed: the same each time.
    """
    chance = random.Random(7)  # noqa: S311 -- a simulation, no secret
    changes: dict[float, int] = defaultdict(int)
    for _ in range(gpus // per_machine):
        at = chance.expovariate(1 / (mtbf_days * 86400))
        while at < span:
            back = at + chance.expovariate(1 / (repair_hours * 3600))
            changes[at // 3600 * 3600] -= per_machine
            changes[back // 3600 * 3600 + 3600] += per_machine
            at = back + chance.expovariate(1 / (mtbf_days * 86400))
    capacity, now = [(0.0, gpus)], gpus
    for at, change in sorted(changes.items()):
        now += change
        if change and at < span:
            capacity.append((at, now))
    return capacity


def play(
    name: str,
    trace: Trace,
    policy: PolicyDocument,
    capacity: Capacity,
    *,
    follow: bool = True,
    tell: Callable[[float], None] = lambda _: None,
) -> Outcome:
    """Replay a trace; `follow` plans again when capacity changes, else the first plan's quotas stay."""
    quotas = _Quotas(policy)
    world = world_of(quotas.at(0.0, capacity[0][1]), policy.scheduler_config or SchedulerConfig())
    simulation = Simulation(world, requeue_batch=BATCH, keep_finished=False)
    for at, gpus in capacity[1:] if follow else ():
        for queue in _queues(quotas.at(at, gpus)):
            simulation.change(queue, round(at * SECOND))
    for number, job in enumerate(trace.jobs):
        at = round(job.arrival * SECOND)
        pods = PodSet("main", 1, ((GPU, job.gpus),))
        namespace, local_queue = namespace_of(job.team), local_queue_of(job.team)
        workload = Workload(namespace, f"j{number}", local_queue, (pods,), created=at, uid=f"{number:07}")
        simulation.arrive(workload, at, round(job.run_time * SECOND))
    end = trace.span
    for step in range(1, STEPS + 1):
        simulation.run(round(end * step / STEPS * SECOND))
        tell(step / STEPS)
    timeline = simulation.run()
    if timeline.loop is not None:
        raise ValueError(f"jobs would preempt one another forever: {', '.join(timeline.loop.workloads)}")
    stays = stays_of(timeline.happenings, trace)
    teams = tuple(team_outcome(team, trace, stays, quotas.history) for team in trace.gpu_hours())
    used, beyond = totals(stays, trace, capacity)
    over_time = samples(stays, trace, capacity, quotas.history)
    return Outcome(name, teams, used, beyond, timeline.cycles, len(quotas.history), over_time)


class _Quotas:
    """The plans made so far, each as a team's GPUs from a moment on."""

    def __init__(self, policy: PolicyDocument) -> None:
        self.history: list[tuple[float, dict[str, int]]] = []
        self._snapshot = Snapshot(ClusterFacts("replay", ARN), START, policy=policy, policy_version="replay")

    def at(self, moment: float, gpus: int) -> tuple[ComputeQuota, ...]:
        """Plan for so many machines, on top of the plans before, and return all quotas."""
        nodes = tuple(Node(f"machine-{n:05}", MACHINE, found_healthy=True) for n in range(gpus))
        now = START + timedelta(seconds=moment)
        snapshot = replace(self._snapshot, taken_at=now, nodes=nodes)
        cluster = WrittenCluster(snapshot)
        cluster.write(plan_quotas(snapshot, mode="plan").changes)
        written = tuple(cluster.quotas.values())
        self._snapshot = replace(snapshot, quotas=written)
        held = {
            quota.compute_quota_target.team_name: sum(
                row.count or 0 for row in quota.compute_quota_config.compute_quota_resources
            )
            for quota in written
        }
        self.history.append((moment, held))
        return self._snapshot.quotas


def world_of(quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig) -> KueueModel:
    """Return the scheduling model with the Kueue objects that HyperPod makes of quotas and a cluster policy."""
    fair = scheduler.fair_share is None or scheduler.fair_share == "Enabled"
    world = KueueModel(ManagerConfig(fair_sharing=fair))
    rendered = render(quotas, scheduler, InstanceTypeTable())
    spaces = [_labelled(namespace) for namespace in rendered.namespaces]
    world.load([*spaces, *rendered.resource_flavors, *rendered.cluster_queues, *rendered.local_queues])
    return world


def _queues(quotas: Iterable[ComputeQuota]) -> tuple[dict[str, Any], ...]:
    return render(quotas, None, InstanceTypeTable()).cluster_queues


def _labelled(namespace: dict[str, Any]) -> dict[str, Any]:
    name = namespace["metadata"]["name"]
    return {**namespace, "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}


def _sharing(team: TeamPolicy, sharing: ResourceSharingConfig) -> ComputeQuotaConfig:
    return (team.quota or ComputeQuotaConfig()).model_copy(update={"resource_sharing_config": sharing})
