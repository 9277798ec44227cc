"""What does each team hold, what is it entitled to, and who lends to it? The use of a cluster, against its capacity.

Metrics and the audit report show the same. Amounts are in base units.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from taskgov.quantities import ResourceName
from taskgov.snapshot.model import Snapshot
from taskgov.usage.capacity import Capacity, Offers, capacities_of, leading_in, leading_resources
from taskgov.usage.loans import apportion
from taskgov.usage.lost_work import LostWork, lost_work
from taskgov.usage.quota_usage import Place, QuotaUsage, Usage, usage_at, usage_in
from taskgov.usage.shares import Roots, entitlements_of, pool_of, roots_of
from taskgov.usage.workload_facts import facts_in, with_backlog_alone
from taskgov.usage.workloads import Preemption, TeamPending, pending_by_team, preemptions_of


class TeamUsage(NamedTuple):
    """One team on one instance type and resource."""

    usage: QuotaUsage
    leading: bool
    entitlement: int | None
    """What fair sharing would give the team now; None where it is off, and for resources that do not lead."""
    infinite_share: bool
    """The team has weight 0 and borrows: its weighted share is infinite."""


@dataclass(frozen=True, slots=True)
class Loan:
    """What one team borrows and another lends: an attribution."""

    borrower: str
    lender: str
    instance_type: str
    resource: ResourceName
    amount: int


@dataclass(frozen=True, slots=True)
class ClusterUsage:
    """The whole cluster, by team, instance type and resource."""

    teams: tuple[TeamUsage, ...]
    loans: tuple[Loan, ...]
    capacities: tuple[Capacity, ...]
    pending: tuple[TeamPending, ...]
    preemptions: tuple[Preemption, ...]
    lost: LostWork
    """GPU-seconds that the preemptions threw away, by their identity, where they are known."""


def cluster_usage(snapshot: Snapshot, *, with_loans: bool = True) -> ClusterUsage:
    """Return what everybody has at the moment of the snapshot.

    `with_loans` also says who lends to whom: as many lines as borrowers times lenders, where much is borrowed.
    """
    usage, offers = usage_in(snapshot.kueue), Offers(snapshot)
    return _cluster_usage(snapshot, usage, offers, leading_resources(usage, offers), with_loans=with_loans)


def leading_usage(snapshot: Snapshot) -> ClusterUsage:
    """Return the same of leading resources only, without loans: that is what tables for people show."""
    # Once for all that follows: what is derived from the objects is known by the identity of their set.
    snapshot = replace(snapshot, kueue=with_backlog_alone(snapshot.kueue))
    offers = Offers(snapshot)
    leading = leading_in(snapshot.kueue, offers)
    return _cluster_usage(snapshot, usage_at(snapshot.kueue, leading), offers, leading, with_loans=False)


def _cluster_usage(
    snapshot: Snapshot, usage: Usage, offers: Offers, leading: set[Place], *, with_loans: bool
) -> ClusterUsage:
    workloads, roots = facts_in(snapshot.kueue), roots_of(snapshot.kueue)
    preemptions = preemptions_of(workloads)
    entitled = entitlements_of(snapshot, usage, leading, roots)
    unweighted = {share.team for share in usage.fair_shares if share.weight == 0}
    return ClusterUsage(
        teams=tuple(
            TeamUsage(
                line,
                is_leading,
                entitled.get((line.queue, line.instance_type, line.resource)) if is_leading else None,
                line.borrowed > 0 and line.team in unweighted,
            )
            for line in usage.lines
            for is_leading in ((line.instance_type, line.resource) in leading,)
        ),
        loans=tuple(_loans(usage.lines, roots)) if with_loans else (),
        capacities=tuple(capacities_of(usage, offers, leading)),
        pending=pending_by_team(snapshot.kueue),
        preemptions=preemptions,
        lost=lost_work(preemptions, workloads),
    )


def _loans(lines: Iterable[QuotaUsage], roots: Roots) -> Iterator[Loan]:
    """Attribute what each team borrows to the lenders, in proportion to what they still lend; by name."""
    for (_, instance_type, resource), pool in groupby(sorted(lines, key=pool_of(roots)), key=pool_of(roots)):
        members = list(pool)
        lent = {line.team: line.lent for line in members if line.lent}
        for line in (line for line in members if line.borrowed):
            for lender, amount in apportion(line.borrowed, lent).items():
                lent[lender] -= amount
                if amount:
                    yield Loan(line.team, lender, instance_type, resource, amount)
