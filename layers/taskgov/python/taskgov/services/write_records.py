"""Keep the writes to a quota: announced before, recorded after. `apply_change` and `restore_change` call it."""

from dataclasses import dataclass, replace

from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import Change, Plan
from taskgov.allocation.sharing import within_budget
from taskgov.errors import ConflictError
from taskgov.hyperpod.equality import is_same_config, is_same_target
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig
from taskgov.ports import Clock, StateStore, Written
from taskgov.services.plan_path import QuotaPath
from taskgov.services.written_already import id_of, target_of
from taskgov.snapshot.records import AnnouncedWrite, AppliedPolicy, AppliedQuota


@dataclass(frozen=True, slots=True)
class WriteRecords:
    """The records of one cluster's quotas, by the time of one clock."""

    state: StateStore
    clock: Clock

    def announce(self, plan: Plan, change: Change, path: QuotaPath, version: int) -> None:
        """Keep what is about to be written: should the record of the write be lost, it is not taken for a person's.

        A quota without a record needs no announcement: it is nobody's edit.
        """
        if change.resource_id is None or not isinstance(change.after, ComputeQuotaConfig):
            return
        previous = self.state.applied_quota(plan.cluster_arn, change.resource_id)
        origin = path_before(change, path) if change.is_low else None
        sharing = within_budget(change.after, change.sharing_within_budget)
        announced = AnnouncedWrite(version, change.after, target_of(change), origin, sharing)
        if previous is not None and previous.version < version and previous.announced != announced:
            self.state.record_applied(plan.cluster_arn, replace(previous, announced=announced))

    def remember(self, plan: Plan, change: Change, path: QuotaPath, written: Written) -> None:
        """Keep what was written: later plans use it to detect edits by hand, and how far a quota fell in a period.

        A second try of a change that was written before keeps it once: the record of that version is there already.
        """
        quota_id = written.resource_id
        previous = self.state.applied_quota(plan.cluster_arn, quota_id)
        if previous is not None and _is_on_record(previous, plan, change, written):
            return
        applied = remember(
            change,
            previous,
            quota_id=quota_id,
            version=written.version,
            plan_id=plan.plan_id,
            now=self.clock.now(),
            path_before=path_before(change, path),
        )
        if plan.losses:  # somebody approved them with the plan
            applied = replace(applied, accepted_losses={loss.instance_type: loss.until for loss in plan.losses})
        self.state.record_applied(plan.cluster_arn, applied)

    def remember_announced(self, plan: Plan, change: Change, path: QuotaPath, written: Written) -> None:
        """Keep a write that was announced and made, and whose record was lost."""
        previous = self.state.applied_quota(plan.cluster_arn, written.resource_id)
        if previous is not None and previous.announced is not None and previous.announced.version == written.version:
            self.remember(plan, change, path, written)

    def remember_policy(self, plan: Plan, config: SchedulerConfig, written: Written) -> None:
        """Keep what was written to the cluster policy: a plan to come sees whether it had an effect."""
        policy = AppliedPolicy(written.resource_id, written.version, config, plan.plan_id, self.clock.now())
        self.state.record_policy(plan.cluster_arn, policy)

    def at_its_version(self, plan: Plan, change: Change) -> Change:
        """Return the second of two writes with the version at which it is made: the one that the first returned.

        An earlier try may have made it already; then it is given the version that it had, and is found to be done.
        Raises ConflictError when the record of the first write is missing, another plan's, or of something else.
        """
        record = self.state.applied_quota(plan.cluster_arn, id_of(change))
        if record is None or record.plan_id != plan.plan_id:
            raise ConflictError(f"the first of the two writes of {change.name} by plan {plan.plan_id} is not on record")
        if _is(record, change.before, change.target_before):
            return replace(change, target_version=record.version)
        if _is(record, change.after, change.target_after):
            return replace(change, target_version=record.version - 1)
        raise ConflictError(f"the record of {change.name} holds neither the first nor the second of its two writes")


def path_before(change: Change, path: QuotaPath) -> ComputeQuotaConfig | None:
    """Return what stood before the path that the change is part of, or before one that was broken off before it."""
    origin = change.began_from or path.before
    return origin if isinstance(origin, ComputeQuotaConfig) else None


def _is_on_record(previous: AppliedQuota, plan: Plan, change: Change, written: Written) -> bool:
    """Return whether this very write is on record; a quota that is made again may get a version that it had before."""
    same = previous.version == written.version and previous.plan_id == plan.plan_id
    return same and _is(previous, change.after, change.target_after)


def _is(record: AppliedQuota, config: object, target: ComputeQuotaTarget | None) -> bool:
    if not isinstance(config, ComputeQuotaConfig) or target is None:
        return False
    return is_same_target(record.target, target) and is_same_config(record.config, config)
