"""The findings of a plan beyond those of capacity, leases and budgets."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final

from taskgov.allocation.allocate import TypeClaims
from taskgov.allocation.allocations import Allocation
from taskgov.allocation.budgets import budget_findings, out_of_budget, said_borrowing, unresumed
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.changes import quota_sums
from taskgov.allocation.desired_quotas import MAX_ROWS
from taskgov.allocation.doubts import state_findings
from taskgov.allocation.governed import GovernedQuotas, LeftAlone
from taskgov.allocation.kueue_version import version_findings
from taskgov.allocation.orchestrated import orchestrated_findings
from taskgov.allocation.overcommitment import overcommitment
from taskgov.allocation.plan import Change
from taskgov.allocation.refusals import asked_again_at
from taskgov.allocation.scheduler import refused_policy
from taskgov.allocation.wanted import Wanted
from taskgov.findings import Finding
from taskgov.findings.of_plan import TOO_MANY_TYPES
from taskgov.findings.of_state import CANNOT_BE_SPLIT, HELD_BACK, NO_ROOM, POLICY_VIOLATION, WRITE_REFUSED
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import RefusalError, RefusedWrite


def findings_of(
    snapshot: Snapshot,
    governed: GovernedQuotas,
    claims_by_type: Iterable[TypeClaims],
    capacities: Mapping[str, TypeCapacity],
) -> tuple[Finding, ...]:
    """Report violations of the document, obstacles, and promises that were not allocated in full."""
    violations = [
        POLICY_VIOLATION.about(
            violation.path,
            {"value": violation.value, "rule": violation.rule},
            value=violation.value,
            rule=violation.rule,
        )
        for violation in snapshot.policy_violations
    ]
    told = [finding for claims in claims_by_type for finding in claims.findings]
    over = overcommitment(quota_sums(snapshot.quotas, capacities), capacities)
    known = (*state_findings(snapshot), *version_findings(snapshot), *violations, *snapshot.policy_findings)
    return (*known, *orchestrated_findings(snapshot), *governed.findings, *told, *over)


def budgets_found(
    snapshot: Snapshot, wanted: Wanted, left_alone: tuple[LeftAlone, ...], left_out: Iterable[Change]
) -> Iterable[Finding]:
    """Report used budgets, and borrowing that does not resume by itself."""
    if snapshot.policy is not None:
        budgets, uses = snapshot.policy.budgets, snapshot.budget_use
        stay = [write.stays for write in wanted.refused if write.stays is not None]
        allocations, refused = (*wanted.allocations, *stay), {allocation.promise.team for allocation in stay}
        yield from budget_findings(budgets, uses, said_borrowing(allocations, left_alone, left_out, refused))
        yield from unresumed(snapshot, allocations, left_alone, out_of_budget(budgets, uses))


def refused_found(snapshot: Snapshot, wanted: Wanted) -> Iterable[Finding]:
    """Report the writes that are not made because they were refused, each with a remedy."""
    for refusal in in_the_way(snapshot, wanted):
        what = f"the quota {refusal.name}" if refusal.team else "the cluster policy"
        deed = next(verb for verb in ("create", "update", "delete") if refusal.kind.startswith(verb))
        evidence: dict[str, str | int] = {"quota": refusal.name, "kind": refusal.kind, "error": refusal.error.value}
        evidence |= {
            "at": refusal.at.isoformat(),
            "askedAgainAt": asked_again_at(refusal).isoformat(),
            "planId": refusal.plan_id,
        }
        yield WRITE_REFUSED.about(
            refusal.team or refusal.subject,
            evidence,
            deed=deed,
            what=what,
            at=refusal.at,
            error=refusal.error,
            message=_ended(refusal.because),
            again_at=asked_again_at(refusal),
            way_out=_WAYS_OUT[refusal.error],
            cluster=snapshot.cluster.name,
        )


def in_the_way(snapshot: Snapshot, wanted: Wanted) -> list[RefusedWrite]:
    """Return the refusals that block a write, by subject."""
    found = [refused.refusal for refused in wanted.refused if refused.is_wanted]
    policy = refused_policy(snapshot)
    return sorted([*found, *([policy] if policy else [])], key=attrgetter("subject"))


def _ended(said: str) -> str:
    return said if said.endswith((".", "!", "?")) else f"{said}."


_WAYS_OUT: Final[Mapping[RefusalError, str]] = {
    RefusalError.LIMIT_REACHED: (
        "raise the limit of the account for compute quotas per cluster, or whichever limit the message names: "
        "Service Quotas, AWS services, Amazon SageMaker (AWS Support, where it is not listed)"
    ),
    RefusalError.VALIDATION: "correct in the policy document what the message names",
    RefusalError.NOT_FOUND: "check whether somebody deleted the quota or the cluster; a missing quota is created again",
    RefusalError.ACCESS_DENIED: (
        "allow the role of the function apply_change the action that the message names, and look for a denial in the "
        "permissions boundary and in service control policies"
    ),
    RefusalError.FAILED_TO_SETTLE: "correct what the failure reason of the resource names",
}
"""What would make a refused write succeed."""


def without_row(allocations: Iterable[Allocation]) -> Iterable[Finding]:
    """Report the instance types for which a quota has no row left (API limit)."""
    for allocation in allocations:
        if allocation.lost:
            team, types = allocation.promise.team, ", ".join(allocation.lost)
            yield TOO_MANY_TYPES.about(team, {"instanceTypes": types}, team=team, most=MAX_ROWS, types=types)


def failed_and_kept(failed: LeftAlone) -> Finding:
    """Report a failed quota that limits keep from being deleted and created again."""
    name, status = failed.quota.name, failed.quota.status
    return HELD_BACK.about(failed.team, {"quota": name}, quota=name, status=status, because=failed.because)


def left_out_found(changes: Iterable[Change], capacities: Mapping[str, TypeCapacity]) -> Iterable[Finding]:
    """Report the quotas that no wave can write. They stay unchanged."""
    for change in changes:
        unknown = sorted(
            row.instance_type
            for row in getattr(change.after, "compute_quota_resources", ())
            if capacities[row.instance_type].resources is None and change.before is not None
        )
        evidence = {"quota": change.name}
        if unknown:
            yield CANNOT_BE_SPLIT.about(change.team, evidence, quota=change.name, instance_type=unknown[0])
        else:
            yield NO_ROOM.about(change.team, evidence, quota=change.name)
