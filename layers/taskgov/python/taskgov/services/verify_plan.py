"""See whether the writes of a plan have settled, and stand: judged by the versions that they returned.

A wave is judged by itself, right after it; a quota that is written twice by its last write (restoring: by what stood
before the first).

| the service shows | is |
| --- | --- |
| an older version than the write returned, or a status in flight | pending: a list may be behind, a write may be slow |
| the version of the write, settled, with its content | fine |
| the version of the write, failed | refused: recorded, so that the next plan does without it |
| a newer version with another content, or nothing any more | edited: somebody changed it since, and that stands |
| the version of the write, settled, with another content | a problem |
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, ChangeKind, Plan
from taskgov.allocation.refusals import refused_write
from taskgov.allocation.wording import said_config
from taskgov.contracts.steps import VerifyPlanRequest, VerifyPlanResult
from taskgov.errors import NotFoundError
from taskgov.hyperpod.equality import is_same_target
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.ports import Clock, ClusterBackend, DocumentStore, StateStore
from taskgov.services.failures import left_out
from taskgov.services.fresh_quotas import fresh_quotas
from taskgov.services.plan_path import Direction, QuotaPath, paths
from taskgov.services.renew_lock import renew_lock
from taskgov.services.same_cluster import require_cluster_of_plan
from taskgov.services.stored_plan import stored_plan
from taskgov.services.wording import cut
from taskgov.services.written_already import IN_FLIGHT, is_same
from taskgov.snapshot.model import AppliedPolicy, AppliedQuota, RefusalError

SETTLED = frozenset({"Created", "Updated"})

Actual = ComputeQuota | ClusterSchedulerConfig
Config = ComputeQuotaConfig | SchedulerConfig


class Verdict(StrEnum):
    """What has become of a write (see the table above)."""

    FINE = "fine"
    PENDING = "pending"
    REFUSED = "refused"
    EDITED = "edited"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict on one quota or the cluster policy, in a sentence that names it."""

    path: QuotaPath
    verdict: Verdict
    text: str = ""


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """The use case with what it needs from the world."""

    backends: ClusterBackend
    documents: DocumentStore
    state: StateStore
    clock: Clock

    def __call__(self, request: VerifyPlanRequest, direction: Direction = Direction.APPLY) -> VerifyPlanResult:
        """Judge the wave that ended at `next`, and record what settled as failed.

        Restoring, it is the wave that was taken back down to `next`. Raises LockLostError when the request names a lock
        that is another's by now, ThrottledError, UpstreamError, NotFoundError,
        InvalidRequestError for a plan that cannot be read.
        """
        renew_lock(self.state, self.clock, request.cluster_arn, request)
        plan = stored_plan(self.documents, request.plan)
        require_cluster_of_plan(plan, request.cluster_arn)
        world = self._world(plan)
        judged = [self._judge(world, path, direction) for path in self._gone_over(plan, request, direction)]
        if direction is Direction.APPLY:
            self._record(plan, judged)
        return VerifyPlanResult(
            settled=all(one.verdict is not Verdict.PENDING for one in judged),
            pending=_told(judged, Verdict.PENDING),
            refused=_told(judged, Verdict.REFUSED),
            edited=_told(judged, Verdict.EDITED),
            problems=_told(judged, Verdict.PROBLEM),
        )

    def _world(self, plan: Plan) -> "_World":
        """Read what stands now, in a few calls whatever the number of changes."""
        changes_policy = any(change.kind in POLICY_KINDS for change in plan.changes)
        records = self.state.applied_quotas(plan.cluster_arn, left_out)
        fresh = fresh_quotas(self.backends, self.backends.quotas(plan.cluster_arn), records, self.clock.now())
        return _World(
            plan_id=plan.plan_id,
            quotas=fresh.quotas,
            unasked=fresh.unasked,
            policy=self.backends.scheduler_config(plan.cluster_arn) if changes_policy else None,
            records={record.compute_quota_id: record for record in records},
            applied_policy=self.state.applied_policy(plan.cluster_arn, left_out) if changes_policy else None,
        )

    def _gone_over(self, plan: Plan, request: VerifyPlanRequest, direction: Direction) -> tuple[QuotaPath, ...]:
        """Return what was gone over last, without what was refused when it was written.

        The waves before it were judged when they had settled; what people changed since is for the next plan to see.
        """
        found = _wave(plan, request.next, direction)
        if direction is Direction.RESTORE:
            return found
        refused = {
            one.subject
            for one in self.state.refusals(plan.cluster_arn, left_out)
            if one.plan_id == plan.plan_id and one.error is not RefusalError.FAILED_TO_SETTLE
        }
        return tuple(path for path in found if path.subject not in refused)

    def _record(self, plan: Plan, judged: Iterable[Judged]) -> None:
        """Keep what settled as failed; the same in each look, as an invocation may come twice."""
        for one in judged:
            if one.verdict is Verdict.REFUSED:
                refused = refused_write(
                    plan,
                    one.path.last,
                    error=RefusalError.FAILED_TO_SETTLE,
                    because=one.text,
                    at=self.clock.now(),
                )
                self.state.record_refusal(plan.cluster_arn, refused)

    def _judge(self, world: "_World", path: QuotaPath, direction: Direction) -> Judged:
        first, last = path.first, path.last
        if direction is Direction.APPLY and last.kind in DELETIONS:
            return self._judge_deletion(path, world.deleted(last))
        if direction is Direction.APPLY:
            judged = _judged(world, world.named(path), path, last.after, last.target_after)
            if judged.verdict not in {Verdict.REFUSED, Verdict.PROBLEM}:
                return judged
            # A list may be behind, and has no reasons: what is to be recorded is described.
            return _judged(world, self._now(world.named(path)), path, last.after, last.target_after)
        kept = world.deleted(first) if first.kind in DELETIONS else None
        if kept is not None:  # it was not deleted after all
            pending = kept.status in IN_FLIGHT
            return Judged(path, Verdict.PENDING if pending else Verdict.FINE, f"{kept.name} has status {kept.status}")
        if first.kind in DELETIONS and first.before is None and last is first:
            return Judged(path, Verdict.FINE)  # it never was in force
        return _judged(world, world.named(path), path, first.before, first.target_before)

    def _judge_deletion(self, path: QuotaPath, listed: Actual | None) -> Judged:
        """Judge the deletion of what had failed; a list may still show what is gone, so it is looked at by itself."""
        actual = self._now(listed)
        if actual is None:
            return Judged(path, Verdict.FINE)
        if actual.status in IN_FLIGHT:
            return Judged(path, Verdict.PENDING, f"{actual.name} has status {actual.status}")
        reason = actual.failure_reason or "no reason given"
        return Judged(path, Verdict.REFUSED, f"{actual.name} is not deleted: status {actual.status}: {reason}")

    def _now(self, listed: Actual | None) -> Actual | None:
        try:
            return self.backends.quota(listed.compute_quota_id) if isinstance(listed, ComputeQuota) else listed
        except NotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class _World:
    """What stands now, and what is on record of our writes."""

    plan_id: str
    quotas: tuple[ComputeQuota, ...]
    unasked: frozenset[str]
    """Ids of quotas that are behind their record and were not asked for in this look."""
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

    def written_version(self, path: QuotaPath) -> int | None:
        """Return the version that our write of a path returned; None when none is on record."""
        if path.is_policy:
            mine = self.applied_policy if self.applied_policy and self.applied_policy.plan_id == self.plan_id else None
            return None if mine is None else mine.version
        record = self.record_of(path)
        return None if record is None else record.version

    def record_of(self, path: QuotaPath) -> AppliedQuota | None:
        """Return the record of this plan's last write of a quota; of one that is created, by its team."""
        created = path.first.kind is ChangeKind.CREATE_QUOTA or bool(path.deleted_ids)
        for quota_id, record in self.records.items():
            is_created = created and record.target.team_name == path.first.team and quota_id not in path.deleted_ids
            if record.plan_id == self.plan_id and (quota_id == path.first.resource_id or is_created):
                return record
        return None

    def is_unlisted(self, path: QuotaPath) -> bool:
        """Say whether a list may yet show what a path wrote: it is behind, and nobody was asked."""
        if path.is_policy:
            return True
        record = self.record_of(path)
        return record is not None and record.compute_quota_id in self.unasked


