"""See whether the writes of a plan have settled, and stand: judged by the versions that they returned.

A wave is judged by itself, right after it; a quota that is written twice by its last write (restoring: by what stood
before the first). What each case means is the table of
`taskgov.services.verdicts`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Plan
from taskgov.allocation.refusals import refused_write
from taskgov.contracts.steps import VerifyPlanRequest, VerifyPlanResult
from taskgov.errors import NotFoundError
from taskgov.hyperpod.model import (
    ComputeQuota,
)
from taskgov.ports import Clock, ClusterBackend, DocumentStore, StateStore
from taskgov.services.failures import left_out
from taskgov.services.fresh_quotas import fresh_quotas
from taskgov.services.plan_path import Direction, QuotaPath, paths
from taskgov.services.same_cluster import require_cluster_of_plan
from taskgov.services.step_inputs import ReadPlan, renew_lock, stored_plan
from taskgov.services.verdicts import Actual, Judged, Listed, Verdict, judge_path
from taskgov.services.wording import cut
from taskgov.services.written_already import IN_FLIGHT
from taskgov.snapshot.records import RefusalError
from taskgov.snapshot.unreadable import UnreadableObject, UnreadableObjectError


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """Compares what stands with what the plan wrote. Its fields are the ports it uses."""

    backends: ClusterBackend
    documents: DocumentStore
    state: StateStore
    clock: Clock
    read_plan: ReadPlan = stored_plan

    def __call__(self, request: VerifyPlanRequest, direction: Direction = Direction.APPLY) -> VerifyPlanResult:
        """Judge the wave that ended at `next`, and record what settled as failed.

        When restoring, it is the wave that was undone down to `next`. Raises LockLostError when another run has the
        lock of the request, ThrottledError, UpstreamError, NotFoundError, InvalidRequestError for a plan that cannot be
        read.
        """
        renew_lock(self.state, self.clock, request.cluster_arn, request)
        plan = self.read_plan(self.documents, request.plan)
        require_cluster_of_plan(plan, request.cluster_arn)
        world = self._world(plan)
        judged = [self._judged(world, path, direction) for path in self._gone_over(plan, request, direction)]
        if direction is Direction.APPLY:
            self._record(plan, judged)
        return VerifyPlanResult(
            settled=all(verdict_on.verdict is not Verdict.PENDING for verdict_on in judged),
            pending=_told(judged, Verdict.PENDING),
            refused=_told(judged, Verdict.REFUSED),
            edited=_told(judged, Verdict.EDITED),
            problems=_told(judged, Verdict.PROBLEM),
        )

    def _world(self, plan: Plan) -> "Listed":
        """Read what stands now, in a few calls whatever the number of changes."""
        changes_policy = any(change.kind in POLICY_KINDS for change in plan.changes)
        records = self.state.applied_quotas(plan.cluster_arn, left_out)
        odd: list[UnreadableObject] = []
        listed = self.backends.quotas(plan.cluster_arn, odd.append)
        fresh = fresh_quotas(self.backends, listed, records, self.clock.now(), odd.append)
        return Listed(
            plan_id=plan.plan_id,
            quotas=fresh.quotas,
            unasked=fresh.unasked,
            policy=self.backends.scheduler_config(plan.cluster_arn, odd.append) if changes_policy else None,
            records={record.compute_quota_id: record for record in records},
            applied_policy=self.state.applied_policy(plan.cluster_arn, left_out) if changes_policy else None,
            odd=tuple(odd),
        )

    def _gone_over(self, plan: Plan, request: VerifyPlanRequest, direction: Direction) -> tuple[QuotaPath, ...]:
        """Return what was gone over last, without what was refused when it was written.

        The waves before it were judged when they had settled; what people changed since is for the next plan to see.
        """
        found = _wave(plan, request.next, direction)
        if direction is Direction.RESTORE:
            return found
        refused = {
            refusal.subject
            for refusal in self.state.refusals(plan.cluster_arn, left_out)
            if refusal.plan_id == plan.plan_id and refusal.error is not RefusalError.FAILED_TO_SETTLE
        }
        return tuple(path for path in found if path.subject not in refused)

    def _record(self, plan: Plan, judged: Iterable[Judged]) -> None:
        """Record what settled as failed. Each call records the same, because an invocation may come twice."""
        for judgement in judged:
            if judgement.verdict is Verdict.REFUSED:
                refused = refused_write(
                    plan,
                    judgement.path.last,
                    error=RefusalError.FAILED_TO_SETTLE,
                    because=judgement.text,
                    at=self.clock.now(),
                )
                self.state.record_refusal(plan.cluster_arn, refused)

    def _judged(self, world: "Listed", path: QuotaPath, direction: Direction) -> Judged:
        unread = self._unread(world, path)
        if unread is None:
            return self._judge(world, path, direction)
        text = f"{path.first.name}: it is not known what stands: {unread.kind} {unread} (it cannot be read)"
        return Judged(path, Verdict.PROBLEM, text)

    def _judge(self, world: "Listed", path: QuotaPath, direction: Direction) -> Judged:
        first, last = path.first, path.last
        if direction is Direction.APPLY and last.kind in DELETIONS:
            return self._judge_deletion(path, world.deleted(last))
        if direction is Direction.APPLY:
            judged = judge_path(world, world.named(path), path, last.after, last.target_after)
            if judged.verdict not in {Verdict.REFUSED, Verdict.PROBLEM}:
                return judged
            # A list may be behind, and has no reasons: what should be recorded is described.
            return judge_path(world, self._now(world.named(path)), path, last.after, last.target_after)
        kept = world.deleted(first) if first.kind in DELETIONS else None
        if kept is not None:  # it was not deleted after all
            pending = kept.status in IN_FLIGHT
            return Judged(path, Verdict.PENDING if pending else Verdict.FINE, f"{kept.name} has status {kept.status}")
        if first.kind in DELETIONS and first.before is None and last is first:
            return Judged(path, Verdict.FINE)  # it never was in force
        return judge_path(world, world.named(path), path, first.before, first.target_before)

    def _judge_deletion(self, path: QuotaPath, listed: Actual | None) -> Judged:
        """Judge the deletion of what had failed; a list may still show what is gone, so it is described by itself."""
        actual = self._now(listed)
        if actual is None:
            return Judged(path, Verdict.FINE)
        if actual.status in IN_FLIGHT:
            return Judged(path, Verdict.PENDING, f"{actual.name} has status {actual.status}")
        reason = actual.failure_reason or "no reason given"
        return Judged(path, Verdict.REFUSED, f"{actual.name} is not deleted: status {actual.status}: {reason}")

    def _unread(self, world: "Listed", path: QuotaPath) -> UnreadableObject | None:
        """Return what may be this quota or policy and cannot be read; None where all that may be it was read.

        What else cannot be read is left out: the finding of each snapshot names it.
        """
        odd, quota_id = world.left_out(path), world.id_of(path)
        if not odd or path.is_policy or quota_id is None:
            return odd[0] if odd else None
        try:
            self.backends.quota(quota_id)
        except NotFoundError:
            return None
        except UnreadableObjectError as error:
            return error.odd
        return None

    def _now(self, listed: Actual | None) -> Actual | None:
        try:
            return self.backends.quota(listed.compute_quota_id) if isinstance(listed, ComputeQuota) else listed
        except NotFoundError:
            return None
        except UnreadableObjectError:  # then what the list says of it stands
            return listed


def _wave(plan: Plan, following: int | None, direction: Direction) -> tuple[QuotaPath, ...]:
    """Return the wave that ended before `following` (restoring: the one that was undone down to it); None: the plan."""
    changes = plan.changes
    if following is not None and direction is Direction.APPLY:
        changes = changes[: max(following, 0)]
        changes = tuple(change for change in changes if change.wave == changes[-1].wave)
    elif following is not None:
        changes = changes[following + 1 :]
        changes = tuple(change for change in changes if change.wave == changes[0].wave)
    return paths(changes)


def _told(judged: Iterable[Judged], verdict: Verdict) -> tuple[str, ...]:
    return cut([judgement.text for judgement in judged if judgement.verdict is verdict])
