"""Who uses, borrows, lends and waits: Kueue's queues and workloads as a table of teams, instance types and resources.

Metrics, audit, explanations and the command line read it. For every team, instance type and resource

    guaranteed = own use + lent + idle        used = own use + borrowed + over quota

and over each cohort borrowed = lent, exactly (`taskgov.usage.loans` says how loans are attributed). Usage is what
workloads have reserved (`status.flavorsReservation`): that is what Kueue's scheduler counts, and the same as
`status.flavorsUsage` where there are no admission checks, as in HyperPod.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import Any, Final, NamedTuple

from taskgov.hyperpod import names
from taskgov.quantities import ResourceName, parse
from taskgov.scheduling.objects import ClusterQueue, FlavorResource, Quota, flavor_resource, split
from taskgov.scheduling.reading import read_cluster_queue, read_cohort
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KueueObjects
from taskgov.usage.loans import Account, LoanAttribution, attribute_alone, attribute_loans

KubernetesObject = Mapping[str, Any]
Place = tuple[str, ResourceName]
"""An instance type and a resource."""

INFINITE_SHARE: Final = 2**63 - 1
"""`status.fairSharing.weightedShare` of a queue with weight 0 that borrows: no number, but a flag."""


class QuotaUsage(NamedTuple):
    """One team on one instance type and resource, in base units (cpu in milli, memory in bytes)."""

    team: str
    queue: str
    instance_type: str
    resource: ResourceName
    guaranteed: int
    used: int
    borrowed: int
    over_quota: int
    lent: int
    idle: int
    borrow_limit: int | None
    """What the team may borrow; None means no limit; 0 outside a cohort."""

    @property
    def own_use(self) -> int:
        """What the team uses of its own guarantee."""
        return self.used - self.borrowed - self.over_quota

    @property
    def borrow_limit_utilisation(self) -> Fraction | None:
        """Borrowed as a part of the limit; None without a limit, and with a limit of nothing."""
        return Fraction(self.borrowed, self.borrow_limit) if self.borrow_limit else None


@dataclass(frozen=True, slots=True)
class FairShare:
    """Where a team stands in fair sharing, as Kueue reports it. An infinite share is a flag, never a number."""

    team: str
    weight: float
    weighted_share: int | None
    infinite: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """One cluster's usage: lines by team, instance type and resource."""

    lines: tuple[QuotaUsage, ...]
    fair_shares: tuple[FairShare, ...]

    def of_team(self, team: str) -> tuple[QuotaUsage, ...]:
        """Return the team's lines."""
        return tuple(line for line in self.lines if line.team == team)


@dataclass(frozen=True, slots=True)
class _Holder:
    """A queue, or a cohort that has quota of its own (which it only lends)."""

    name: str
    team: str
    root: str | None
    """The cohort at the top of its tree; None outside any."""
    quotas: Mapping[FlavorResource, Quota]
    used: Mapping[FlavorResource, int] = field(default_factory=dict)


def usage_of(cluster_queues: Iterable[KubernetesObject], cohorts: Iterable[KubernetesObject] = ()) -> Usage:
    """Read usage from ClusterQueues (v1beta1 or v1beta2) with their status, and from Cohorts where there are any."""
    return usage_in(KueueObjects(cluster_queues=tuple(cluster_queues), cohorts=tuple(cohorts)))


@once
def usage_in(kueue: KueueObjects) -> Usage:
    """Read usage from the queues and cohorts of one read of the cluster."""
    return _usage(kueue)


def usage_at(kueue: KueueObjects, places: Iterable[Place]) -> Usage:
    """Return the usage of these instance types and resources only: each stands by itself."""
    return _usage(kueue, places)


def places_in(kueue: KueueObjects) -> Mapping[Place, bool]:
    """Return the instance types and resources of all lines, and of each whether a line has an amount of it."""
    lines: set[FlavorResource] = set()
    amounts: set[FlavorResource] = set()
    for holder in _holders_in(kueue):
        used = [key for key, amount in holder.used.items() if amount]
        lines.update(holder.quotas, used)
        amounts.update((key for key, quota in holder.quotas.items() if quota.nominal), used)
    return {split(key): key in amounts for key in lines}


def _usage(kueue: KueueObjects, places: Iterable[Place] | None = None) -> Usage:
    by_place = attrgetter("team", "instance_type", "resource", "queue")
    lines = sorted(_lines(_holders_in(kueue), places), key=by_place)
    return Usage(tuple(lines), tuple(_fair_share(*queue) for queue in _sorted_queues(kueue)))