def _judged(
    world: _World, actual: Actual | None, path: QuotaPath, wanted: Config | None, target: ComputeQuotaTarget | None
) -> Judged:
    """Compare what stands with what is to stand (None: nothing)."""
    written = world.written_version(path)
    if actual is None:
        return _judged_missing(world, path, wanted)
    verdict, text = _verdict(actual, written, is_wanted=_holds(actual, wanted, target))
    return Judged(path, verdict, f"{path.first.name} {text}")


def _verdict(actual: Actual, written: int | None, *, is_wanted: bool) -> tuple[Verdict, str]:
    version = _version(actual)
    if written is not None and version < written:
        return Verdict.PENDING, f"shows version {version}, and version {written} was written"
    if is_wanted and actual.status in SETTLED:
        return Verdict.FINE, "is as written"
    if written is not None and version > written:
        return Verdict.EDITED, f"was changed by somebody since: version {version}"
    if actual.status in IN_FLIGHT:
        return Verdict.PENDING, f"has status {actual.status} at version {version}"
    if actual.status in SETTLED:
        return Verdict.PROBLEM, f"holds {_content(actual)}, and not what was written"
    reason = actual.failure_reason or "no reason given"
    return Verdict.REFUSED, f"has status {actual.status}: {reason}; it holds {_content(actual)}"


