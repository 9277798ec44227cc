"""Write one plan that the stack made and left unwritten: under the cluster's lock, exactly its changes or none.

For a stack in `plan` mode, whose runs write nothing. The plan is made again from what there is now, with the document
that is in force; it is written only when its changes are those of the plan that was named, its guardrails let them
through, and nobody has to be asked. A write that fails, or does not take effect, ends it: what was written stands,
which is safe, and the next plan continues from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from taskgov.adapters.clock import SystemClock
from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.contracts.steps import Cause, Pointer
from taskgov.errors import GovernanceError
from taskgov.ports import RunRecord
from taskgov.services.end_of_run import WRITTEN_NAMED
from taskgov.services.plan_path import first_writes
from taskgov.services.plan_quotas import keep_plan
from taskgov.services.step_inputs import stored_plan
from taskgov.services.wording import shortened_error
from taskgov.services.written_in_run import WhatWasWritten, WrittenInRun
from taskgov.snapshot.records import Authorship
from taskgov_cli import live_reading
from taskgov_cli.applying.document import Ended
from taskgov_cli.deployed import RefusedError
from taskgov_cli.history import runs
from taskgov_cli.manual_lock import InterruptedByPersonError, locked
from taskgov_cli.manual_writes import ManualWrites

if TYPE_CHECKING:
    from datetime import datetime

    from taskgov.allocation.plan import Plan
    from taskgov_cli.deployed import Deployed
    from taskgov_cli.manual_lock import Held

LEFT_UNWRITTEN: Final = frozenset({"planned", "rolled-back"})
"""Outcomes of runs whose plan is not in force, and was stopped by nobody."""
HOW_APPROVED: Final = (
    "which only runs of a stack in apply mode request: sam deploy --parameter-overrides ApplyMode=apply"
)


@dataclass(frozen=True, slots=True)
class OnePlan:
    """A plan on record, and how to read its cluster again."""

    place: Deployed
    plan: Plan
    stack: str
    context: str | None
    by: str = ""
    """Who writes it, as the stack's entry attests it; empty as long as it is only shown."""

    def again(self) -> Plan:
        """Return the plan made again, as `apply` mode judges it.

        It keeps the id of the plan that was named, also when nothing is left to change. Raises RefusedError when it has
        other changes.
        """
        snapshot = live_reading.read_live(self.plan.cluster_arn, self.stack, self.context)
        if snapshot.policy_version is not None:
            known = self.place.state.authorship(snapshot.cluster.name, snapshot.policy_version)
            snapshot = replace(snapshot, authorship=known or Authorship())
        fresh = plan_quotas(snapshot, mode="apply", needs_approver=self.place.needs_approver)
        if fresh.changes and changes_sha256(fresh) != changes_sha256(self.plan):
            raise RefusedError(
                f"the changes of plan {self.plan.plan_id} are not what would be changed now: the cluster or the "
                f"document moved. Ask for a new plan: taskgov reconcile {self.plan.cluster_name}"
            )
        return replace(fresh, plan_id=self.plan.plan_id)

    def run(self) -> Ended:
        """Write it. Raises RefusedError, GovernanceError."""
        started = SystemClock().now()
        owner = f"{self.by} apply {self.plan.plan_id} {started.isoformat()}"
        with locked(self.place, self.plan.cluster_arn, owner) as held:
            fresh = self.again()  # a run may have written before the lock was ours
            if fresh.outcome is Outcome.NEEDS_APPROVAL:
                raise RefusedError(f"these changes need approval, {HOW_APPROVED}")
            if fresh.outcome is not Outcome.APPLY:
                return Ended(fresh.outcome.value, fresh.plan_id)
            pointer = keep_plan(self.place.documents, fresh)
            tried: list[int] = []
            ended = _write(ManualWrites(self.place, fresh.cluster_arn, pointer, held), fresh, tried)
            in_run = WrittenInRun(self.place.backends, self.place.state)
            written = in_run([fresh], started, SystemClock().now())
            # What was tried counts when it cannot be read now whether it was written.
            count = len(first_writes(fresh.changes) & set(tried)) if written.unknown else len(written.subjects)
            self.place.state.record_run(self._record(held, started, pointer, ended, written, count))
        return ended

    def _record(
        self, held: Held, started: datetime, pointer: Pointer, ended: Ended, written: WhatWasWritten, count: int
    ) -> RunRecord:
        run_id = f"apply-{held.token}"
        cause = Cause(
            event_id=run_id,
            source="taskgov.operator",
            detail_type="Apply",
            at=started,
            by=self.by,
            what=f"plan {self.plan.plan_id} applied by hand",
        )
        return RunRecord(
            cluster_arn=self.plan.cluster_arn,
            run_id=run_id,
            started_at=started,
            ended_at=SystemClock().now(),
            outcome=ended.outcome,
            cause=cause,
            plan=pointer,
            plan_id=ended.plan_id,
            applied=count,
            error=shortened_error("; ".join(filter(None, (ended.error, written.unknown))) or None),
            written=written.subjects[:WRITTEN_NAMED],
        )


def find(place: Deployed, plan_id: str, cluster: str | None) -> Plan:
    """Return a plan that a run made and did not write. Raises RefusedError."""
    for arn in place.arns(cluster):
        for run in runs(place, arn):
            if run.get("planId") != plan_id:
                continue
            if run["outcome"] not in LEFT_UNWRITTEN:
                raise RefusedError(
                    f"the run of plan {plan_id} ended `{run['outcome']}`, and only a plan that ended "
                    f"{' or '.join(f'`{outcome}`' for outcome in sorted(LEFT_UNWRITTEN))} can be applied. "
                    f"For a new plan: taskgov reconcile {place.name_of(arn)}"
                )
            return stored_plan(place.documents, Pointer.model_validate_json(run["plan"]))
    raise RefusedError(f"no run on record ended with plan {plan_id}; runs and their plans: taskgov history CLUSTER")


def _write(writes: ManualWrites, plan: Plan, tried: list[int]) -> Ended:
    """Write the plan wave by wave, as far as it goes; the indexes of what may have been written go to `tried`."""
    try:
        trouble = writes.apply(plan, tried)
    except InterruptedByPersonError as interruption:
        # Each prefix of a plan is safe: the next run continues from there.
        return Ended("stopped", plan.plan_id, str(interruption))
    except GovernanceError as error:
        trouble = f"{type(error).__name__}: {error}"
    return Ended("applied" if trouble is None else "unfinished", plan.plan_id, trouble)
