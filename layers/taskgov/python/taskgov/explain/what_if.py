"""What would happen if? The plan for a supposed cluster, and what the scheduler would do before and after it.

Two copies of the scheduler are let go: one as the cluster is, one with the supposed quotas, the plan's changes and the
submitted work. Both come to rest (nobody finishes), and, where run times are known, both go on in time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from taskgov.allocation.lease_book import LeaseEntry, lease_book
from taskgov.allocation.plan import Change, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.written import quotas_after
from taskgov.audit.report_capacity import Offers, leading_resources
from taskgov.explain.amounts import accelerators
from taskgov.explain.case import Case
from taskgov.explain.courses import Course, courses
from taskgov.explain.find import named
from taskgov.explain.nodes import offered_by_nodes
from taskgov.explain.risk import Risk, risks_of
from taskgov.explain.run_times import RunTimes
from taskgov.explain.worlds import MAX_CYCLES, effective_queues, finish_evictions, world_of
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.kueue.usage import Usage, usage_of
from taskgov.kueue.workloads import pending_by_team
from taskgov.scheduling import Settlement, World
from taskgov.snapshot.model import KueueObjects, Snapshot

State = Literal["runs", "waits", "absent"]
NO_RUN_TIMES: RunTimes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TeamSide:
    """A team on one instance type and resource when nothing more happens, in base units."""

    quota: int
    used: int
    borrowed: int
    lent: int
    pending: int
    """Workloads of the team that wait, whatever for."""


@dataclass(frozen=True, slots=True)
class TeamDifference:
    """A team before and after."""

    team: str
    instance_type: str
    resource: str
    before: TeamSide
    after: TeamSide


@dataclass(frozen=True, slots=True)
class WorkloadDifference:
    """A workload now, as the cluster would go on by itself (`before`), and as it would go on supposed (`after`)."""

    workload: str
    team: str
    gpus: int
    now: State
    before: State
    after: State
    preempted_by: str
    """Who preempts it after, if somebody does that would not have before."""
    because: str

    @property
    def differs(self) -> bool:
        """Whether the supposition makes a difference to it."""
        return self.before != self.after or bool(self.preempted_by)


@dataclass(frozen=True, slots=True)
class NodeShortfall:
    """Admitted work of an instance type for which there are no healthy nodes, after; in base units."""

    instance_type: str
    resource: str
    held: int
    offered: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer. `loops` are workloads that would preempt one another for ever."""

    plan: Plan
    leases: tuple[LeaseEntry, ...]
    """Leases as they stand in the supposed cluster before its plan is applied."""
    teams: tuple[TeamDifference, ...]
    workloads: tuple[WorkloadDifference, ...]
    courses: tuple[Course, ...]
    risks: tuple[Risk, ...]
    shortfalls: tuple[NodeShortfall, ...]
    loops: tuple[str, ...]
    not_modelled: tuple[str, ...]