def _judged_missing(world: _World, path: QuotaPath, wanted: Config | None) -> Judged:
    name = path.first.name
    if wanted is None:
        return Judged(path, Verdict.FINE)
    if world.written_version(path) is None:
        return Judged(path, Verdict.PROBLEM, f"{name} does not exist")
    if world.is_unlisted(path):
        return Judged(path, Verdict.PENDING, f"{name} is not listed yet")
    return Judged(path, Verdict.EDITED, f"{name} was deleted by somebody since")


def _wave(plan: Plan, following: int | None, direction: Direction) -> tuple[QuotaPath, ...]:
    """Return the wave that ended before `following` (restoring: that was taken back down to it); None: the plan."""
    changes = plan.changes
    if following is not None and direction is Direction.APPLY:
        changes = changes[: max(following, 0)]
        changes = tuple(change for change in changes if change.wave == changes[-1].wave)
    elif following is not None:
        changes = changes[following + 1 :]
        changes = tuple(change for change in changes if change.wave == changes[0].wave)
    return paths(changes)


def _version(actual: Actual) -> int:
    if isinstance(actual, ComputeQuota):
        return actual.compute_quota_version
    return actual.cluster_scheduler_config_version


def _content(actual: Actual) -> str:
    """Say what a quota or cluster policy holds."""
    config = actual.scheduler_config if isinstance(actual, ClusterSchedulerConfig) else actual.compute_quota_config
    return said_config(config)


def _told(judged: Iterable[Judged], verdict: Verdict) -> tuple[str, ...]:
    return cut([one.text for one in judged if one.verdict is verdict])


def _holds(actual: Actual, wanted: Config | None, target: ComputeQuotaTarget | None) -> bool:
    if wanted is None:
        return False
    if isinstance(actual, ComputeQuota) and target and not is_same_target(actual.compute_quota_target, target):
        return False
    return is_same(actual.compute_quota_config if isinstance(actual, ComputeQuota) else actual.scheduler_config, wanted)
