"""Write changes of a plan in its order, or take one back: as many in one call as time allows.

A change is written at the version that the plan saw (the second of two writes of a quota: at the version that the
first returned) and never forced. Step Functions may call twice for one change (a retry after a time-out); the second
call finds the work done and says so. A write that the service refuses for good is recorded, and is not an error: the
rest of the plan continues, and the next plan does without it.

One call for each change would fill the history of a run of a thousand teams. A call never leaves its wave: what was
written has to settle before the next wave begins. Every part of a wave is safe, so a refusal ends no wave.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from taskgov.allocation.governed import TO_DELETE
from taskgov.allocation.plan import DELETIONS, Change, ChangeKind, Plan
from taskgov.allocation.refusals import refused_write, wanted_of
from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangeResult, ApplyChangesResult
from taskgov.errors import ConflictError, GovernanceError, InvalidRequestError, NotFoundError
from taskgov.hyperpod.model import ComputeQuotaConfig, SchedulerConfig
from taskgov.ports import Clock, ClusterBackend, DocumentStore, StateStore, Written
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.failures import left_out
from taskgov.services.plan_path import QuotaPath, first_writes, path_of, paths
from taskgov.services.restore_change import RestoreChange
from taskgov.services.same_cluster import require_cluster_of_plan, require_cluster_of_target
from taskgov.services.step_inputs import ReadPlan, stored_plan
from taskgov.services.wording import cut
from taskgov.services.write_records import WriteRecords
from taskgov.services.written_already import WrittenAlready, known, target_of
from taskgov.snapshot.records import RefusalError, RefusedWrite


class _RefusedForGoodError(Exception):
    """The service refused a write, and would refuse it again."""

    def __init__(self, error: GovernanceError) -> None:
        super().__init__(str(error))
        self.reason = RefusalError(error.refusal)


@dataclass(frozen=True, slots=True)
class ApplyChange:
    """Writes one change of a plan, under the lock of its run. Its fields are the ports it uses."""

    backends: ClusterBackend
    documents: DocumentStore
    state: StateStore
    clock: Clock
    read_plan: ReadPlan = stored_plan

    def __call__(self, request: ApplyChangeRequest) -> ApplyChangeResult:
        """Write change number `index` of the plan.

        Raises LockLostError before anything is written when another run took the cluster over, ConflictError when
        somebody changed the quota since the plan was made or its first write, InvalidRequestError for an index beyond
        the plan.
        """
        plan = self.plan(request)
        return self.write(plan, request, request.index, self.state.refusals(plan.cluster_arn, left_out))

    def plan(self, request: ApplyChangeRequest) -> Plan:
        """Return the plan that the request points to; raises as `stored_plan` does."""
        return self.read_plan(self.documents, request.plan)

    def write(
        self,
        plan: Plan,
        request: ApplyChangeRequest,
        index: int,
        refused_before: Iterable[RefusedWrite],
        known_paths: Mapping[str, QuotaPath] | None = None,
    ) -> ApplyChangeResult:
        """Write one change of a plan that was read before; raises what a call for it alone raises.

        `known_paths` are those of the plan by subject, for a caller that writes many of its changes.
        """
        require_cluster_of_plan(plan, request.cluster_arn)
        self._hold(request)
        change = _change(plan, index)
        require_cluster_of_target(self.backends, self.state, plan, change)
        path = known_paths[change.subject] if known_paths else path_of(plan.changes, change)
        if change.kind is ChangeKind.UPDATE_QUOTA and change.target_version is None:
            change = self._records.at_its_version(plan, change)
        try:
            written = self._write(plan, change, path)
        except _RefusedForGoodError as error:
            return self._refused(plan, change, error.reason, str(error))
        self._keep(plan, change, path, written)
        self._allow_again(plan, change, path, refused_before)
        return ApplyChangeResult(
            index=change.index,
            resource_id=written.resource_id,
            version_before=change.target_version,
            version_after=written.version,
            written=True,
        )

    def restore(self, request: ApplyChangeRequest) -> ApplyChangeResult:
        """Take change number `index` back; raises as a call does, and NotFoundError when what it wrote is gone."""
        self._hold(request)
        plan = self.plan(request)
        require_cluster_of_plan(plan, request.cluster_arn)
        change = _change(plan, request.index)
        require_cluster_of_target(self.backends, self.state, plan, change)
        return RestoreChange(self.backends, self.state, self._records)(plan, change, path_of(plan.changes, change))

    def _hold(self, request: ApplyChangeRequest) -> None:
        now = self.clock.now()
        self.state.hold_lock(request.cluster_arn, request.lock_owner, request.fencing_token, now, request.plan)

    @property
    def _records(self) -> WriteRecords:
        return WriteRecords(self.state, self.clock)

    def _keep(self, plan: Plan, change: Change, path: QuotaPath, written: Written) -> None:
        self.state.remember_resources(plan.cluster_arn, [written.resource_id])
        if isinstance(change.after, ComputeQuotaConfig) and change.kind not in DELETIONS:
            self._records.remember(plan, change, path, written)
        elif isinstance(change.after, SchedulerConfig) and change.kind not in DELETIONS:
            self._records.remember_policy(plan, change.after, written)

    def _refused(self, plan: Plan, change: Change, error: RefusalError, because: str) -> ApplyChangeResult:
        refused = refused_write(plan, change, error=error, because=because, at=self.clock.now())
        self.state.record_refusal(plan.cluster_arn, refused)
        return ApplyChangeResult(
            index=change.index,
            resource_id=change.resource_id or "",
            version_before=change.target_version,
            written=False,
            refused=f"{change.name} ({error}): {because}",
        )

    def _allow_again(self, plan: Plan, change: Change, path: QuotaPath, refused_before: Iterable[RefusedWrite]) -> None:
        """Forget an earlier refusal of what was written now."""
        wanted = wanted_of(change, path.changes)
        if any((refused.subject, refused.wanted) == (change.subject, wanted) for refused in refused_before):
            self.state.forget_refusal(plan.cluster_arn, change.subject)

    def _write(self, plan: Plan, change: Change, path: QuotaPath) -> Written:
        if change.kind in DELETIONS:
            return self._delete(plan, change)
        if change.target_version is not None:
            self._records.announce(plan, change, path, change.target_version + 1)
        try:
            with _refusing():
                return self._send(plan, change)
        except ConflictError:
            done = WrittenAlready(self.backends).of(plan, change, path)
            if done is None:
                raise
            return done

    def _send(self, plan: Plan, change: Change) -> Written:
        match change:
            case Change(kind=ChangeKind.CREATE_QUOTA, after=ComputeQuotaConfig() as config):
                return self.backends.create_quota(plan.cluster_arn, change.name, config, target_of(change))
            case Change(kind=ChangeKind.UPDATE_QUOTA, after=ComputeQuotaConfig() as config):
                return self.backends.update_quota(*known(change), config, target_of(change))
            case Change(kind=ChangeKind.CREATE_SCHEDULER_CONFIG, after=SchedulerConfig() as config):
                return self.backends.create_scheduler_config(plan.cluster_arn, change.name, config)
            case Change(kind=ChangeKind.UPDATE_SCHEDULER_CONFIG, after=SchedulerConfig() as config):
                return self.backends.update_scheduler_config(*known(change), config)
            case _:
                raise InvalidRequestError(f"change {change.index} of plan {plan.plan_id} is not a {change.kind}")

    def _delete(self, plan: Plan, change: Change) -> Written:
        """Delete what failed, unless it is another by now: deleting takes no version, so it is read before."""
        resource_id, version = known(change)
        try:
            status, now = self._status(plan, change, resource_id)
        except NotFoundError:
            return Written(resource_id, version)  # an earlier try deleted it
        if now == version and status in TO_DELETE:
            with _refusing():
                if change.kind is ChangeKind.DELETE_QUOTA:
                    self.backends.delete_quota(resource_id)
                else:
                    self.backends.delete_scheduler_config(resource_id)
        elif status != "Deleting":
            raise ConflictError(f"{change.name} has status {status} and version {now} by now; it is not deleted")
        return Written(resource_id, version)

    def _status(self, plan: Plan, change: Change, resource_id: str) -> tuple[str, int]:
        if change.kind is ChangeKind.DELETE_QUOTA:
            quota = self.backends.quota(resource_id)
            return quota.status, quota.compute_quota_version
        config = self.backends.scheduler_config(plan.cluster_arn)
        if config is None or config.cluster_scheduler_config_id != resource_id:
            raise NotFoundError(f"the cluster policy {change.name} is gone")
        return config.status, config.cluster_scheduler_config_version


@contextmanager
def _refusing() -> Iterator[None]:
    """Distinguish permanent errors from those that may pass."""
    try:
        yield
    except GovernanceError as error:
        if error.refusal:
            raise _RefusedForGoodError(error) from error
        raise


def _change(plan: Plan, index: int) -> Change:
    if index >= len(plan.changes):
        raise InvalidRequestError(f"plan {plan.plan_id} has {len(plan.changes)} changes; there is no number {index}")
    return plan.changes[index]


@dataclass(frozen=True, slots=True)
class ApplyChanges:
    """The use case over the one for a single change."""

    apply_change: ApplyChange
    claim: ClaimCluster

    def __call__(self, request: ApplyChangeRequest, is_late: Callable[[], bool] = lambda: False) -> ApplyChangesResult:
        """Go through at most `count` changes of one wave from `index` on; `is_late` ends the call before the next one.

        Raises what the first change raises. An error of a later one ends the call, so that the next call begins there
        and meets it alone.
        """
        plan = self.apply_change.plan(request)
        self.claim(plan.cluster_arn)
        refused_before = self.apply_change.state.refusals(plan.cluster_arn, left_out)
        counted = first_writes(plan.changes)
        known_paths = {path.subject: path for path in paths(plan.changes)}
        done = 0
        written: list[int] = []
        refused: list[str] = []
        for index in _indexes(request, plan):
            if done and is_late():
                break
            try:
                result = self.apply_change.write(plan, request, index, refused_before, known_paths)
            except GovernanceError:
                if not done:
                    raise
                break
            if result.refused is not None:
                refused.append(result.refused)
            if result.written and index in counted:
                written.append(index)
            done += 1
        following = request.index + done
        return ApplyChangesResult(
            next=following,
            written=len(written),
            changes=tuple(written),
            wave_ends=_wave(plan, following) != _wave(plan, request.index),
            refused=cut(refused),
        )


def _indexes(request: ApplyChangeRequest, plan: Plan) -> Iterable[int]:
    # The first one even beyond the plan: that is refused with its number.
    for index in range(request.index, request.index + request.count):
        if index != request.index and _wave(plan, index) != _wave(plan, request.index):
            return
        yield index


def _wave(plan: Plan, index: int) -> int | None:
    """Return the wave of a change; None beyond the plan."""
    return plan.changes[index].wave if 0 <= index < len(plan.changes) else None