@once
def queues_in(kueue: KueueObjects) -> tuple[ClusterQueue, ...]:
    """Return the ClusterQueues of a snapshot."""
    return tuple(map(read_cluster_queue, kueue.cluster_queues))


def team_of(cluster_queue: KubernetesObject) -> str:
    """Return whose queue it is: by HyperPod's label, else by its name, else the queue's own name."""
    metadata = cluster_queue["metadata"]
    labelled = (metadata.get("labels") or {}).get(names.QUOTA_ALLOCATION_LABEL)
    return str(labelled or names.team_of_cluster_queue(metadata["name"]) or metadata["name"])


def _sorted_queues(kueue: KueueObjects) -> list[tuple[KubernetesObject, ClusterQueue]]:
    """Return the ClusterQueues and what they say, by name."""
    return sorted(zip(kueue.cluster_queues, queues_in(kueue), strict=True), key=lambda pair: pair[1].name)


@once
def _holders_in(kueue: KueueObjects) -> tuple[_Holder, ...]:
    read = [read_cohort(cohort) for cohort in kueue.cohorts]
    parents = {cohort.name: cohort.parent for cohort in read}
    own = [
        _Holder(f"cohort/{cohort.name}", cohort.name, _root(cohort.name, parents), cohort.quotas)
        for cohort in read
        if cohort.quotas
    ]
    return (*(_queue_holder(*queue, parents) for queue in _sorted_queues(kueue)), *own)


def _queue_holder(queue: KubernetesObject, read: ClusterQueue, parents: Mapping[str, str | None]) -> _Holder:
    root = _root(read.cohort, parents) if read.cohort else None
    return _Holder(read.name, team_of(queue), root, read.quotas, _reserved(queue))


def _root(cohort: str, parents: Mapping[str, str | None]) -> str:
    """Climb to the top; a cohort that no object describes has no parent. Kueue stops queues in a circle."""
    seen: set[str] = set()
    while (parent := parents.get(cohort)) and cohort not in seen:
        seen.add(cohort)
        cohort = parent
    return min(seen) if cohort in seen else cohort


def _reserved(queue: KubernetesObject) -> dict[FlavorResource, int]:
    status = queue.get("status") or {}
    flavors = status.get("flavorsReservation") or status.get("flavorsUsage") or ()
    return {
        flavor_resource(flavor["name"], resource["name"]): parse(resource["name"], resource.get("total") or 0)
        for flavor in flavors
        for resource in flavor.get("resources") or ()
    }


def _lines(holders: Sequence[_Holder], places: Iterable[Place] | None) -> Iterator[QuotaUsage]:
    """Settle each cohort tree by flavor and resource, and everybody outside a cohort alone; give the lines of places.

    Without `places`, give all lines.
    """
    wanted = None if places is None else {flavor_resource(*place) for place in places}
    pools: dict[tuple[str, FlavorResource], list[_Holder]] = {}
    for holder in holders:
        keys = holder.quotas.keys() | holder.used.keys()
        for key in keys if wanted is None else keys & wanted:
            if holder.root is not None:
                pools.setdefault((holder.root, key), []).append(holder)
            elif _is_shown(holder, key):
                account = _account(holder, key)
                yield _line(holder, split(key), account, attribute_alone(account))
    for (_, key), members in pools.items():
        accounts = [_account(member, key) for member in members]
        loans, place = attribute_loans(accounts), split(key)
        for holder, account in zip(members, accounts, strict=True):
            if _is_shown(holder, key):
                yield _line(holder, place, account, loans[holder.name])


def _is_shown(holder: _Holder, key: FlavorResource) -> bool:
    return key in holder.quotas or bool(holder.used[key])


def _line(holder: _Holder, place: Place, account: Account, loans: LoanAttribution) -> QuotaUsage:
    limit = account.borrowing_limit if holder.root else 0
    return QuotaUsage(holder.team, holder.name, *place, account.nominal, account.used, *loans, limit)


_NO_QUOTA: Final = Quota(nominal=0, borrowing_limit=0)


def _account(holder: _Holder, key: FlavorResource) -> Account:
    """Return the account of a quota; where an instance type was taken from the queue, what still runs has none."""
    quota = holder.quotas.get(key, _NO_QUOTA)
    return Account(holder.name, quota.nominal, holder.used.get(key, 0), quota.borrowing_limit, quota.lending_limit)


def _fair_share(queue: KubernetesObject, read: ClusterQueue) -> FairShare:
    share = ((queue.get("status") or {}).get("fairSharing") or {}).get("weightedShare")
    infinite = share is not None and int(share) >= INFINITE_SHARE
    number = None if share is None or infinite else int(share)
    return FairShare(team_of(queue), read.weight, number, infinite)
