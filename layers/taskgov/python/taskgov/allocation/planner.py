"""Build a plan from a snapshot: the only entry point of this package.

`plan_quotas` is a pure function. The same snapshot and mode give the same plan, byte for byte. After a plan is applied,
the next plan has no changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from taskgov.allocation.allocations import Allocation
from taskgov.allocation.authorship import author_verdicts
from taskgov.allocation.budgets import borrowing_resumes_at
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.capacity_ends import ends_found
from taskgov.allocation.codec import changes_sha256, plan_id_of
from taskgov.allocation.deciding import as_written, decide, planned_lines
from taskgov.allocation.doubts import as_onlooker
from taskgov.allocation.goals import goals_of
from taskgov.allocation.guardrails import Judged, Unconfirmed, judge
from taskgov.allocation.lease_ends import refused_leases_found
from taskgov.allocation.leases import next_moment
from taskgov.allocation.mass_loss import loss_findings, mass_losses
from taskgov.allocation.partial import NEXT_STEP
from taskgov.allocation.parts import RowKey, row_key
from taskgov.allocation.plan import MassLoss, Outcome, Plan, Prediction, TeamAllocation
from taskgov.allocation.plan_findings import (
    budgets_found,
    failed_and_kept,
    findings_of,
    in_the_way,
    left_out_found,
    refused_found,
    without_row,
)
from taskgov.allocation.played import PlayedPath, predicted_path
from taskgov.allocation.progress import no_progress
from taskgov.allocation.promises import today_rows
from taskgov.allocation.quota_deltas import quota_deltas
from taskgov.allocation.refusals import asked_again_at
from taskgov.allocation.reviewed import reviewed_verdicts
from taskgov.allocation.snapshot_capacity import capacities_of
from taskgov.allocation.sources import Trail
from taskgov.allocation.writes import in_order
from taskgov.findings import Finding
from taskgov.findings.of_plan import QUOTA_IN_FLIGHT
from taskgov.findings.of_state import NO_PROGRESS, OTHER_STACK, POLICY_VIOLATION
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.document import Guardrails
from taskgov.snapshot.codec import snapshot_sha256
from taskgov.snapshot.model import Snapshot

Mode = Literal["plan", "apply"]


def plan_quotas(
    snapshot: Snapshot,
    *,
    mode: Mode,
    approved_changes: str | None = None,
    needs_approver: bool = False,
    played: list[PlayedPath] | None = None,
    digest: str | None = None,
) -> Plan:
    """Return the plan for one cluster. `digest` is `snapshot_sha256` of the snapshot, where it is known already.

    `approved_changes` is the digest of the changes that a person approved: when they are still the changes of this
    plan, an approval is no longer needed. With `needs_approver` a document whose author is not known, and that nobody
    has accepted, needs one. `played` is given the path as the prediction played it (`predicted_path`).

    | the document | mode | outcome |
    | --- | --- | --- |
    | breaks rules | any | `blocked`, one finding for each violation, no changes |
    | any, on a cluster that another stack governs | `apply` | `blocked` |
    | is missing | any | `nothing-to-do`: today's quotas are the promise |
    | is there | `plan` | `planned` when there are changes; guardrails are shown |
    | is there | `apply` | `apply`, `needs-approval`, `blocked` or `no-progress` when there are changes |
    """
    table = snapshot.instance_types
    capacities = capacities_of(snapshot)
    work = _work(snapshot, capacities, table, needs_approver=needs_approver, played=played)
    plan = _plan(snapshot, mode, digest if digest is not None else snapshot_sha256(snapshot), capacities, work)
    judged = replace(work.judged, verdicts=(*work.judged.verdicts, *reviewed_verdicts(snapshot, plan)))
    return replace(
        plan,
        plan_id=plan_id_of(plan),
        guardrails=judged.verdicts,
        outcome=_outcome(plan, judged, approved_changes),
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """The decisions, before they are put into a plan."""

    lines: tuple[TeamAllocation, ...]
    judged: Judged
    prediction: Prediction
    findings: tuple[Finding, ...]
    recheck_at: datetime | None
    """When the rest of a plan that limits cut back can continue, or what was refused is tried again."""


def row_sources(snapshot: Snapshot) -> dict[str, dict[RowKey, Trail]]:
    """Return where each number of each quota of the plan comes from: team -> row -> trail.

    The sources of a row add up to what the plan makes of it. It is made again here, because a plan does not carry it.
    """
    capacities = capacities_of(snapshot)
    decided = decide(snapshot, capacities)
    found = {allocation.promise.team: _trails(allocation) for allocation in as_written(decided)}
    for left in (*decided.governed.left_alone, *decided.wanted.left_alone):
        rows, cause = today_rows(left.quota).items(), decided.wanted.cause_of(left)
        found.setdefault(
            left.team, {key: Trail().to(row, cause, f"left as it is: {left.because}") for key, row in rows}
        )
    return found


def _trails(allocation: Allocation) -> dict[RowKey, Trail]:
    """Return the trails of a quota's rows, and those that end in nothing and find no row in it."""
    trails = {key: tell() for key, tell in allocation.tells.items()}
    rows = {row_key(row) for row in allocation.config.compute_quota_resources}
    return {key: trail for key, trail in trails.items() if trail.sources or key in rows}


