"""See whether the world is as the plan wants it: every quota that was gone over settled, and holding what was written.

A wave is judged by itself, right after it; the whole plan by quota: by the last write (restoring: by what stood before
the first). A write has settled when its version is to be seen and the status says so: a list may be behind the write.
"""

from dataclasses import dataclass

from taskgov.allocation.codec import plan_from_json
from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, ChangeKind, Plan
from taskgov.allocation.wording import said_config
from taskgov.contracts.steps import Direction, VerifyPlanRequest, VerifyPlanResult
from taskgov.errors import NotFoundError
from taskgov.hyperpod.equality import is_same_target
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.ports import Clock, DocumentStore, HyperPodApi, StateStore
from taskgov.services.plan_path import QuotaPath, paths
from taskgov.services.renew_lock import renew_lock
from taskgov.services.same_cluster import require_cluster_of_plan
from taskgov.services.written_already import IN_FLIGHT, is_same
from taskgov.snapshot.model import AppliedPolicy, AppliedQuota

SETTLED = frozenset({"Created", "Updated"})
PENDING = "pending"
FINE = "fine"
MOST_PROBLEMS = 50
MOST_LETTERS = 500

Actual = ComputeQuota | ClusterSchedulerConfig


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """The use case with what it needs from the world."""

    hyperpod: HyperPodApi
    documents: DocumentStore
    state: StateStore
    clock: Clock

    def __call__(self, request: VerifyPlanRequest) -> VerifyPlanResult:
        """Compare desired with actual; `settled` is False while a status is in flight or a write not to be seen yet.

        Raises LockLostError when the request names a lock that is another's by now.
        """
        renew_lock(self.state, self.clock, request.cluster_arn, request)
        plan = plan_from_json(self.documents.get(request.plan))
        require_cluster_of_plan(plan, request.cluster_arn)
        world = self._world(plan)
        verdicts = [self._verdict(world, path, request.direction) for path in _gone_over(plan, request)]
        pending = verdicts.count(PENDING)
        problems = [verdict for verdict in verdicts if verdict not in {PENDING, FINE}]
        return VerifyPlanResult(
            settled=not pending,
            matches=not pending and not problems,
            pending=pending,
            standing=sum(_stands(world, path) for path in paths(plan.changes)),
            problems=_told(problems),
        )

    def _world(self, plan: Plan) -> "_World":
        """Read what stands now, in a few calls whatever the number of changes."""
        changes_policy = any(change.kind in POLICY_KINDS for change in plan.changes)
        return _World(
            plan_id=plan.plan_id,
            quotas=self.hyperpod.quotas(plan.cluster_arn),
            policy=self.hyperpod.scheduler_config(plan.cluster_arn) if changes_policy else None,
            records={record.compute_quota_id: record for record in self.state.applied_quotas(plan.cluster_arn)},
            applied_policy=self.state.applied_policy(plan.cluster_arn) if changes_policy else None,
        )

    def _verdict(self, world: "_World", path: QuotaPath, direction: Direction) -> str:
        first, last = path.first, path.last
        if direction is Direction.APPLY and last.kind in DELETIONS:
            return self._verdict_of_deletion(world.deleted(last))
        if direction is Direction.APPLY:
            return _judged(world, path, last.after, last.target_after)
        kept = world.deleted(first) if first.kind in DELETIONS else None
        if kept is not None:  # it was not deleted after all
            return PENDING if kept.status in IN_FLIGHT else FINE
        if first.kind in DELETIONS and first.before is None and last is first:
            return FINE  # it never was in force
        return _judged(world, path, first.before, first.target_before)

    def _verdict_of_deletion(self, listed: Actual | None) -> str:
        """Judge the deletion of what had failed; a list may still show what is gone, so it is looked at by itself."""
        actual = self._now(listed)
        if actual is None:
            return FINE
        if actual.status in IN_FLIGHT:
            return PENDING
        return f"{actual.name}: it is not deleted: status {actual.status}: {actual.failure_reason or 'no reason given'}"

    def _now(self, listed: Actual | None) -> Actual | None:
        try:
            return self.hyperpod.quota(listed.compute_quota_id) if isinstance(listed, ComputeQuota) else listed
        except NotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class _World:
    """What stands now, and what is on record of our writes."""

    plan_id: str
    quotas: tuple[ComputeQuota, ...]
    policy: ClusterSchedulerConfig | None
    records: dict[str, AppliedQuota]
    applied_policy: AppliedPolicy | None

    def named(self, path: QuotaPath) -> Actual | None:
        """Return what a path is about: the quota of its id, or of its name where it is created (again)."""
        if path.is_policy:
            policy_id = self.policy.cluster_scheduler_config_id if self.policy else None
            return None if policy_id in path.deleted_ids else self.policy
        quota_id = path.first.resource_id
        if quota_id and not path.deleted_ids:
            return next((quota for quota in self.quotas if quota.compute_quota_id == quota_id), None)
        others = [quota for quota in self.quotas if quota.compute_quota_id not in path.deleted_ids]
        found = (quota for quota in others if quota.name == path.first.name)
        return next((quota for quota in found if quota.compute_quota_target.team_name == path.first.team), None)

    def deleted(self, change: Change) -> Actual | None:
        """Return what a change deletes, if it is still there."""
        if change.kind in POLICY_KINDS:
            is_there = self.policy and self.policy.cluster_scheduler_config_id == change.resource_id
            return self.policy if is_there else None
        return next((quota for quota in self.quotas if quota.compute_quota_id == change.resource_id), None)

    def is_behind(self, actual: Actual) -> bool:
        """Say whether a write of ours gave a newer version than the list shows."""
        if not isinstance(actual, ComputeQuota):
            return False  # the cluster policy is described, not listed
        record = self.records.get(actual.compute_quota_id)
        return record is not None and record.version > actual.compute_quota_version

    def is_unlisted(self, path: QuotaPath, target: ComputeQuotaTarget | None) -> bool:
        """Say whether this plan created a quota for the team that the list does not show yet."""
        if path.is_policy:
            return self.applied_policy is not None and self.applied_policy.plan_id == self.plan_id
        if target is None or (path.first.kind is not ChangeKind.CREATE_QUOTA and not path.deleted_ids):
            return False
        listed = {quota.compute_quota_id for quota in self.quotas} | path.deleted_ids
        return any(
            record.plan_id == self.plan_id and record.target.team_name == target.team_name and quota_id not in listed
            for quota_id, record in self.records.items()
        )


