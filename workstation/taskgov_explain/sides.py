"""The two sides of a what-if question: the cluster as it continues by itself, and as it continues supposed.

On the supposed side the plan is played wave by wave, as the plan's own prediction plays it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Literal

from taskgov.allocation.effects import Loss as LossOnPath
from taskgov.allocation.plan import Change
from taskgov.allocation.played import PlayedPath
from taskgov.allocation.predict import LoopError, Player, Stage, steps_for
from taskgov.allocation.projection import Projection
from taskgov.allocation.uncertain import may_be_preempted
from taskgov.allocation.written import WrittenCluster
from taskgov.scheduling import Budget, FixedPoint, KueueModel
from taskgov.scheduling.doubts import Doubts
from taskgov.snapshot.model import Snapshot
from taskgov.usage.capacity import Offers, leading_in
from taskgov.usage.quota_usage import Usage, usage_at
from taskgov_explain.find import workloads_in

State = Literal["runs", "waits", "absent"]


@dataclass(frozen=True, slots=True)
class Loss:
    """A workload that is preempted, by whom, and why."""

    workload: str
    preemptor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster when nothing more happens, and what happened until then."""

    snapshot: Snapshot
    world: KueueModel
    at_rest: Snapshot
    """The snapshot with its queues as they then are; its workloads are those of today."""
    usage: Usage
    """Of the leading resources, when nothing more happens."""
    waiting: Mapping[str, int]
    """Team -> how many of its workloads then wait."""
    losses: Mapping[str, Loss] = field(default_factory=dict)
    """Workload -> its preemption, if there is any that would not be on the other side."""
    preempted: Mapping[str, int] = field(default_factory=dict)
    """Workload -> how often it is preempted on the way."""
    loop: tuple[str, ...] = ()
    not_settled: tuple[str, ...] = ()
    at_risk: Doubts = field(default_factory=dict)
    """Who may be preempted besides, and would not be on the other side, with what makes it uncertain."""

    def state(self, key: str) -> State:
        """Return the state of a workload when nothing more happens."""
        try:
            return "waits" if self.world.admission(key) is None else "runs"
        except KeyError:
            return "absent"


def as_supposed(snapshot: Snapshot, supposed: Snapshot) -> Snapshot:
    """Return the supposed snapshot with the queues of supposed quotas as HyperPod renders them from these."""
    if not (teams := _differing(snapshot, supposed)):
        return supposed
    cluster = WrittenCluster(supposed)
    cluster.render_again(teams)
    return cluster.snapshot()


def sides_of(
    snapshot: Snapshot, supposed: Snapshot, changes: Sequence[Change], played: PlayedPath | None = None
) -> tuple[Side, Side]:
    """Return both sides. Queues of quotas that differ are as rendered in both, so that only the numbers differ.

    `played` is the path of the plan, if it was played already.

    Raises `KeyError` or `ValueError` for objects that cannot be read.
    """
    today = Projection.of(snapshot, changes, teams=_differing(snapshot, supposed))
    now = today.model
    steps = steps_for(now)
    rest = today.settle(Budget(steps))
    before = _side(snapshot, today, rest, not_settled=_unsettled(rest, "the cluster as it is", steps))
    after = _supposed_side(supposed, changes, before, played)
    waves = (list(writes) for _, writes in groupby(changes, attrgetter("wave")))
    start, lost = Projection.of(supposed, changes), (*before.preempted, *after.losses)
    at_risk = may_be_preempted((now, before.world), start, waves, lost, Budget(steps))
    return before, replace(after, at_risk=at_risk)


def _supposed_side(supposed: Snapshot, changes: Sequence[Change], before: Side, played: PlayedPath | None) -> Side:
    """Return the supposed cluster once the plan is written; what happens on the other side too is not a loss."""
    calm = Projection.of(supposed, changes)
    holders = {key for key in calm.model.workloads() if calm.model.admission(key) is not None}
    steps = steps_for(calm.model)
    rest = calm.settle(Budget(steps))
    lost = {key: loss for key, loss in _losses(rest).items() if key in holders and key not in before.preempted}
    unsettled = _unsettled(rest, "the supposed cluster", steps)
    if not changes or rest.loop:
        return _side(supposed, calm, rest, lost, unsettled)
    try:
        steps_of_path, reached = _reached(supposed, changes, played)
    except LoopError as error:
        calm.write(changes)
        at_once = calm.settle(Budget(steps))
        said = () if at_once.loop else (f"{error}; the plan was simulated as one write",)
        new = {key: loss for key, loss in _losses(at_once).items() if key not in before.preempted}
        return _side(supposed, calm, at_once, lost | new, (*unsettled, *said))
    preempted = Counter(victim.workload for victim in rest.preempted) + Counter(reached.losses.keys())
    told = tuple(f"{what}: not settled within {steps_of_path:,} model steps" for what in reached.not_played[:1])
    end = _side(supposed, reached.states[0].cluster, rest, lost | _of_path(reached.losses), (*unsettled, *told))
    return replace(end, preempted=preempted)


def _reached(supposed: Snapshot, changes: Sequence[Change], played: PlayedPath | None) -> tuple[int, Stage]:
    """Play the waves of a plan as its prediction does; a plan that has none is written at once.

    What was `played` already is not played again. Returns the steps that there were, and the cluster at the end.
    """
    if played is not None and played.is_of(changes):
        if isinstance(played.end, LoopError):
            raise played.end
        return played.steps, played.end
    player = Player(supposed, changes, supposed.instance_types)
    stage = player.start
    for wave, writes in groupby(changes, attrgetter("wave")):
        stage = player.after(stage, list(writes), wave)
    return player.steps, stage


def _side(
    snapshot: Snapshot,
    end: Projection,
    rest: FixedPoint,
    losses: Mapping[str, Loss] | None = None,
    not_settled: tuple[str, ...] = (),
) -> Side:
    world = end.model
    queues = sorted(end.queues.items())
    kueue = replace(
        end.snapshot().kueue,
        cluster_queues=tuple({**queue, "status": world.cluster_queue(name)["status"]} for name, queue in queues),
        workloads=snapshot.kueue.workloads,
    )
    return Side(
        snapshot=snapshot,
        world=world,
        at_rest=replace(snapshot, kueue=kueue),
        usage=usage_at(kueue, leading_in(kueue, Offers(snapshot))),
        waiting=Counter(workload.team for workload in workloads_in(snapshot.kueue) if world.waits(workload.key)),
        losses=losses or {},
        preempted=Counter(victim.workload for victim in rest.preempted),
        loop=rest.loop,
        not_settled=not_settled,
    )


def _losses(rest: FixedPoint) -> dict[str, Loss]:
    return {victim.workload: Loss(victim.workload, victim.preemptor, victim.reason) for victim in rest.preempted}


def _of_path(losses: Mapping[str, LossOnPath]) -> dict[str, Loss]:
    return {key: Loss(key, loss.preemptor, loss.reason) for key, loss in losses.items()}


def _unsettled(rest: FixedPoint, what: str, steps: int) -> tuple[str, ...]:
    if rest.settled or rest.loop:
        return ()
    return (f"{what}: not settled within {steps:,} model steps",)


def _differing(snapshot: Snapshot, supposed: Snapshot) -> frozenset[str]:
    """Return the teams whose quotas are supposed, not planned, to be others."""
    today = {quota.compute_quota_id: quota for quota in snapshot.quotas}
    quotas = (quota for quota in supposed.quotas if today.get(quota.compute_quota_id) != quota)
    return frozenset(quota.compute_quota_target.team_name for quota in quotas)
