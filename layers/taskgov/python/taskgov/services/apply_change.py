"""Write one change of a plan, or take it back.

A change is written at the version that the plan saw and never forced. Step Functions may call twice for one change (a
retry after a time-out); the second call finds the work done and says so.
"""

from dataclasses import dataclass, replace

from taskgov.allocation.applied import remember
from taskgov.allocation.codec import plan_from_json
from taskgov.allocation.plan import DELETIONS, Change, ChangeKind, Plan
from taskgov.allocation.standing import TO_DELETE
from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangeResult, Direction
from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError
from taskgov.hyperpod.equality import is_same_config, is_same_scheduler_config, is_same_target
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig
from taskgov.ports import Clock, DocumentStore, HyperPodApi, StateStore, Written
from taskgov.snapshot.model import AnnouncedWrite


@dataclass(frozen=True, slots=True)
class ApplyChange:
    """The use case with what it needs from the world."""

    hyperpod: HyperPodApi
    documents: DocumentStore
    state: StateStore
    clock: Clock

    def __call__(self, request: ApplyChangeRequest) -> ApplyChangeResult:
        """Write change number `index` of the plan, or restore what stood before it.

        Raises LockLostError before anything is written when another run took the cluster over, ConflictError when
        somebody changed the quota since the plan was made, InvalidRequestError for an index beyond the plan.
        """
        return self.one(self.plan(request), request, request.index)

    def plan(self, request: ApplyChangeRequest) -> Plan:
        """Return the plan that the request points to."""
        return plan_from_json(self.documents.get(request.plan))

    def one(self, plan: Plan, request: ApplyChangeRequest, index: int) -> ApplyChangeResult:
        """Write or restore one change of a plan that was read before; raises what a call for it alone raises."""
        self.state.require_lock(request.cluster_arn, request.lock_owner, request.fencing_token)
        change = _change(plan, index)
        match request.direction:
            case Direction.APPLY:
                return self._apply(plan, change)
            case Direction.RESTORE:
                return self._restore(plan, change)

    def _apply(self, plan: Plan, change: Change) -> ApplyChangeResult:
        written = self._write(plan, change)
        self._record(plan, change, written)
        return ApplyChangeResult(
            index=change.index,
            resource_id=written.resource_id,
            version_before=change.target_version,
            version_after=written.version,
            written=True,
        )

    def _write(self, plan: Plan, change: Change) -> Written:
        if change.kind in DELETIONS:
            return self._delete(plan, change)
        if change.target_version is not None:
            self._announce(plan, change, change.target_version + 1)
        try:
            return self._send(plan, change)
        except ConflictError:
            done = self._already_written(plan, change)
            if done is None:
                raise
            return done

    def _send(self, plan: Plan, change: Change) -> Written:
        match change:
            case Change(kind=ChangeKind.CREATE_QUOTA, after=ComputeQuotaConfig() as config):
                return self.hyperpod.create_quota(plan.cluster_arn, change.name, config, _target(change))
            case Change(kind=ChangeKind.UPDATE_QUOTA, after=ComputeQuotaConfig() as config):
                return self.hyperpod.update_quota(*_known(change), config, _target(change))
            case Change(kind=ChangeKind.CREATE_SCHEDULER_CONFIG, after=SchedulerConfig() as config):
                return self.hyperpod.create_scheduler_config(plan.cluster_arn, change.name, config)
            case Change(kind=ChangeKind.UPDATE_SCHEDULER_CONFIG, after=SchedulerConfig() as config):
                return self.hyperpod.update_scheduler_config(*_known(change), config)
            case _:
                raise InvalidRequestError(f"change {change.index} of plan {plan.plan_id} is not a {change.kind}")

    def _already_written(self, plan: Plan, change: Change) -> Written | None:
        """Return what an earlier try of this very change left, or None: then the conflict is somebody else's."""
        match change.kind:
            case ChangeKind.UPDATE_QUOTA:
                quota = self.hyperpod.quota(_known(change)[0])
                return _same_quota(quota, change, after_version=_known(change)[1])
            case ChangeKind.CREATE_QUOTA:
                named = [quota for quota in self.hyperpod.quotas(plan.cluster_arn) if quota.name == change.name]
                return _same_quota(named[0], change, after_version=0) if named else None
            case ChangeKind.UPDATE_SCHEDULER_CONFIG | ChangeKind.CREATE_SCHEDULER_CONFIG:
                config = self.hyperpod.scheduler_config(plan.cluster_arn)
                if config is None or not _is_same(config.scheduler_config, change.after):
                    return None
                return Written(config.cluster_scheduler_config_id, config.cluster_scheduler_config_version)
            case ChangeKind.DELETE_QUOTA | ChangeKind.DELETE_SCHEDULER_CONFIG:
                return None

    def _delete(self, plan: Plan, change: Change) -> Written:
        """Delete what failed, unless it is another by now: deleting takes no version, so it is looked at before."""
        resource_id, version = _known(change)
        try:
            status, now = self._status(plan, change, resource_id)
        except NotFoundError:
            return Written(resource_id, version)  # an earlier try deleted it
        if now == version and status in TO_DELETE:
            if change.kind is ChangeKind.DELETE_QUOTA:
                self.hyperpod.delete_quota(resource_id)
            else:
                self.hyperpod.delete_scheduler_config(resource_id)
        elif status != "Deleting":
            raise ConflictError(f"{change.name} has status {status} and version {now} by now; it is not deleted")
        return Written(resource_id, version)

    def _status(self, plan: Plan, change: Change, resource_id: str) -> tuple[str, int]:
        if change.kind is ChangeKind.DELETE_QUOTA:
            quota = self.hyperpod.quota(resource_id)
            return quota.status, quota.compute_quota_version
        config = self.hyperpod.scheduler_config(plan.cluster_arn)
        if config is None or config.cluster_scheduler_config_id != resource_id:
            raise NotFoundError(f"the cluster policy {change.name} is gone")
        return config.status, config.cluster_scheduler_config_version

    def _restore(self, plan: Plan, change: Change) -> ApplyChangeResult:
        match change.kind:
            case ChangeKind.CREATE_QUOTA | ChangeKind.CREATE_SCHEDULER_CONFIG:
                return self._take_back_creation(plan, change)
            case ChangeKind.UPDATE_QUOTA:
                return self._restore_quota(plan, change)
            case ChangeKind.UPDATE_SCHEDULER_CONFIG:
                return self._restore_scheduler_config(change)
            case ChangeKind.DELETE_QUOTA | ChangeKind.DELETE_SCHEDULER_CONFIG:
                # It had failed and held nothing that could be restored; the next plan creates it again.
                return _untouched(change, *_known(change))

    def _restore_quota(self, plan: Plan, change: Change) -> ApplyChangeResult:
        quota_id, _ = _known(change)
        quota = self.hyperpod.quota(quota_id)
        if not isinstance(change.before, ComputeQuotaConfig) or change.target_before is None:
            raise InvalidRequestError(f"change {change.index} does not say what stood before it")
        if _holds(quota, change.before, change.target_before):
            return _untouched(change, quota_id, quota.compute_quota_version)
        if not _holds(quota, change.after, _target(change)):
            raise ConflictError(
                f"quota {quota.name} was changed by somebody else since (version {quota.compute_quota_version}); "
                "it is left as it is"
            )
        back = undone(change)
        self._announce(plan, back, quota.compute_quota_version + 1)
        written = self.hyperpod.update_quota(quota_id, quota.compute_quota_version, change.before, change.target_before)
        self._remember(plan, back, written)
        return _restored(change, quota.compute_quota_version, written)

    def _restore_scheduler_config(self, change: Change) -> ApplyChangeResult:
        config_id, _ = _known(change)
        config = self.hyperpod.scheduler_config_by_id(config_id)
        version = config.cluster_scheduler_config_version
        if not isinstance(change.before, SchedulerConfig):
            raise InvalidRequestError(f"change {change.index} does not say what stood before it")
        if is_same_scheduler_config(config.scheduler_config, change.before):
            return _untouched(change, config_id, version)
        if not _is_same(config.scheduler_config, change.after):
            raise ConflictError(
                f"the cluster policy {config.name} was changed by somebody else since; it is left as it is"
            )
        return _restored(change, version, self.hyperpod.update_scheduler_config(config_id, version, change.before))

    def _take_back_creation(self, plan: Plan, change: Change) -> ApplyChangeResult:
        created = self._already_written(plan, change)
        if created is None:
            return _untouched(change, "", None)
        if change.kind is ChangeKind.CREATE_QUOTA:
            self.hyperpod.delete_quota(created.resource_id)
        else:
            self.hyperpod.delete_scheduler_config(created.resource_id)
        return ApplyChangeResult(
            index=change.index, resource_id=created.resource_id, version_before=created.version, written=True
        )

    def _record(self, plan: Plan, change: Change, written: Written) -> None:
        self.state.remember_resources(plan.cluster_arn, [written.resource_id])
        if isinstance(change.after, ComputeQuotaConfig) and change.kind not in DELETIONS:
            self._remember(plan, change, written)

    def _announce(self, plan: Plan, change: Change, version: int) -> None:
        """Keep what is about to be written: should the record of the write be lost, it is not taken for a person's.

        A quota without a record needs no announcement: it is nobody's edit.
        """
        if change.resource_id is None or not isinstance(change.after, ComputeQuotaConfig):
            return
        previous = self.state.applied_quota(plan.cluster_arn, change.resource_id)
        announced = AnnouncedWrite(version, change.after, _target(change))
        if previous is not None and previous.version < version and previous.announced != announced:
            self.state.record_applied(plan.cluster_arn, replace(previous, announced=announced))

    def _remember(self, plan: Plan, change: Change, written: Written) -> None:
        """Keep what was written: plans to come tell edits by hand from it, and how far a quota fell in a period.

        A second try of a change that was written before keeps it once: the record of that version is there already.
        """
        quota_id = written.resource_id
        previous = self.state.applied_quota(plan.cluster_arn, quota_id)
        if previous is not None and previous.version == written.version:
            return
        applied = remember(
            change,
            previous,
            quota_id=quota_id,
            version=written.version,
            plan_id=plan.plan_id,
            now=self.clock.now(),
        )
        self.state.record_applied(plan.cluster_arn, applied)