def _work(
    snapshot: Snapshot,
    capacities: Mapping[str, TypeCapacity],
    table: InstanceTypeTable,
    *,
    needs_approver: bool,
    played: list[PlayedPath] | None,
) -> _Work:
    policy, decided = snapshot.policy, decide(snapshot, capacities)
    governed, wanted = decided.governed, decided.wanted
    planned = decided.writes
    waves, prediction = predicted_path(snapshot, planned, table, played)
    changes = in_order(waves, prediction)
    moving = (
        [] if policy is None else quota_deltas(snapshot, policy, goals_of(snapshot, changes), decided.given, capacities)
    )
    guardrails = Guardrails() if policy is None else policy.guardrails
    losses = mass_losses(snapshot)
    unconfirmed = Unconfirmed(losses, _capacities_without(snapshot, losses) if losses else {})
    judged = judge(snapshot, guardrails, changes, moving, prediction, capacities, unconfirmed)
    if needs_approver and changes:
        judged = replace(judged, verdicts=(*judged.verdicts, *author_verdicts(snapshot)))
    stalled = no_progress(snapshot, changes)
    findings = (
        *loss_findings(snapshot, losses),
        *ends_found(snapshot, decided),
        *refused_leases_found(decided.refused_leases),
        *findings_of(snapshot, governed, decided.claims_by_type, capacities),
        *without_row(wanted.allocations),
        *map(failed_and_kept, wanted.kept),
        *budgets_found(snapshot, wanted, governed.left_alone, planned.left_out),
        *refused_found(snapshot, wanted),
        *left_out_found(planned.left_out, capacities),
        *([stalled] if stalled else []),
    )
    # What has no effect is not tried again by itself.
    moments = [asked_again_at(refusal) for refusal in in_the_way(snapshot, wanted)]
    moments += [] if stalled or wanted.recheck_at is None else [wanted.recheck_at]
    return _Work(planned_lines(decided), judged, prediction, findings, min(moments, default=None))


def _plan(snapshot: Snapshot, mode: Mode, digest: str, capacities: Mapping[str, TypeCapacity], work: _Work) -> Plan:
    return Plan(
        plan_id="",
        cluster_name=snapshot.cluster.name,
        cluster_arn=snapshot.cluster.arn,
        snapshot_sha256=digest,
        policy_version=snapshot.policy_version,
        mode=mode,
        outcome=Outcome.NOTHING_TO_DO,
        taken_at=snapshot.taken_at,
        capacity=tuple(capacity.line for capacity in capacities.values()),
        allocations=work.lines,
        changes=work.judged.changes,
        guardrails=work.judged.verdicts,
        findings=work.findings if mode == "apply" else tuple(map(as_onlooker, work.findings)),
        prediction=work.prediction,
        recheck_at=_recheck_at(snapshot, capacities, work),
        losses=work.judged.losses,
    )


def _outcome(plan: Plan, judged: Judged, approved_changes: str | None) -> Outcome:
    blocking = (POLICY_VIOLATION, *((OTHER_STACK,) if plan.mode == "apply" else ()))
    if any(kind.is_of(finding) for kind in blocking for finding in plan.findings):
        return Outcome.BLOCKED
    if not plan.changes:
        return Outcome.NOTHING_TO_DO
    if plan.mode == "plan":
        return Outcome.PLANNED
    if any(map(NO_PROGRESS.is_of, plan.findings)):
        return Outcome.NO_PROGRESS
    if judged.is_blocked:
        return Outcome.BLOCKED
    approved = approved_changes is not None and approved_changes == changes_sha256(plan)
    return Outcome.NEEDS_APPROVAL if judged.needs_approval and not approved else Outcome.APPLY


def _capacities_without(snapshot: Snapshot, losses: Iterable[MassLoss]) -> dict[str, TypeCapacity]:
    """Return the capacity without the lost nodes."""
    lost = {name for loss in losses for name in loss.nodes}
    return capacities_of(replace(snapshot, nodes=tuple(node for node in snapshot.nodes if node.name not in lost)))


def _recheck_at(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity], work: _Work) -> datetime | None:
    """Return when time alone will change the plan."""
    moments = [capacity.recheck_at for capacity in capacities.values()]
    # Machines that are lost just before their reservation takes them back are confirmed then.
    moments += [node.leaves_at for node in snapshot.gone if node.leaves_at and node.leaves_at > snapshot.taken_at]
    if snapshot.policy is not None:
        moments.append(next_moment(snapshot.policy.leases, snapshot.taken_at))
        moments.append(borrowing_resumes_at(snapshot.policy.budgets, snapshot.budget_use))
    moments.append(work.judged.opens_at.next_at)
    moments.append(work.recheck_at)
    if any(map(QUOTA_IN_FLIGHT.is_of, work.findings)):
        moments.append(snapshot.taken_at + NEXT_STEP)
    return min((moment for moment in moments if moment is not None), default=None)