def _judged(
    world: _World,
    path: QuotaPath,
    wanted: ComputeQuotaConfig | SchedulerConfig | None,
    target: ComputeQuotaTarget | None,
) -> str:
    """Compare what stands with what is to stand (None: nothing)."""
    actual = world.named(path)
    if actual is None:
        if wanted is None:
            return FINE
        return PENDING if world.is_unlisted(path, target) else f"{path.first.name}: it does not exist"
    if actual.status in IN_FLIGHT or world.is_behind(actual):
        return PENDING
    if actual.status not in SETTLED:
        reason = actual.failure_reason or "no reason given"
        return f"{actual.name}: status {actual.status}: {reason}; {actual.name} holds {_content(actual)}"
    return FINE if _holds(actual, wanted, target) else f"{actual.name} holds {_content(actual)}, and not what it should"


def _gone_over(plan: Plan, request: VerifyPlanRequest) -> tuple[QuotaPath, ...]:
    """Return what was gone over last: the wave that ended before `next` (restoring: that was taken back down to it).

    The waves before it were judged when they had settled; what people changed since is for the next plan to see.
    """
    changes, following = plan.changes, request.next
    if following is not None and request.direction is Direction.APPLY:
        changes = changes[: max(following, 0)]
        changes = tuple(change for change in changes if change.wave == changes[-1].wave)
    elif following is not None:
        changes = changes[following + 1 :]
        changes = tuple(change for change in changes if change.wave == changes[0].wave)
    return paths(changes)


def _stands(world: _World, path: QuotaPath) -> bool:
    """Say whether a quota is at the goal of the plan, or on its way there: not where it was before."""
    actual = world.named(path)
    if actual is None:
        return bool(path.deleted_ids) and world.deleted(path.first) is None
    return any(
        change.kind not in DELETIONS and _holds(actual, change.after, change.target_after) for change in path.changes
    )


def _content(actual: Actual) -> str:
    """Say what a quota or cluster policy holds, for the record of a run that could not be taken back."""
    config = actual.scheduler_config if isinstance(actual, ClusterSchedulerConfig) else actual.compute_quota_config
    return said_config(config)


def _told(problems: list[str]) -> tuple[str, ...]:
    """Return the problems as far as a state of Step Functions can carry them (256 KiB), and how many more there are."""
    shown = [problem if len(problem) <= MOST_LETTERS else f"{problem[:MOST_LETTERS]} ..." for problem in problems]
    more = len(shown) - MOST_PROBLEMS
    return (*shown[:MOST_PROBLEMS], *([f"and {more} more"] if more > 0 else ()))


def _holds(
    actual: Actual, wanted: ComputeQuotaConfig | SchedulerConfig | None, target: ComputeQuotaTarget | None
) -> bool:
    if wanted is None:
        return False
    if isinstance(actual, ComputeQuota) and target and not is_same_target(actual.compute_quota_target, target):
        return False
    return is_same(actual.compute_quota_config if isinstance(actual, ComputeQuota) else actual.scheduler_config, wanted)
