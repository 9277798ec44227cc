"""The goal of each quota in a plan: the value that limits compare with, the present value, and the planned value.

A quota may be written twice on the path of a plan, or deleted and created again. Limits, `changedGpus` and
`minimumQuota` compare the value before the first write with the value of the last one.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, quota_key
from taskgov.allocation.promises import Promise
from taskgov.allocation.refusals import standing_refusals
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota, began_from

NOTHING = ComputeQuotaConfig()


@dataclass(frozen=True, slots=True)
class Goal:
    """One quota of a team, now and as planned. What does not exist is a quota without rows."""

    name: str
    """The quota's name; one that is deleted and created again keeps it."""
    team: str
    before: ComputeQuotaConfig
    """The value that limits compare with: the present one, or the one before an interrupted path at its low write."""
    stands: ComputeQuotaConfig
    after: ComputeQuotaConfig
    applied: AppliedQuota | None = None
    is_deleted: bool = False
    """The quota failed and falls to zero on the way, even if it is created again."""
    is_pool: bool = False
    """Whether this is the shared pool, which has no limits."""
    tier: int = 1
    """Tier: the increase with the highest number shrinks first if decreases are held back."""

    @property
    def key(self) -> str:
        """The identity of a goal: team and name."""
        return quota_key(self.team, self.name)

    @property
    def lowest(self) -> ComputeQuotaConfig:
        """The lowest value on the way: nothing if the quota is deleted."""
        return NOTHING if self.is_deleted else self.after


def goals_of(snapshot: Snapshot, changes: Iterable[Change]) -> tuple[Goal, ...]:
    """Return one goal for each quota that the changes write, in the order of their first writes."""
    paths: dict[str, list[Change]] = {}
    for change in changes:
        if change.kind not in POLICY_KINDS:
            paths.setdefault(change.subject, []).append(change)
    records = _Records(snapshot)
    return tuple(_goal(path, records) for path in paths.values())


def wanted_goals(snapshot: Snapshot, wanted: Iterable[tuple[Promise, ComputeQuotaConfig]]) -> tuple[Goal, ...]:
    """Return one goal for each promise and the config that it comes to, whether anything changes or not."""
    records = _Records(snapshot)
    return tuple(_of_promise(promise, config, records) for promise, config in wanted)


def starting_point(
    stands: ComputeQuotaConfig, version: int | None, applied: AppliedQuota | None, broken: Container[str]
) -> ComputeQuotaConfig:
    """Return the value that limits compare a quota of this version with.

    If the quota is at its low write, or at a write of one of the `broken` (interrupted) plans, this is the value before
    that path. A return to that value is therefore not an increase.
    """
    return began_from(applied, version) or stood_before(applied, version, broken) or stands


def stood_before(
    applied: AppliedQuota | None, version: int | None, plan_ids: Container[str]
) -> ComputeQuotaConfig | None:
    """Return what a quota was before the path of the plan that wrote it, where that is one of `plan_ids`.

    None where another plan, or nobody, wrote the version that stands, and where its past is not known.
    """
    if applied is None or applied.version != version or applied.plan_id not in plan_ids:
        return None
    return applied.began_from or (applied.history[-1].config if applied.history else None)


def deletion_goals(snapshot: Snapshot, failed: Iterable[ComputeQuota]) -> tuple[Goal, ...]:
    """Return one goal for each failed quota that is deleted, and not created again."""
    records = _Records(snapshot)
    return tuple(_of_deletion(quota, records) for quota in failed)


class _Records:
    """What is known of past writes, by quota; by team for a quota that was created again."""

    def __init__(self, snapshot: Snapshot) -> None:
        in_order = sorted(snapshot.applied, key=lambda applied: (applied.at, applied.compute_quota_id))
        self._by_id: Mapping[str, AppliedQuota] = {applied.compute_quota_id: applied for applied in in_order}
        self._by_team: Mapping[str, AppliedQuota] = {applied.target.team_name: applied for applied in in_order}
        policy = snapshot.policy
        self.pool = policy.shared_pool.team if policy and policy.shared_pool else None
        self.broken = frozenset(refusal.plan_id for refusal in standing_refusals(snapshot))
        self.tiers = {team.name: team.tier for team in policy.teams} if policy else {}

    def of(self, quota_id: str | None, team: str) -> AppliedQuota | None:
        """Return the record of a quota; only what does not exist yet has that of the team's quota before it."""
        return self._by_team.get(team) if quota_id is None else self._by_id.get(quota_id)


def _goal(path: list[Change], records: _Records) -> Goal:
    first, last = path[0], path[-1]
    stands = first.before if isinstance(first.before, ComputeQuotaConfig) else NOTHING
    applied = records.of(first.resource_id, first.team)
    return Goal(
        name=first.name,
        team=first.team,
        before=starting_point(stands, first.target_version, applied, records.broken),
        stands=stands,
        after=last.after if isinstance(last.after, ComputeQuotaConfig) else NOTHING,
        applied=applied,
        is_deleted=any(change.kind in DELETIONS and change.before is not None for change in path),
        is_pool=first.team == records.pool,
        tier=records.tiers.get(first.team, 1),
    )


def _of_deletion(quota: ComputeQuota, records: _Records) -> Goal:
    team, is_held = quota.compute_quota_target.team_name, quota.status not in NEVER_IN_FORCE
    stands = quota.compute_quota_config if is_held else NOTHING
    applied = records.of(quota.compute_quota_id, team)
    return Goal(
        name=quota.name,
        team=team,
        before=starting_point(stands, quota.compute_quota_version, applied, records.broken) if is_held else NOTHING,
        stands=stands,
        after=NOTHING,
        applied=applied,
        is_deleted=is_held,
        is_pool=team == records.pool,
        tier=records.tiers.get(team, 1),
    )


def _of_promise(promise: Promise, config: ComputeQuotaConfig, records: _Records) -> Goal:
    holds, known = promise.holds, promise.quota or promise.failed
    stands = NOTHING if holds is None else holds.compute_quota_config
    applied = records.of(known.compute_quota_id if known else None, promise.team)
    return Goal(
        name=known.name if known else f"new quota of {promise.team}",
        team=promise.team,
        before=starting_point(stands, known.compute_quota_version if known else None, applied, records.broken),
        stands=stands,
        after=config,
        applied=applied,
        is_deleted=promise.failed is not None and holds is not None,
        is_pool=promise.team == records.pool,
        tier=promise.tier,
    )