def undone(change: Change) -> Change:
    """Return the change that takes a quota back from `after` to `before`."""
    if change.before is None:
        raise InvalidRequestError(f"change {change.index} does not say what stood before it")
    return replace(change, before=change.after, after=change.before, target_after=change.target_before)


def _change(plan: Plan, index: int) -> Change:
    if index >= len(plan.changes):
        raise InvalidRequestError(f"plan {plan.plan_id} has {len(plan.changes)} changes; there is no number {index}")
    return plan.changes[index]


def _target(change: Change) -> ComputeQuotaTarget:
    if change.target_after is None:
        raise InvalidRequestError(f"change {change.index} of team {change.team} has no target")
    return change.target_after


def _known(change: Change) -> tuple[str, int]:
    if change.resource_id is None or change.target_version is None:
        raise InvalidRequestError(f"change {change.index} of team {change.team} has no resource id or version")
    return change.resource_id, change.target_version


def _same_quota(quota: ComputeQuota, change: Change, *, after_version: int) -> Written | None:
    same = _holds(quota, change.after, _target(change))
    if same and quota.compute_quota_version == after_version + 1:
        return Written(quota.compute_quota_id, quota.compute_quota_version)
    return None


def _holds(quota: ComputeQuota, config: ComputeQuotaConfig | SchedulerConfig, target: ComputeQuotaTarget) -> bool:
    """Tell whether a quota is what was written: its numbers, and whose it is with which weight."""
    return _is_same(quota.compute_quota_config, config) and is_same_target(quota.compute_quota_target, target)


def _is_same(holds: ComputeQuotaConfig | SchedulerConfig, written: ComputeQuotaConfig | SchedulerConfig) -> bool:
    match holds, written:
        case ComputeQuotaConfig(), ComputeQuotaConfig():
            return is_same_config(holds, written)
        case SchedulerConfig(), SchedulerConfig():
            return is_same_scheduler_config(holds, written)
        case _:
            return False


def _untouched(change: Change, resource_id: str, version: int | None) -> ApplyChangeResult:
    return ApplyChangeResult(
        index=change.index, resource_id=resource_id, version_before=version, version_after=version, written=False
    )


def _restored(change: Change, version: int, written: Written) -> ApplyChangeResult:
    return ApplyChangeResult(
        index=change.index,
        resource_id=written.resource_id,
        version_before=version,
        version_after=written.version,
        written=True,
    )
