"""What fair sharing would give each team now, and whose quota is in one pool with whose."""

from collections.abc import Callable, Mapping

from taskgov.quantities import ResourceName
from taskgov.scheduling.reading import read_cohort
from taskgov.snapshot.derived import once
from taskgov.snapshot.manager import config_of
from taskgov.snapshot.model import KueueObjects, Snapshot
from taskgov.usage.demand import waiting_demand
from taskgov.usage.entitlement import Claimant, entitlements
from taskgov.usage.quota_usage import Place, QuotaUsage, Usage, queues_in

Roots = Mapping[str, str | None]
"""Holder of quota -> the cohort at the top of its tree; None outside any."""


@once
def roots_of(kueue: KueueObjects) -> Roots:
    """Return, for each holder of quota, the cohort at the top of its tree; None outside any."""
    parents = {cohort.name: cohort.parent for cohort in map(read_cohort, kueue.cohorts)}

    def root(cohort: str) -> str:
        for _ in parents:  # no longer than that, should cohorts stand in a circle
            cohort = parents.get(cohort) or cohort
        return cohort

    return {
        **{queue.name: root(queue.cohort) if queue.cohort else None for queue in queues_in(kueue)},
        **{f"cohort/{name}": root(name) for name in parents},
    }


def pool_of(roots: Roots) -> Callable[[QuotaUsage], tuple[str, str, ResourceName]]:
    """Group lines that share: those of one cohort, and each queue outside any cohort by itself."""
    return lambda line: (roots.get(line.queue) or f"queue/{line.queue}", line.instance_type, line.resource)


def entitlements_of(
    snapshot: Snapshot, usage: Usage, leading: set[Place], roots: Roots
) -> dict[tuple[str, str, ResourceName], int]:
    """Return what fair sharing would give each queue of each leading resource; nothing where fair sharing is off."""
    if not _shares_fairly(snapshot, usage):
        return {}
    demand = waiting_demand(snapshot.kueue)
    # Weights may be fractions; only their ratio matters.
    weights = {share.team: round(share.weight * 1000) for share in usage.fair_shares}
    pools: dict[tuple[str, str, ResourceName], list[QuotaUsage]] = {}
    pool = pool_of(roots)
    for line in usage.lines:
        if (line.instance_type, line.resource) in leading:
            pools.setdefault(pool(line), []).append(line)
    entitled: dict[tuple[str, str, ResourceName], int] = {}
    for (_, instance_type, resource), members in pools.items():
        claimants = [_claimant(line, weights, demand.get((line.queue, instance_type, resource), 0)) for line in members]
        capacity = {resource: sum(line.guaranteed for line in members)}
        shares = entitlements(claimants, capacity)
        entitled |= {(line.queue, instance_type, resource): shares[line.queue][resource] for line in members}
    return entitled


def _claimant(line: QuotaUsage, weights: Mapping[str, int], waiting: int) -> Claimant:
    """Return a team with its demand: what it holds and waits for, as far as quota and borrow limit let it."""
    wants = line.used + waiting
    if line.borrow_limit is not None:
        wants = min(wants, line.guaranteed + line.borrow_limit)
    return Claimant(line.queue, weights.get(line.team, 0), {line.resource: line.guaranteed}, {line.resource: wants})


def _shares_fairly(snapshot: Snapshot, usage: Usage) -> bool:
    """Ask the manager's configuration, or else the cluster policy; without either, see whether Kueue reports shares."""
    if snapshot.manager.configuration is not None or snapshot.scheduler_config:
        policy = snapshot.scheduler_config.scheduler_config if snapshot.scheduler_config else None
        return config_of(snapshot.manager, policy).fair_sharing
    return any(share.infinite or share.weighted_share is not None for share in usage.fair_shares)
