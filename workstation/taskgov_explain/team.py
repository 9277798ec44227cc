"""Why does this team have this quota, and this share? The answer of `taskgov explain --team`.

The plan has the reason of each number; this page adds where its units came from (promise, leases, what a shortage
took), what the team uses, borrows and lends of it, and what fair sharing gives it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from taskgov.allocation.parts import RowKey
from taskgov.allocation.plan import Plan, TeamAllocation
from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.allocation.promises import today_rows
from taskgov.allocation.sources import Cause, Trail
from taskgov.allocation.wording import capacity_words, said_number, value_in
from taskgov.findings import Finding
from taskgov.hyperpod.borrowing import sharing_of
from taskgov.hyperpod.model import ComputeQuota
from taskgov.number_text import counted
from taskgov.policy.document import PolicyDocument, TeamPolicy
from taskgov.snapshot.model import Snapshot
from taskgov.usage.amounts import words
from taskgov.usage.cluster_usage import ClusterUsage, Loan, TeamUsage, cluster_usage
from taskgov_explain.find import UnknownNameError, nearest


@dataclass(frozen=True, slots=True)
class Source:
    """Where units of a quota came from (a promise, a lease), or what took them, as a negative number, and the cause."""

    amount: float
    origin: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """One number of the quota: today, as planned, why, and where it comes from (the sum of `sources` is `after`)."""

    instance_type: str
    unit: str
    before: float
    after: float
    because: str
    sources: tuple[Source, ...]
    capacity: str


@dataclass(frozen=True, slots=True)
class ShareLine:
    """One instance type and resource as the team stands now, in base units, with a sentence."""

    instance_type: str
    resource: str
    guaranteed: int
    used: int
    borrowed: int
    over_quota: int
    lent: int
    idle: int
    entitlement: int | None
    borrow_limit: int | None
    because: str


@dataclass(frozen=True, slots=True)
class TeamExplanation:
    """The answer about one team."""

    team: str
    governed: str
    """What governs the quota: the document's promise, or the reason why it is left alone."""
    sharing: str
    quotas: tuple[QuotaLine, ...]
    shares: tuple[ShareLine, ...]
    pending: str
    findings: tuple[Finding, ...]


def explain_team(snapshot: Snapshot, team: str) -> TeamExplanation:
    """Explain one team's quota and share. Raises `UnknownNameError` for an unknown team."""
    plan, standing = plan_quotas(snapshot, mode="plan"), cluster_usage(snapshot)
    lines = [line for line in plan.allocations if line.team == team]
    stands = [team_standing for team_standing in standing.teams if team_standing.usage.team == team]
    quota = next(
        (compute_quota for compute_quota in snapshot.quotas if compute_quota.compute_quota_target.team_name == team),
        None,
    )
    if not lines and not stands and quota is None:
        known = {
            *(line.team for line in plan.allocations),
            *(team_standing.usage.team for team_standing in standing.teams),
        }
        raise UnknownNameError(f"there is no team named {team}; {nearest(team, known)}")
    return TeamExplanation(
        team=team,
        governed=_governed(snapshot, team),
        sharing=_sharing(snapshot, quota),
        quotas=tuple(_quota_lines(snapshot, plan, team)),
        shares=tuple(_share_line(team_standing, standing.loans) for team_standing in stands if team_standing.leading),
        pending=_pending(standing, team),
        findings=tuple(finding for finding in plan.findings if team in finding.subject.split("/")),
    )


# Why this quota


def _governed(snapshot: Snapshot, team: str) -> str:
    policy = snapshot.policy
    if policy is None:
        why = "The policy document breaks rules" if snapshot.policy_violations else "There is no policy document"
        return f"{why}: today's quota is the guarantee, and nothing changes it."
    if policy.shared_pool is not None and policy.shared_pool.team == team:
        return "It is the shared pool: it holds the remaining capacity, and only lends."
    if team in policy.guardrails.freeze:
        return "The document freezes it: its quota is left as it is."
    promise = _promise(policy, team)
    if promise is None:
        return "It is not in the policy document: its quota is left as it is, and counts as taken."
    fixed = promise.quota is not None and promise.quota.compute_quota_resources
    families = ", ".join(family_promise.family for family_promise in promise.families)
    given = (("a fixed quota", fixed), ("a share", promise.share), (f"a part of families ({families})", families))
    kinds = [kind for kind, is_given in given if is_given]
    return f"The document guarantees it {' and '.join(kinds) or 'nothing'} (tier {promise.tier})."