def what_if(snapshot: Snapshot, supposed: Snapshot, run_times: RunTimes = NO_RUN_TIMES) -> WhatIf:
    """Return the plan for the supposed cluster (see `suppose`) and what the scheduler would do, before and after.

    Guardrails are shown in the plan and not obeyed: the question is what would happen if it were applied.
    Raises `ValueError` or `KeyError` for scheduler objects that cannot be read.
    """
    plan = plan_quotas(supposed, mode="plan")
    before, after = _sides(snapshot, supposed, plan.changes)
    return WhatIf(
        plan=plan,
        leases=lease_book(supposed, plan),
        teams=tuple(_teams(before, after)),
        workloads=tuple(_workloads(snapshot, supposed, before, after)),
        courses=tuple(courses(supposed, (before.snapshot, before.begins), (after.snapshot, after.begins), run_times)),
        risks=risks_of(after.snapshot_at_rest, after.world),
        shortfalls=tuple(_shortfalls(after)),
        loops=after.settlement.loop,
        not_modelled=tuple(f"{each.feature} ({each.kind} {each.name})" for each in after.world.not_modelled),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """The cluster before or after: its scheduler as it begins, and when nothing more happens."""

    snapshot: Snapshot
    begins: World
    world: World
    settlement: Settlement
    snapshot_at_rest: Snapshot

    @classmethod
    def of(cls, snapshot: Snapshot, written: Iterable[ComputeQuota], scheduler: SchedulerConfig | None) -> "_Side":
        begins = world_of(snapshot, written, scheduler)
        finish_evictions(begins, snapshot)
        world = begins.copy()
        settlement = world.settle(snapshot.taken_at, max_cycles=MAX_CYCLES)
        queues = effective_queues(snapshot, written, scheduler)
        kueue = replace(
            snapshot.kueue,
            cluster_queues=tuple(
                {**queue, "status": world.cluster_queue(name)["status"]} for name, queue in sorted(queues.items())
            ),
            workloads=tuple({**item, **world.workload(named(item).key)} for item in snapshot.kueue.workloads),
        )
        return cls(snapshot, begins, world, settlement, replace(snapshot, kueue=kueue))

    @property
    def kueue(self) -> KueueObjects:
        return self.snapshot_at_rest.kueue

    def state(self, key: str) -> State:
        """Return what has become of a workload when nothing more happens."""
        try:
            return "waits" if self.world.admission(key) is None else "runs"
        except KeyError:
            return "absent"


def _sides(snapshot: Snapshot, supposed: Snapshot, changes: Iterable[Change]) -> tuple[_Side, _Side]:
    """Return both sides; the queues of quotas that differ are as rendered in both, so that only the numbers differ."""
    written, scheduler = quotas_after(supposed.quotas, changes)
    today = {quota.compute_quota_id: quota for quota in snapshot.quotas}
    new = [quota for quota in written if today.get(quota.compute_quota_id) != quota]
    old = [today[quota.compute_quota_id] for quota in new if quota.compute_quota_id in today]
    return _Side.of(snapshot, old, None), _Side.of(supposed, new, scheduler)


# Teams


def _teams(before: _Side, after: _Side) -> Iterator[TeamDifference]:
    old, new = (_lines(side) for side in (before, after))
    nothing = TeamSide(0, 0, 0, 0, 0)
    for team, instance_type, resource in sorted({*old, *new}):
        key = (team, instance_type, resource)
        yield TeamDifference(team, instance_type, resource, old.get(key, nothing), new.get(key, nothing))


def _lines(side: _Side) -> dict[tuple[str, str, str], TeamSide]:
    usage = _usage(side)
    leading = leading_resources(usage, Offers(side.snapshot))
    waiting = {each.team: each.workloads for each in pending_by_team(side.kueue.workloads)}
    return {
        (line.team, line.instance_type, line.resource): TeamSide(
            line.guaranteed, line.used, line.borrowed, line.lent, waiting.get(line.team, 0)
        )
        for line in usage.lines
        if (line.instance_type, line.resource) in leading
    }


def _usage(side: _Side) -> Usage:
    return usage_of(side.kueue.cluster_queues, side.kueue.cohorts)


# Workloads


def _workloads(snapshot: Snapshot, supposed: Snapshot, before: _Side, after: _Side) -> Iterator[WorkloadDifference]:
    now = world_of(snapshot)
    known = set(now.workloads())
    calm = {each.workload for each in before.settlement.preempted}
    losses = {each.workload: each for each in after.settlement.preempted if each.workload not in calm}
    names = {one.key: one for one in map(named, supposed.kueue.workloads)}
    for key, one in sorted(names.items(), key=lambda each: each[1].shown):
        case = Case(supposed, after.begins, one)
        if case.holds("Finished"):
            continue
        runs = key in known and now.admission(key) is not None
        loss = losses.get(key) if runs else None
        yield WorkloadDifference(
            workload=one.shown,
            team=one.team,
            gpus=accelerators(case.asks),
            now="runs" if runs else "waits" if key in known else "absent",
            before=before.state(key),
            after=after.state(key),
            preempted_by=names[loss.preemptor].shown if loss and loss.preemptor in names else "",
            because=loss.reason if loss else "",
        )


# Nodes


def _shortfalls(after: _Side) -> Iterator[NodeShortfall]:
    """Give the instance types whose admitted work is more than the healthy nodes offer."""
    usage = _usage(after)
    for instance_type, resource in sorted(leading_resources(usage, Offers(after.snapshot))):
        lines = (line for line in usage.lines if (line.instance_type, line.resource) == (instance_type, resource))
        held, offered = sum(line.used for line in lines), offered_by_nodes(after.snapshot, instance_type, resource)
        if held > offered and after.snapshot.nodes:
            yield NodeShortfall(instance_type, resource, held, offered)
