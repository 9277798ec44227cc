"""What would happen if? The plan for a supposed cluster, and what the scheduler would do before and after it.

Two copies of the scheduler run: one as the cluster is, one with the supposed quotas and the submitted work, on
which the plan is written wave by wave (`taskgov_explain.sides`). Both come to rest (nobody finishes), and, where run
times are known, both continue in time.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from taskgov.allocation.lease_book import LeaseEntry, lease_book
from taskgov.allocation.loaded import loaded_from
from taskgov.allocation.loops import Loop, loop_in
from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.played import PlayedPath
from taskgov.scheduling.status_reading import true_conditions
from taskgov.snapshot.model import Snapshot
from taskgov.usage.amounts import accelerators
from taskgov.usage.node_shortage import offered_by_nodes
from taskgov.usage.quota_usage import Place
from taskgov_explain.case import asked_by
from taskgov_explain.courses import Begin, Course, courses
from taskgov_explain.find import workloads_in
from taskgov_explain.quota_rows import QuotaRow, quota_rows
from taskgov_explain.risk import Risk, risks_of
from taskgov_explain.run_times import RunTimes
from taskgov_explain.sides import Side, State, as_supposed, sides_of

NO_RUN_TIMES: RunTimes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TeamSide:
    """A team on one instance type and resource when nothing more happens, in base units."""

    quota: int
    used: int
    borrowed: int
    over_quota: int
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
    """A workload now, in the cluster as it continues by itself (`before`), and as supposed (`after`)."""

    workload: str
    team: str
    gpus: int
    now: State
    before: State
    after: State
    preempted_by: str
    """Who preempts it after, if somebody does that would not have before."""
    because: str
    uncertain: tuple[str, ...] = ()
    """The features that the scheduling model does not follow and that may change this; none where it is certain."""
    may_be_preempted: bool = False
    """Whether it may be preempted after, and would not be before, without that being certain."""

    @property
    def differs(self) -> bool:
        """Whether the supposition makes a difference to it, or may."""
        return self.before != self.after or bool(self.preempted_by) or self.may_be_preempted


@dataclass(frozen=True, slots=True)
class NodeShortfall:
    """Admitted work of an instance type for which there are no healthy nodes, after; in base units."""

    instance_type: str
    resource: str
    held: int
    offered: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer. `loops` are workloads that would preempt one another forever."""

    plan: Plan
    quotas: tuple[QuotaRow, ...]
    """What the plan makes of each quota, from its first write to its last."""
    leases: tuple[LeaseEntry, ...]
    """Leases as they stand in the supposed cluster before its plan is applied."""
    teams: tuple[TeamDifference, ...]
    workloads: tuple[WorkloadDifference, ...]
    courses: tuple[Course, ...]
    risks: tuple[Risk, ...]
    shortfalls: tuple[NodeShortfall, ...]
    loops: tuple[str, ...]
    not_modelled: tuple[str, ...]
    not_settled: tuple[str, ...] = ()
    """What was not played to its end, as sentences; all else is then at least so."""
    loop: Loop | None = None
    """What `loops` are about, with the settings that end it in the model; None without a loop."""


def what_if(
    snapshot: Snapshot, supposed: Snapshot, run_times: RunTimes = NO_RUN_TIMES, *, with_digest: bool = True
) -> WhatIf:
    """Return the plan for the supposed cluster (see `suppose`) and what the scheduler would do, before and after.

    Guardrails are shown in the plan and not obeyed: the question is what would happen if it were applied. Without
    `with_digest` the plan has no digest of its snapshot, which is written for it as a whole.
    Raises `ValueError` or `KeyError` for scheduler objects that cannot be read.
    """
    supposed = as_supposed(snapshot, supposed)
    played = list[PlayedPath]()
    plan = plan_quotas(supposed, mode="plan", played=played, digest=None if with_digest else "")
    before, after = sides_of(snapshot, supposed, plan.changes, next(iter(played), None))
    shown = {item.key: item.shown for item in workloads_in(supposed.kueue)} if after.loop else {}
    begins = Begin(snapshot, before.world, before.preempted), Begin(supposed, after.world, after.preempted)
    return WhatIf(
        plan=plan,
        quotas=quota_rows(plan.changes),
        leases=lease_book(supposed, plan),
        teams=tuple(_teams(before, after)),
        workloads=tuple(_workloads(snapshot, supposed, before, after)),
        courses=tuple(courses(supposed, *begins, run_times)),
        risks=risks_of(after.snapshot, after.world, usage=after.usage),
        shortfalls=tuple(_shortfalls(after)),
        loops=tuple(shown.get(key, key) for key in after.loop),
        not_modelled=tuple(f"{gap.feature} ({gap.kind} {gap.name})" for gap in after.world.not_modelled),
        not_settled=tuple(dict.fromkeys((*before.not_settled, *after.not_settled))),
        loop=(loop_in(supposed) or loop_in(supposed, plan.changes)) if after.loop else None,
    )


# Teams


def _teams(before: Side, after: Side) -> Iterator[TeamDifference]:
    old, new = (_lines(side) for side in (before, after))
    nothing = TeamSide(0, 0, 0, 0, 0, 0)
    for team, instance_type, resource in sorted({*old, *new}):
        key = (team, instance_type, resource)
        yield TeamDifference(team, instance_type, resource, old.get(key, nothing), new.get(key, nothing))


def _lines(side: Side) -> dict[tuple[str, str, str], TeamSide]:
    return {
        (line.team, line.instance_type, line.resource): TeamSide(
            line.guaranteed, line.used, line.borrowed, line.over_quota, line.lent, side.waiting.get(line.team, 0)
        )
        for line in side.usage.lines
    }


# Workloads


def _workloads(snapshot: Snapshot, supposed: Snapshot, before: Side, after: Side) -> Iterator[WorkloadDifference]:
    now, doubts = loaded_from(snapshot, snapshot.instance_types).model, {**before.world.doubts, **after.world.doubts}
    known = set(now.workloads())
    names = {named_workload.key: named_workload for named_workload in workloads_in(supposed.kueue)}
    for key, workload in sorted(names.items(), key=lambda pair: pair[1].shown):
        if "Finished" in true_conditions(workload.item.get("status") or {}):
            continue
        loss = after.losses.get(key)
        runs = key in known and now.admission(key) is not None
        yield WorkloadDifference(
            workload=workload.shown,
            team=workload.team,
            gpus=accelerators(asked_by(after.world.pod_sets(key))),
            now="runs" if runs else "waits" if key in known else "absent",
            before=before.state(key),
            after=after.state(key),
            preempted_by=names[loss.preemptor].shown if loss and loss.preemptor in names else "",
            because=loss.reason if loss else "",
            uncertain=doubts.get(key, ()),
            may_be_preempted=key in after.at_risk and after.state(key) == "runs",
        )


# Nodes


def _shortfalls(after: Side) -> Iterator[NodeShortfall]:
    """Give the instance types whose admitted work is more than the healthy nodes offer."""
    in_use = Counter[Place]()
    for line in after.usage.lines:
        in_use[line.instance_type, line.resource] += line.used
    for (instance_type, resource), held in sorted(in_use.items()):
        offered = offered_by_nodes(after.snapshot, instance_type, resource)
        if held > offered and after.snapshot.nodes:
            yield NodeShortfall(instance_type, resource, held, offered)
