"""What a plan reports beside its changes. The list of all findings is in `docs/allocation.md`."""

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
from taskgov.allocation.overcommitment import overcommitment
from taskgov.allocation.plan import Change
from taskgov.allocation.refusals import asked_again_at
from taskgov.allocation.scheduler import refused_policy
from taskgov.allocation.wanted import Wanted
from taskgov.findings import Finding, Severity
from taskgov.snapshot.model import RefusalError, RefusedWrite, Snapshot


def findings_of(
    snapshot: Snapshot,
    governed: GovernedQuotas,
    claims_by_type: Iterable[TypeClaims],
    capacities: Mapping[str, TypeCapacity],
) -> tuple[Finding, ...]:
    """Report what the document breaks, what stands in its way, and what was allocated otherwise than promised."""
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
    told = [finding for claims in claims_by_type for finding in claims.findings]
    over = overcommitment(quota_sums(snapshot.quotas, capacities), capacities)
    return (*state_findings(snapshot), *violations, *snapshot.policy_findings, *governed.findings, *told, *over)


def budgets_found(
    snapshot: Snapshot, wanted: Wanted, left_alone: tuple[LeftAlone, ...], left_out: Iterable[Change]
) -> Iterable[Finding]:
    """Report how far budgets are used up, and borrowing that does not come back by itself."""
    if snapshot.policy is not None:
        budgets, uses = snapshot.policy.budgets, snapshot.budget_use
        stay = [write.stays for write in wanted.refused if write.stays is not None]
        allocations, refused = (*wanted.allocations, *stay), {allocation.promise.team for allocation in stay}
        yield from budget_findings(budgets, uses, said_borrowing(allocations, left_alone, left_out, refused))
        yield from unresumed(snapshot, allocations, left_alone, out_of_budget(budgets, uses))


def refused_found(snapshot: Snapshot, wanted: Wanted) -> Iterable[Finding]:
    """Report the writes that are not made because they were refused, each with what would let them through."""
    for each in in_the_way(snapshot, wanted):
        until = f"{asked_again_at(each):%Y-%m-%d %H:%M} UTC"
        what = f"the quota {each.name}" if each.team else "the cluster policy"
        deed = next(verb for verb in ("create", "update", "delete") if each.kind.startswith(verb))
        because = (
            f"The service refused to {deed} {what} at {each.at:%Y-%m-%d %H:%M} UTC ({each.error}): "
            f"{_ended(each.because)} The plan does not ask again before {until}."
        )
        again = f"taskgov reconcile {snapshot.cluster.name} --retry-refused"
        remedy = f"{_REMEDIES[each.error]}; then ask again at once: {again}"
        evidence: dict[str, str | int] = {"quota": each.name, "kind": each.kind, "error": each.error.value}
        evidence |= {
            "at": each.at.isoformat(),
            "askedAgainAt": asked_again_at(each).isoformat(),
            "planId": each.plan_id,
        }
        yield Finding("write-refused", Severity.ERROR, each.team or each.subject, because, remedy, evidence)


def in_the_way(snapshot: Snapshot, wanted: Wanted) -> list[RefusedWrite]:
    """Return the refusals without which something would be written, by subject."""
    found = [each.refusal for each in wanted.refused if each.is_wanted]
    policy = refused_policy(snapshot)
    return sorted([*found, *([policy] if policy else [])], key=attrgetter("subject"))


def _ended(said: str) -> str:
    return said if said.endswith((".", "!", "?")) else f"{said}."


_REMEDIES: Final[Mapping[RefusalError, str]] = {
    RefusalError.LIMIT_REACHED: (
        "raise the limit of the account for compute quotas per cluster, or whichever limit the message names: "
        "Service Quotas, AWS services, Amazon SageMaker (AWS Support, where it is not listed)"
    ),
    RefusalError.VALIDATION: "correct in the policy document what the message names",
    RefusalError.NOT_FOUND: "see whether somebody deleted the quota or the cluster; what is gone is created again",
    RefusalError.ACCESS_DENIED: (
        "allow the role of the function apply_change the action that the message names, and look for a denial in the "
        "permissions boundary and in service control policies"
    ),
    RefusalError.FAILED_TO_SETTLE: "correct what the failure reason of the resource names",
}
"""What would let a refused write through."""


def without_row(allocations: Iterable[Allocation]) -> Iterable[Finding]:
    """Report what a quota cannot hold because it has more instance types than the API takes."""
    for allocation in allocations:
        if allocation.lost:
            team, types = allocation.promise.team, ", ".join(allocation.lost)
            because = f"{team} has more than {MAX_ROWS} instance types; its quota has nothing of {types}."
            remedy = "promise these types to other teams, or split the team"
            yield Finding("too-many-types", Severity.WARNING, team, because, remedy, {"instanceTypes": types})


def failed_and_kept(failed: LeftAlone) -> Finding:
    """Report a failed quota that limits keep from being deleted and created again."""
    quota = failed.quota
    because = f"The quota {quota.name} with status {quota.status} is left as it is: {failed.because}."
    remedy = "raise the limit, or delete the quota by hand"
    return Finding("held-back", Severity.WARNING, failed.team, because, remedy, {"quota": quota.name})


def left_out_found(changes: Iterable[Change], capacities: Mapping[str, TypeCapacity]) -> Iterable[Finding]:
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