def _quota_lines(snapshot: Snapshot, plan: Plan, team: str) -> Iterator[QuotaLine]:
    """Yield each number of the team's quota by itself, with where it comes from: one line for each unit of a row."""
    trails = row_sources(snapshot).get(team, {})
    told = [line for line in plan.allocations if line.team == team]
    for (instance_type, profile), trail in sorted(trails.items()):
        lines = [line for line in told if line.instance_type == instance_type]
        for unit, after in trail.amounts.items():
            line = next((allocation for allocation in lines if allocation.unit in {unit, profile}), lines[0])
            before = line.before if line.unit == unit else _today(snapshot, team, (instance_type, profile), unit)
            because = line.because if line.unit == unit else _in_unit(line, unit, before, _number(after))
            in_unit = replace(line, unit=unit, before=before, after=_number(after), because=because)
            yield _quota_line(plan, in_unit, tuple(_sources(trail, unit)))
    kept = {key[0] for key in trails}
    for line in told:
        if line.instance_type not in kept:
            yield _quota_line(plan, line, ())


def _in_unit(line: TeamAllocation, unit: str, before: float, after: float) -> str:
    """Return the sentence of a row with the numbers of another unit of it."""
    _, _, why = line.because.partition(": ")
    return f"{line.team} {said_number(before)} -> {said_number(after)} {unit} {line.instance_type}: {why}"


def _quota_line(plan: Plan, line: TeamAllocation, sources: tuple[Source, ...]) -> QuotaLine:
    capacity = next((supply for supply in plan.capacity if supply.instance_type == line.instance_type), None)
    return QuotaLine(
        instance_type=line.instance_type,
        unit=line.unit,
        before=line.before,
        after=line.after,
        because=line.because,
        sources=sources,
        capacity=capacity_words(capacity) if capacity else "",
    )


def _sources(trail: Trail, unit: str) -> Iterator[Source]:
    for source in trail.sources:
        if amount := source.amounts.get(unit):
            yield Source(_number(amount), source.because, source.cause)


def _number(amount: Fraction) -> float:
    return amount.numerator if amount.denominator == 1 else float(amount)


def _today(snapshot: Snapshot, team: str, key: RowKey, unit: str) -> float:
    quota = next(
        (compute_quota for compute_quota in snapshot.quotas if compute_quota.compute_quota_target.team_name == team),
        None,
    )
    row = today_rows(quota).get(key)
    return 0 if row is None else value_in(row, unit)


# Why this share


def _sharing(snapshot: Snapshot, quota: ComputeQuota | None) -> str:
    weight = quota.compute_quota_target.fair_share_weight if quota else None
    fair = snapshot.scheduler_config is not None
    weighs = f"fair-share weight {weight or 0}" if fair else "no cluster policy: first come, first served"
    if quota is None:
        return weighs
    sharing = sharing_of(quota.compute_quota_config)
    limit = "" if sharing.borrow_limit is None else f", borrow limit {sharing.borrow_limit} % of its quota"
    return f"{sharing.strategy}{limit}; {weighs}"


def _share_line(standing: TeamUsage, loans: Iterable[Loan]) -> ShareLine:
    usage = standing.usage
    return ShareLine(
        instance_type=usage.instance_type,
        resource=usage.resource,
        guaranteed=usage.guaranteed,
        used=usage.used,
        borrowed=usage.borrowed,
        over_quota=usage.over_quota,
        lent=usage.lent,
        idle=usage.idle,
        entitlement=standing.entitlement,
        borrow_limit=usage.borrow_limit,
        because=_share_words(standing, [loan for loan in loans if _is_about(loan, standing)]),
    )


def _is_about(loan: Loan, standing: TeamUsage) -> bool:
    usage = standing.usage
    here = (loan.instance_type, loan.resource) == (usage.instance_type, usage.resource)
    return here and usage.team in {loan.borrower, loan.lender}


def _share_words(standing: TeamUsage, loans: list[Loan]) -> str:
    usage = standing.usage
    parts = [f"uses {words(usage.resource, usage.used)} with a quota of {usage.guaranteed}"]
    parts += [f"borrows {loan.amount} from {loan.lender}" for loan in loans if loan.borrower == usage.team]
    parts += [f"lends {loan.amount} to {loan.borrower}" for loan in loans if loan.lender == usage.team]
    if usage.over_quota:
        parts.append(f"holds {usage.over_quota} over quota, since its quota was lowered under running work")
    if standing.entitlement is not None:
        parts.append(f"fair sharing gives it {standing.entitlement}")
    if standing.infinite_share:
        parts.append("has weight 0 and borrows: teams with a weight above 0 are admitted first")
    return f"{usage.team} {', '.join(parts)}."


def _pending(standing: ClusterUsage, team: str) -> str:
    waiting = next((pending for pending in standing.pending if pending.team == team), None)
    if waiting is None:
        return "None of its work waits."
    since = f"{waiting.oldest_since:%Y-%m-%d %H:%M}"
    waits = counted(waiting.workloads, "workload waits", "workloads wait")
    return f"{waits} for {counted(waiting.accelerators, 'accelerator')}, the oldest since {since}."


def _promise(policy: PolicyDocument, team: str) -> TeamPolicy | None:
    return next((promise for promise in policy.teams if promise.name == team), None)
