"""Undo one change of a plan: write the state before it, at the current version.

What somebody else wrote since is left. What is still settling takes no write: that is said, and tried again later.
"""

from dataclasses import dataclass, replace

from taskgov.allocation.plan import Change, ChangeKind, Plan
from taskgov.contracts.steps import ApplyChangeResult
from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError
from taskgov.hyperpod.equality import is_same_scheduler_config
from taskgov.hyperpod.model import ComputeQuotaConfig, SchedulerConfig
from taskgov.ports import ClusterBackend, StateStore, Written
from taskgov.services.plan_path import QuotaPath, undone
from taskgov.services.write_records import WriteRecords
from taskgov.services.written_already import IN_FLIGHT, WrittenAlready, holds, id_of, is_same, target_of


@dataclass(frozen=True, slots=True)
class RestoreChange:
    """Restores what one change replaced. Its fields are the ports it uses."""

    backends: ClusterBackend
    state: StateStore
    records: WriteRecords

    def __call__(self, plan: Plan, change: Change, path: QuotaPath) -> ApplyChangeResult:
        """Restore what stood before a change; `in_flight` when what it wrote is still settling.

        Raises ConflictError when somebody changed it since, NotFoundError when it is gone.
        """
        match change.kind:
            case ChangeKind.CREATE_QUOTA | ChangeKind.CREATE_SCHEDULER_CONFIG:
                return self._take_back_creation(plan, change, path)
            case ChangeKind.UPDATE_QUOTA:
                return self._restore_quota(plan, change, path)
            case ChangeKind.UPDATE_SCHEDULER_CONFIG:
                return self._restore_scheduler_config(change)
            case ChangeKind.DELETE_QUOTA:
                return self._make_quota_again(plan, change, path)
            case ChangeKind.DELETE_SCHEDULER_CONFIG:
                return self._make_scheduler_config_again(plan, change)

    def _restore_quota(self, plan: Plan, change: Change, path: QuotaPath) -> ApplyChangeResult:
        quota_id = id_of(change)
        quota = self.backends.quota(quota_id)
        version = quota.compute_quota_version
        if not isinstance(change.before, ComputeQuotaConfig) or change.target_before is None:
            raise InvalidRequestError(f"change {change.index} does not say what stood before it")
        back = undone(change, path)
        if holds(quota, change.before, change.target_before):
            self.records.remember_announced(plan, back, path, Written(quota_id, version))
            return _untouched(change, quota_id, version)
        if not holds(quota, change.after, target_of(change)):
            raise ConflictError(
                f"quota {quota.name} was changed by somebody else since (version {version}); it is left as it is"
            )
        if quota.status in IN_FLIGHT:
            return _in_flight(change, quota_id, version)
        self.records.announce(plan, back, path, version + 1)
        written = self.backends.update_quota(quota_id, version, change.before, change.target_before)
        self.records.remember(plan, back, path, written)
        return _restored(change, version, written)

    def _restore_scheduler_config(self, change: Change) -> ApplyChangeResult:
        config_id = id_of(change)
        config = self.backends.scheduler_config_by_id(config_id)
        version = config.cluster_scheduler_config_version
        if not isinstance(change.before, SchedulerConfig):
            raise InvalidRequestError(f"change {change.index} does not say what stood before it")
        if is_same_scheduler_config(config.scheduler_config, change.before):
            return _untouched(change, config_id, version)
        if not is_same(config.scheduler_config, change.after):
            raise ConflictError(
                f"the cluster policy {config.name} was changed by somebody else since; it is left as it is"
            )
        if config.status in IN_FLIGHT:
            return _in_flight(change, config_id, version)
        return _restored(change, version, self.backends.update_scheduler_config(config_id, version, change.before))

    def _take_back_creation(self, plan: Plan, change: Change, path: QuotaPath) -> ApplyChangeResult:
        created = WrittenAlready(self.backends).of(plan, change, path)
        if created is None:
            return _untouched(change, "", None)
        resource_id, version = created.resource_id, created.version
        status = self._status(change, resource_id)
        if status == "Deleting":
            return _untouched(change, resource_id, version)
        if status in IN_FLIGHT:
            return _in_flight(change, resource_id, version)
        if change.kind is ChangeKind.CREATE_QUOTA:
            self.backends.delete_quota(resource_id)
        else:
            self.backends.delete_scheduler_config(resource_id)
        return ApplyChangeResult(index=change.index, resource_id=resource_id, version_before=version, written=True)

    def _status(self, change: Change, resource_id: str) -> str:
        if change.kind is ChangeKind.CREATE_QUOTA:
            return self.backends.quota(resource_id).status
        return self.backends.scheduler_config_by_id(resource_id).status

    def _make_quota_again(self, plan: Plan, change: Change, path: QuotaPath) -> ApplyChangeResult:
        """Create what was deleted with what it held, once; what never was in force stays away."""
        config, target, quota_id = change.before, change.target_before, id_of(change)
        if not isinstance(config, ComputeQuotaConfig):
            return _untouched(change, quota_id, change.target_version)
        if target is None:
            raise InvalidRequestError(f"change {change.index} of team {change.team} does not say whose quota it was")
        try:
            quota = self.backends.quota(quota_id)
        except NotFoundError:
            there = WrittenAlready(self.backends).named(plan, change.name, path)
        else:
            if quota.status == "Deleting":
                return _in_flight(change, quota_id, quota.compute_quota_version)
            return _untouched(change, quota_id, quota.compute_quota_version)  # it was not deleted
        if there is None:
            written = self.backends.create_quota(plan.cluster_arn, change.name, config, target)
        elif there.status == "Deleting":
            return _in_flight(change, there.compute_quota_id, there.compute_quota_version)
        elif not holds(there, config, target):
            raise ConflictError(f"somebody else created a quota {change.name} since; it is left as it is")
        else:
            written = Written(there.compute_quota_id, there.compute_quota_version)
        deleted = self.state.applied_quota(plan.cluster_arn, quota_id)
        sharing = None if deleted is None else deleted.sharing_within_budget
        creation = replace(
            change,
            kind=ChangeKind.CREATE_QUOTA,
            before=None,
            after=config,
            target_after=target,
            sharing_within_budget=sharing,
        )
        self.state.remember_resources(plan.cluster_arn, [written.resource_id])
        self.records.remember(plan, creation, path, written)
        return _restored(change, None, written)

    def _make_scheduler_config_again(self, plan: Plan, change: Change) -> ApplyChangeResult:
        """Create the cluster policy that was deleted with what it held, once."""
        config_id = id_of(change)
        if not isinstance(change.before, SchedulerConfig):
            return _untouched(change, config_id, change.target_version)
        there = self.backends.scheduler_config(plan.cluster_arn)
        if there is None:
            written = self.backends.create_scheduler_config(plan.cluster_arn, change.name, change.before)
            self.state.remember_resources(plan.cluster_arn, [written.resource_id])
            return _restored(change, None, written)
        there_id, version = there.cluster_scheduler_config_id, there.cluster_scheduler_config_version
        if there.status == "Deleting":
            return _in_flight(change, there_id, version)
        if there_id != config_id and not is_same_scheduler_config(there.scheduler_config, change.before):
            raise ConflictError(f"somebody else created the cluster policy {there.name} since; it is left as it is")
        return _untouched(change, there_id, version)


def _untouched(change: Change, resource_id: str, version: int | None) -> ApplyChangeResult:
    return ApplyChangeResult(
        index=change.index, resource_id=resource_id, version_before=version, version_after=version, written=False
    )


def _in_flight(change: Change, resource_id: str, version: int) -> ApplyChangeResult:
    return _untouched(change, resource_id, version).model_copy(update={"in_flight": True})


def _restored(change: Change, version: int | None, written: Written) -> ApplyChangeResult:
    return ApplyChangeResult(
        index=change.index,
        resource_id=written.resource_id,
        version_before=version,
        version_after=written.version,
        written=True,
    )
