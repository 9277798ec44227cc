"""What is left of a run that was stopped, timed out or died: end its lease, withdraw its request, close its record.

Used by `receive_event` when Step Functions says that an execution ended, and at each hint when the owner of a lock
looks old: the event is best effort. Every step may be repeated: the owner stays on the item until a run takes over.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from taskgov.contracts.steps import Cause
from taskgov.errors import GovernanceError
from taskgov.hyperpod.equality import is_same_config
from taskgov.ports import Clock, ClusterBackend, Execution, Lock, RunRecord, StateStore, Workflow
from taskgov.services.failures import left_out
from taskgov.services.wording import MOST_NAMED, listed
from taskgov.snapshot.records import AppliedQuota, RefusedWrite


@dataclass(frozen=True, slots=True)
class EndedOwner:
    """Closes the run of a lock owner that has ended. Its fields are the ports it uses."""

    backends: ClusterBackend
    state: StateStore
    workflow: Workflow
    clock: Clock

    def of_hint(self, cluster_arn: str, lock: Lock, cause: Cause) -> bool:
        """Clear up after an owner that looks old and is over; say whether the lock is free for a run now.

        An owner that is not an execution is a person who writes by hand: only expiry frees it. Raises GovernanceError.
        """
        now = self.clock.now()
        if lock.asked_by is not None and (lock.asked_until or 0) > now.timestamp():
            self._withdraw(cluster_arn, lock.asked_by)
        if lock.owner is None:
            return True
        if not lock.looks_old(now):
            return not lock.is_held(now)
        execution = self.workflow.execution(lock.owner)
        if execution is None or not execution.is_over:
            return not lock.is_held(now)  # it may renew what was seen here: nobody else ends its lease
        return self._end(cluster_arn, lock, execution, cause) or not lock.is_held(now)

    def of_execution(self, cluster_arn: str, execution: Execution, cause: Cause) -> bool:
        """Clear up after an execution that is over; say whether it held the lock or had asked for an approval.

        Raises GovernanceError.
        """
        lock = self.state.lock_of(cluster_arn)
        if lock.owner == execution.arn:
            return self._end(cluster_arn, lock, execution, cause)
        return lock.asked_by == execution.arn and self.state.withdraw_request(cluster_arn, execution.arn)

    def _withdraw(self, cluster_arn: str, asked_by: str) -> None:
        execution = self.workflow.execution(asked_by)
        if execution is None or execution.is_over:
            self.state.withdraw_request(cluster_arn, asked_by)

    def _end(self, cluster_arn: str, lock: Lock, execution: Execution, cause: Cause) -> bool:
        """Keep the record before the lease ends: what comes after it would count as the next run's."""
        self._close(cluster_arn, lock, execution, cause)
        return self.state.end_lease(cluster_arn, lock)

    def _close(self, cluster_arn: str, lock: Lock, execution: Execution, cause: Cause) -> None:
        """Keep what the run wrote since its last record; one that has its record and wrote nothing more keeps it.

        Items that cannot be read are left out: one of them must not keep the lock from being freed.
        """
        run_id = f"{execution.name}-{lock.fencing_token}-stopped"
        last_run, last_end = self.state.last_run(cluster_arn, left_out) or ("", execution.started_at)
        since = max(last_end, execution.started_at)
        quotas = self.state.applied_quotas(cluster_arn, left_out)
        written = [record for record in quotas if record.at >= since]
        made, unknown = self._announced([record for record in quotas if record.announced is not None])
        policy = self.state.applied_policy(cluster_arn, left_out)
        with_policy = policy is not None and policy.at >= since
        refused = [refusal for refusal in self.state.refusals(cluster_arn, left_out) if refusal.at >= since]
        own_record = last_run.startswith(execution.name)
        if last_run == run_id or (
            own_record and execution.status in {"FAILED", "SUCCEEDED"} and not (written or refused)
        ):
            return
        plans = [record.plan_id for record in sorted(written, key=lambda applied: applied.at)]
        if lock.plan is not None:
            plans.append(PurePosixPath(lock.plan.key).parent.name)  # plans are stored under their id
        if policy is not None and with_policy and lock.plan is None:
            plans.append(policy.plan_id)
        self.state.record_run(
            RunRecord(
                cluster_arn=cluster_arn,
                run_id=run_id,
                started_at=since,
                ended_at=self.clock.now(),
                outcome="failed" if execution.status == "FAILED" else "stopped",
                cause=cause,
                plan=lock.plan,
                plan_id=plans[-1] if plans else None,
                applied=len({record.compute_quota_id for record in (*written, *made)}) + with_policy,
                error=_said(execution, written, made, unknown, refused, with_policy=with_policy),
            )
        )

    def _announced(self, records: list[AppliedQuota]) -> tuple[list[AppliedQuota], list[AppliedQuota]]:
        """Return the writes that were announced and made without a record, and those of which it is not known."""
        made, unknown = [], []
        for record in records[:MOST_NAMED]:
            announced = record.announced
            if announced is None or announced.version <= record.version:
                continue
            try:
                quota = self.backends.quota(record.compute_quota_id)
            except GovernanceError:
                unknown.append(record)
                continue
            at_it = quota.compute_quota_version == announced.version
            if at_it and is_same_config(quota.compute_quota_config, announced.config):
                made.append(record)
        return made, unknown


def _said(
    execution: Execution,
    written: list[AppliedQuota],
    made: list[AppliedQuota],
    unknown: list[AppliedQuota],
    refused: list[RefusedWrite],
    *,
    with_policy: bool,
) -> str:
    """Say what was written until the next run reads the cluster, and what was refused: teams, versions and reasons."""
    stands = [f"{record.target.team_name} at version {record.version}" for record in written]
    stands += [f"{record.target.team_name} at version {record.version + 1}" for record in made]
    parts = [f"the execution {execution.name} ended {execution.status} without a record of its own"]
    parts.append(f"written: {listed(stands)}" if stands else "no quota is on record as written")
    if with_policy:
        parts.append("the cluster policy was written")
    if unknown:
        names = [record.target.team_name for record in unknown]
        parts.append(f"announced, and not known whether written: {listed(names)}")
    if refused:
        parts.append(f"refused: {listed([f'{refusal.name} ({refusal.error})' for refusal in refused])}")
    return "; ".join(parts)
