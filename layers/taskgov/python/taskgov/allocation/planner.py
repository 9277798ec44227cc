"""Make a plan from a snapshot: the one entry to this room.

`plan_quotas` is a pure function. The same snapshot and mode give the same plan, byte for byte, and the plan of a world
in which a plan was applied has no changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from taskgov.allocation.allocate import TypeAllocation, allocate
from taskgov.allocation.budgets import (
    borrowing_resumes_at,
    budget_findings,
    out_of_budget,
    said_borrowing,
    unresumed,
)
from taskgov.allocation.capacity import TypeCapacity, count_capacity
from taskgov.allocation.changes import quota_sums
from taskgov.allocation.codec import changes_sha256, plan_id_of
from taskgov.allocation.desired import MAX_ROWS, Desired, Wishes
from taskgov.allocation.goals import deletion_goals, goals_of, wanted_goals
from taskgov.allocation.guardrails import Judged, judge
from taskgov.allocation.leases import Given, next_moment
from taskgov.allocation.movements import movements
from taskgov.allocation.overcommitment import overcommitment
from taskgov.allocation.partial import NEXT_STEP, hold_back
from taskgov.allocation.parts import RowKey
from taskgov.allocation.path import predicted_path
from taskgov.allocation.plan import Change, Outcome, Plan, Prediction, TeamAllocation
from taskgov.allocation.progress import no_progress
from taskgov.allocation.sources import Cause, Trail
from taskgov.allocation.standing import IN_FLIGHT, Kept, Standings, sort_out, today_rows
from taskgov.allocation.waves import Writes
from taskgov.allocation.writes import in_order, writes
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.findings import Finding, Severity
from taskgov.hyperpod.instance_types import InstanceTypeTable, is_instance_type_name
from taskgov.hyperpod.model import ComputeQuota
from taskgov.policy.document import Backend, CapacityRules, Guardrails, OnLimit, PolicyDocument
from taskgov.snapshot.codec import snapshot_sha256
from taskgov.snapshot.model import Snapshot

Mode = Literal["plan", "apply"]


def plan_quotas(
    snapshot: Snapshot,
    *,
    mode: Mode,
    approved_changes: str | None = None,
    instance_types: InstanceTypeTable | None = None,
) -> Plan:
    """Return the plan for one cluster.

    `approved_changes` is the digest of the changes that a person approved: when they are still the changes of this
    plan, an approval is no longer needed. `instance_types` replaces the known types where the document adds none.

    | the document | mode | outcome |
    | --- | --- | --- |
    | breaks rules | any | `blocked`, one finding for each violation, no changes |
    | is missing | any | `nothing-to-do`: today's quotas are the promise |
    | is there | `plan` | `planned` when there are changes; guardrails are shown |
    | is there | `apply` | `apply`, `needs-approval`, `blocked` or `no-progress` when there are changes |
    """
    table = _table(snapshot, instance_types)
    capacities = _capacities(snapshot, table)
    work = _work(snapshot, capacities, table)
    plan = _plan(snapshot, mode, capacities, work)
    return replace(plan, plan_id=plan_id_of(plan), outcome=_outcome(plan, work.judged, approved_changes))


def _table(snapshot: Snapshot, instance_types: InstanceTypeTable | None) -> InstanceTypeTable:
    if snapshot.policy is not None and (snapshot.policy.instance_types or instance_types is None):
        return snapshot.policy.instance_type_table()
    return instance_types or InstanceTypeTable()


@dataclass(frozen=True, slots=True)
class _Work:
    """What was decided, before it is put into a plan."""

    lines: tuple[TeamAllocation, ...]
    judged: Judged
    prediction: Prediction
    findings: tuple[Finding, ...]
    recheck_at: datetime | None
    """When the rest of a plan that limits cut back can go on."""


def row_sources(
    snapshot: Snapshot, *, instance_types: InstanceTypeTable | None = None
) -> dict[str, dict[RowKey, Trail]]:
    """Return where each number of each quota of the plan comes from: team -> row -> trail.

    The sources of a row add up to what the plan makes of it. It is made anew here, because a plan does not carry it.
    """
    table = _table(snapshot, instance_types)
    capacities = _capacities(snapshot, table)
    decided = _decided(snapshot, capacities)
    left_out = _to_write(snapshot, decided, capacities).left_out
    found = {
        each.promise.team: {key: tell() for key, tell in each.tells.items()} for each in _as_written(decided, left_out)
    }
    for kept in (*decided.standings.kept, *decided.wanted.kept):
        rows = today_rows(kept.quota).items()
        cause = Cause.EDIT_KEPT if kept.is_edited else Cause.LEFT_ALONE
        found.setdefault(
            kept.team, {key: Trail().to(row, cause, f"left as it is: {kept.because}") for key, row in rows}
        )
    return found


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What every governed quota is to become now, which failed ones are deleted, and when the rest can go on."""

    desired: tuple[Desired, ...]
    stuck: tuple[ComputeQuota, ...]
    recheck_at: datetime | None = None
    kept: tuple[Kept, ...] = ()
    """Failed quotas that limits do not let go."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """What quotas are to become, before it is known in which writes."""

    standings: Standings
    allocations: tuple[TypeAllocation, ...]
    wishes: Wishes
    given: tuple[Given, ...]
    wanted: _Wanted


def _decided(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity]) -> _Decided:
    standings, policy = sort_out(snapshot, capacities), snapshot.policy
    allocations = [] if policy is None else allocate(snapshot, policy, standings, capacities)
    wishes = _wishes(snapshot, allocations, capacities)
    promises = (*standings.promises, *([standings.pool] if standings.pool else []))
    given = tuple(given for allocation in allocations for given in allocation.given)
    wanted = _Wanted(tuple(wishes.of(promise) for promise in promises), standings.stuck)
    if policy is not None and policy.guardrails.on_limit is OnLimit.PARTIAL:
        wanted = _held_back(snapshot, policy, wanted, wishes, given, capacities)
    return _Decided(standings, tuple(allocations), wishes, given, wanted)


def _work(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity], table: InstanceTypeTable) -> _Work:
    policy, decided = snapshot.policy, _decided(snapshot, capacities)
    standings, wishes, wanted = decided.standings, decided.wishes, decided.wanted
    to_write = _to_write(snapshot, decided, capacities)
    waves, prediction = predicted_path(snapshot, to_write, table)
    changes = in_order(waves, prediction)
    lines = tuple(
        sorted(
            (
                *(line for each in _as_written(decided, to_write.left_out) for line in each.lines),
                *(line for kept in (*standings.kept, *wanted.kept) for line in wishes.lines_of_kept(kept)),
            ),
            key=lambda line: (line.instance_type, line.team, line.unit),
        )
    )
    moving = (
        [] if policy is None else movements(snapshot, policy, goals_of(snapshot, changes), decided.given, capacities)
    )
    guardrails = Guardrails() if policy is None else policy.guardrails
    judged = judge(snapshot, guardrails, changes, moving, prediction, capacities)
    stalled = no_progress(snapshot, changes)
    findings = (
        *_findings(snapshot, standings, decided.allocations, capacities),
        *_without_row(wanted.desired),
        *map(_failed_and_kept, wanted.kept),
        *_budgets(snapshot, wanted.desired, standings.kept, to_write.left_out),
        *_left_out(to_write.left_out, capacities),
        *([stalled] if stalled else []),
    )
    # What has no effect is not tried again by itself.
    return _Work(lines, judged, prediction, findings, None if stalled else wanted.recheck_at)


def _to_write(snapshot: Snapshot, decided: _Decided, capacities: Mapping[str, TypeCapacity]) -> Writes:
    overcommit = snapshot.policy is not None and snapshot.policy.capacity.overcommit_percent > 0
    return writes(snapshot, decided.wanted.desired, capacities, decided.wanted.stuck, overcommit=overcommit)


def _as_written(decided: _Decided, left_out: Iterable[Change]) -> list[Desired]:
    """Return what quotas are to be; those that no wave can write are as they stand."""
    teams = {change.team for change in left_out}
    return [decided.wishes.not_written(each) if each.promise.team in teams else each for each in decided.wanted.desired]


def _held_back(
    snapshot: Snapshot,
    policy: PolicyDocument,
    wanted: _Wanted,
    wishes: Wishes,
    given: Iterable[Given],
    capacities: Mapping[str, TypeCapacity],
) -> _Wanted:
    """Return what the limits allow of what is wanted now; all of it, to be blocked, where they allow no step."""
    goals = wanted_goals(snapshot, [(each.promise, each.config) for each in wanted.desired])
    created_again = {each.promise.failed.compute_quota_id for each in wanted.desired if each.promise.failed}
    seconds = [quota for quota in wanted.stuck if quota.compute_quota_id not in created_again]
    held = hold_back(snapshot, policy, (*goals, *deletion_goals(snapshot, seconds)), given, capacities)
    if not held.moves:
        return wanted
    desired, kept = [], []
    for quota, goal in zip(seconds, held.goals[len(goals) :], strict=True):
        if quota.status not in NEVER_IN_FORCE and not goal.is_deleted:
            kept.append(Kept(quota, held.notes[goal.key]))
    for each, goal in zip(wanted.desired, held.goals, strict=False):
        failed = each.promise.failed
        if failed is not None and each.promise.holds is not None and not goal.is_deleted:
            kept.append(Kept(failed, held.notes[goal.key]))
        elif goal.key in held.notes:
            desired.append(wishes.held_back(each, goal.after, held.notes[goal.key]))
        else:
            desired.append(each)
    spared = {each.quota.compute_quota_id for each in kept}
    stuck = tuple(quota for quota in wanted.stuck if quota.compute_quota_id not in spared)
    return _Wanted(tuple(desired), stuck, held.recheck_at, tuple(kept))


def _wishes(
    snapshot: Snapshot, allocations: Iterable[TypeAllocation], capacities: Mapping[str, TypeCapacity]
) -> Wishes:
    if snapshot.policy is None:
        return Wishes(allocations, capacities, (), snapshot.taken_at)
    stopped = out_of_budget(snapshot.policy.budgets, snapshot.budget_use)
    return Wishes(allocations, capacities, snapshot.policy.leases, snapshot.taken_at, no_borrowing=stopped)


def _plan(snapshot: Snapshot, mode: Mode, capacities: Mapping[str, TypeCapacity], work: _Work) -> Plan:
    return Plan(
        plan_id="",
        cluster_name=snapshot.cluster.name,
        cluster_arn=snapshot.cluster.arn,
        snapshot_sha256=snapshot_sha256(snapshot),
        policy_version=snapshot.policy_version,
        mode=mode,
        outcome=Outcome.NOTHING_TO_DO,
        taken_at=snapshot.taken_at,
        capacity=tuple(capacity.line for capacity in capacities.values()),
        allocations=work.lines,
        changes=work.judged.changes,
        guardrails=work.judged.verdicts,
        findings=work.findings,
        prediction=work.prediction,
        recheck_at=_recheck_at(snapshot, capacities, work),
    )


def _outcome(plan: Plan, judged: Judged, approved_changes: str | None) -> Outcome:
    if any(finding.code == "policy-violation" for finding in plan.findings):
        return Outcome.BLOCKED
    if not plan.changes:
        return Outcome.NOTHING_TO_DO
    if plan.mode == "plan":
        return Outcome.PLANNED
    if any(finding.code == "no-progress" for finding in plan.findings):
        return Outcome.NO_PROGRESS
    if judged.is_blocked:
        return Outcome.BLOCKED
    approved = approved_changes is not None and approved_changes == changes_sha256(plan)
    return Outcome.NEEDS_APPROVAL if judged.needs_approval and not approved else Outcome.APPLY


def _capacities(snapshot: Snapshot, table: InstanceTypeTable) -> dict[str, TypeCapacity]:
    policy = snapshot.policy
    # Other machines of the EKS cluster (for add-ons, Fargate) are no capacity of HyperPod, whose types begin with ml.
    foreign_too = policy is not None and policy.cluster.backend is Backend.KUEUE
    nodes = (node for node in snapshot.nodes if node.instance_type)
    return count_capacity(
        (node for node in nodes if foreign_too or is_instance_type_name(node.instance_type)),
        CapacityRules() if policy is None else policy.capacity,
        snapshot.taken_at,
        table,
        instance_types=_named_types(snapshot, policy),
        memory_reserved_percent=snapshot.cluster.memory_reserved_percent,
        instance_groups=snapshot.cluster.instance_groups,
    )


def _named_types(snapshot: Snapshot, policy: PolicyDocument | None) -> set[str]:
    """Return the instance types that quotas and the document speak of, whether there are nodes or not."""
    configs = [quota.compute_quota_config for quota in snapshot.quotas]
    if policy is None:
        return {row.instance_type for config in configs for row in config.compute_quota_resources}
    configs += [team.quota for team in policy.teams if team.quota is not None]
    configs += [applied.adopted for applied in snapshot.applied if applied.adopted is not None]
    named = {row.instance_type for config in configs for row in config.compute_quota_resources}
    named |= {share.instance_type for team in policy.teams for share in team.share}
    return named | {lease.instance_type for lease in policy.leases}


def _findings(
    snapshot: Snapshot,
    standings: Standings,
    allocations: Iterable[TypeAllocation],
    capacities: Mapping[str, TypeCapacity],
) -> tuple[Finding, ...]:
    violations = [
        Finding(
            code="policy-violation",
            severity=Severity.ERROR,
            subject=each.path,
            because=f"{each.value}: {each.rule}",
            remedy="correct the document",
            evidence={"value": each.value, "rule": each.rule},
        )
        for each in snapshot.policy_violations
    ]
    told = [finding for allocation in allocations for finding in allocation.findings]
    over = overcommitment(quota_sums(snapshot.quotas, capacities), capacities)
    return (*violations, *snapshot.policy_findings, *standings.findings, *told, *over)


def _budgets(
    snapshot: Snapshot, desired: tuple[Desired, ...], kept: tuple[Kept, ...], left_out: Iterable[Change]
) -> Iterable[Finding]:
    if snapshot.policy is not None:
        budgets, uses = snapshot.policy.budgets, snapshot.budget_use
        yield from budget_findings(budgets, uses, said_borrowing(desired, kept, left_out))
        yield from unresumed(snapshot, desired, kept, out_of_budget(budgets, uses))


def _without_row(desired: Iterable[Desired]) -> Iterable[Finding]:
    """Report what a quota cannot hold because it has more instance types than the API takes."""
    for each in desired:
        if each.lost:
            team, types = each.promise.team, ", ".join(each.lost)
            because = f"{team} has more than {MAX_ROWS} instance types; its quota has nothing of {types}."
            remedy = "promise these types to other teams, or split the team"
            yield Finding("too-many-types", Severity.WARNING, team, because, remedy, {"instanceTypes": types})


def _failed_and_kept(kept: Kept) -> Finding:
    """Report a failed quota that limits keep from being deleted and created again."""
    quota = kept.quota
    because = f"The quota {quota.name} with status {quota.status} is left as it is: {kept.because}."
    remedy = "raise the limit, or delete the quota by hand"
    return Finding("held-back", Severity.WARNING, kept.team, because, remedy, {"quota": quota.name})


def _left_out(changes: Iterable[Change], capacities: Mapping[str, TypeCapacity]) -> Iterable[Finding]:
    """Report the quotas that no wave can write: they stay as they are, with all that they hold."""
    for change in changes:
        unknown = sorted(
            row.instance_type
            for row in getattr(change.after, "compute_quota_resources", ())
            if capacities[row.instance_type].resources is None and change.before is not None
        )
        code, why, remedy = "no-room", "there is no room for what it would take", "lower the quotas that hold it"
        if unknown:
            code, remedy = "unknown-instance-type", f"add {unknown[0]} to instanceTypes in the policy document"
            why = f"it gives and takes, and parts of {unknown[0]} cannot be split: its numbers are not known"
        because = f"The quota {change.name} is left as it is: {why}."
        yield Finding(code, Severity.WARNING, change.team, because, remedy, {"quota": change.name})


def _recheck_at(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity], work: _Work) -> datetime | None:
    """Return when time alone will change the answer."""
    moments = [capacity.recheck_at for capacity in capacities.values()]
    if snapshot.policy is not None:
        moments.append(next_moment(snapshot.policy.leases, snapshot.taken_at))
        moments.append(borrowing_resumes_at(snapshot.policy.budgets, snapshot.budget_use))
    moments.append(work.judged.opens_at.next_at)
    moments.append(work.recheck_at)
    if any(finding.code == IN_FLIGHT for finding in work.findings):
        moments.append(snapshot.taken_at + NEXT_STEP)
    return min((moment for moment in moments if moment is not None), default=None)
