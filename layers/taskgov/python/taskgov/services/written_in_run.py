"""Which quotas did a run write? Counted from the records, which are written once for each write.

`publish_usage` calls it at the end of a run: an interrupted call may have written more than the state machine recorded.
If the records cannot be read, the writes that it recorded are named, and of the rest it is said that it is not known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from taskgov.allocation.plan import DELETIONS, Change, ChangeKind, Plan
from taskgov.errors import GovernanceError, NotFoundError
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, SchedulerConfig
from taskgov.ports import ClusterBackend, StateStore
from taskgov.services.fresh_quotas import fresh_quotas
from taskgov.services.plan_path import QuotaPath, paths
from taskgov.services.wording import listed
from taskgov.services.written_already import holds, is_same
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota


@dataclass(frozen=True, slots=True)
class WhatWasWritten:
    """What a run wrote: `subjects` for certain; `unknown` says what else it may have written, empty when nothing."""

    subjects: tuple[str, ...]
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class WrittenInRun:
    """Finds the writes of a run that ended without a record. Its fields are the ports it uses."""

    backends: ClusterBackend
    state: StateStore

    def __call__(
        self, plans: Sequence[Plan], since: datetime, now: datetime, answered: Iterable[str] = ()
    ) -> WhatWasWritten:
        """Return the subjects (`Change.subject`) that the plans of a run wrote since it began, sorted.

        A write counts when the call that made it answered so (`answered`), when it is on record, or when the announced
        or planned write is what the service holds: its record was lost. Raises nothing of the state or the service.
        """
        if not plans:
            return WhatWasWritten(())
        arn = plans[-1].cluster_arn
        of_plans = [(plan, path) for plan in plans for path in paths(plan.changes)]
        known = set(answered)
        try:
            records = self.state.applied_quotas(arn)
            policy = self.state.applied_policy(arn)
            known |= {path.subject for plan, path in of_plans if _on_record(plan, path, records, policy, since)}
            open_paths = [path for _, path in of_plans if path.subject not in known]
            known |= self._seen(arn, open_paths, records, now)
        except GovernanceError as error:
            return WhatWasWritten(tuple(sorted(known)), _unknown({path.subject for _, path in of_plans} - known, error))
        return WhatWasWritten(tuple(sorted(known)))

    def _seen(
        self, cluster_arn: str, open_paths: Sequence[QuotaPath], records: Sequence[AppliedQuota], now: datetime
    ) -> set[str]:
        """Return the subjects of paths that are not on record and whose write the service holds."""
        if not open_paths:
            return set()
        quotas = fresh_quotas(self.backends, self.backends.quotas(cluster_arn), records, now).quotas
        policy = self.backends.scheduler_config(cluster_arn) if any(path.is_policy for path in open_paths) else None
        announced = {
            record.compute_quota_id: record.announced.version for record in records if record.announced is not None
        }
        return {
            path.subject
            for path in open_paths
            if (
                _policy_was_written(path, policy)
                if path.is_policy
                else self._quota_was_written(path.first, quotas, announced)
            )
        }

    def _quota_was_written(self, first: Change, quotas: Iterable[ComputeQuota], announced: Mapping[str, int]) -> bool:
        by_id = {quota.compute_quota_id: quota for quota in quotas}
        quota_id = first.resource_id or ""
        if first.kind in DELETIONS:
            return quota_id not in by_id and self._is_gone(quota_id)
        if first.kind is ChangeKind.CREATE_QUOTA:
            return any(_is_creation(first, quota) for quota in by_id.values())
        quota = by_id.get(quota_id)
        if quota is None or first.target_version is None or first.target_after is None:
            return False
        version = first.target_version + 1
        if quota.compute_quota_version < version and announced.get(quota_id) == version:
            quota = self.backends.quota(quota_id)  # the list may be behind a write whose record was lost
        return quota.compute_quota_version == version and holds(quota, first.after, first.target_after)

    def _is_gone(self, quota_id: str) -> bool:
        try:
            return self.backends.quota(quota_id).status in {"Deleting", "Deleted"}
        except NotFoundError:
            return True


def _unknown(subjects: Iterable[str], error: GovernanceError) -> str:
    names = sorted(subjects)
    return f"not known whether written ({type(error).__name__}: {error}): {listed(names)}" if names else ""


def _on_record(
    plan: Plan, path: QuotaPath, records: Iterable[AppliedQuota], policy: AppliedPolicy | None, since: datetime
) -> bool:
    if path.is_policy:
        return policy is not None and policy.plan_id == plan.plan_id and policy.at >= since
    ids = {change.resource_id for change in path.changes if change.kind not in DELETIONS}
    return any(
        record.plan_id == plan.plan_id
        and record.at >= since
        and (record.compute_quota_id in ids or (None in ids and record.target.team_name == path.first.team))
        for record in records
    )


def _is_creation(change: Change, quota: ComputeQuota) -> bool:
    mine = quota.name == change.name and quota.compute_quota_version == 1 and change.target_after is not None
    return mine and change.target_after is not None and holds(quota, change.after, change.target_after)


def _policy_was_written(path: QuotaPath, policy: ClusterSchedulerConfig | None) -> bool:
    first = path.first
    if first.kind in DELETIONS:
        return policy is None or policy.cluster_scheduler_config_id != first.resource_id
    if policy is None or not isinstance(first.after, SchedulerConfig):
        return False
    version = 1 if first.target_version is None else first.target_version + 1
    return policy.cluster_scheduler_config_version == version and is_same(policy.scheduler_config, first.after)
