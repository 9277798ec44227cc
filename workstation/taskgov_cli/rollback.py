"""`taskgov rollback`: undo what a plan changed, last wave first, under the cluster's lock.

Shown only, unless `--yes` is given. It is all or nothing at the start: when any quota is no longer what the plan wrote,
nothing is restored, because a part of a plan could promise more than there is; nor when the whole would, because what
the plan freed was given to another team since, or nodes were lost. The way back is the way that the plan went: each
wave settles before the one before it is restored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from taskgov.adapters.clock import SystemClock
from taskgov.allocation.wording import said_number
from taskgov.contracts.steps import Cause, Pointer
from taskgov.errors import GovernanceError
from taskgov.ports import RunRecord
from taskgov.services.plan_path import paths
from taskgov.services.step_inputs import stored_plan
from taskgov.services.wording import shortened_error
from taskgov_cli.change_states import ChangeSince, ChangeState, change_states
from taskgov_cli.deployed import OfCluster, PlanId, RefusedError, StackName, deployed, told
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, unfolded
from taskgov_cli.grid import table
from taskgov_cli.history import runs
from taskgov_cli.manual_lock import locked
from taskgov_cli.manual_writes import ManualWrites
from taskgov_cli.operate import switch_of, turn
from taskgov_cli.orders import by_hand
from taskgov_cli.output import NO, OK, AsJson, print_error, working
from taskgov_cli.plans import said_kind, said_wave
from taskgov_cli.restored_sums import restored_sums
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.console import RenderableType

    from taskgov.allocation.plan import Plan
    from taskgov_cli.deployed import Deployed
    from taskgov_cli.manual_lock import Held

WORDS: Final = {
    ChangeState.STANDS: Text("will be restored", style="cyan"),
    ChangeState.AS_BEFORE: Text("is as before the plan", style="green"),
    ChangeState.CHANGED_SINCE: Text("was changed since", style="red"),
}
NOT_RESTORED: Final = Text("is as the plan wrote it")
RESTORED: Final = Text("restored", style="green")
NOT_SURE: Final = Text("should be restored", style="yellow")


@dataclass(frozen=True, slots=True)
class End:
    """What the command did."""

    done: bool
    written: int
    """How many quotas were restored."""
    error: str | None
    stopped: bool
    """Whether the stop switch is on."""
    excess: str | None
    """What it would have guaranteed beyond the capacity."""
    is_blocked: bool


@dataclass(frozen=True, slots=True)
class Rollback:
    """A plan to roll back."""

    place: Deployed
    plan: Plan
    pointer: Pointer
    by: str = ""
    """Who takes it back, as the stack's entry attests it; empty as long as it is only shown."""

    def changes(self) -> list[ChangeSince]:
        """Return the plan's changes with what they are now, last first. Raises GovernanceError."""
        return change_states(self.place.backends, self.plan)

    def excess(self, changes: list[ChangeSince]) -> str | None:
        """Return what taking these changes back would guarantee beyond the capacity. Raises RefusedError."""
        stands = [entry.change for entry in changes if entry.state is ChangeState.STANDS]
        return restored_sums(self.place, self.plan.cluster_arn, stands).excess() if stands else None

    def run(self) -> tuple[int, str | None]:
        """Restore what stands and record it: how many quotas were written, and what went wrong. Raises RefusedError."""
        started = SystemClock().now()
        owner = f"{self.by} rollback {self.plan.plan_id} {started.isoformat()}"
        with locked(self.place, self.plan.cluster_arn, owner) as held:
            changes = self.changes()  # again: a run may have written before the lock was ours
            blocked = why_not(self.plan, changes, self.excess(changes))
            if blocked is not None:
                raise RefusedError(blocked)
            to_restore = [entry for entry in changes if entry.state is ChangeState.STANDS]
            written, error = self._restore(held, to_restore)
            self.place.state.record_run(self._record(held, started, written, error))
        return written, error

    def _restore(self, held: Held, to_restore: list[ChangeSince]) -> tuple[int, str | None]:
        writes = ManualWrites(self.place, self.plan.cluster_arn, self.pointer, held)
        written: list[int] = []
        try:
            error = writes.restore(self.plan, {entry.change.index for entry in to_restore}, written)
        except GovernanceError as problem:
            error = f"{type(problem).__name__}: {problem}"
        return len({self.plan.changes[index].subject for index in written}), error

    def _record(self, held: Held, started: datetime, written: int, error: str | None) -> RunRecord:
        run_id = f"rollback-{held.token}"
        what = f"rollback of {self.plan.plan_id} by hand"
        return RunRecord(
            cluster_arn=self.plan.cluster_arn,
            run_id=run_id,
            started_at=started,
            ended_at=SystemClock().now(),
            outcome="rollback-failed" if error else "rolled-back",
            cause=Cause(
                event_id=run_id,
                source="taskgov.operator",
                detail_type="Rollback",
                at=started,
                by=self.by,
                what=what,
            ),
            plan=self.pointer,
            plan_id=self.plan.plan_id,
            applied=written,
            error=shortened_error(error),
        )


def rollback(
    plan_id: PlanId,
    stack: StackName = DEFAULT_STACK,
    cluster: OfCluster = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without --yes, it is only shown.")] = False,
    stop: Annotated[
        bool, typer.Option("--stop", help="Turn the stop switch on first, so that no run applies the plan again.")
    ] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Undo a plan: restore each quota to its value before, last wave first.

    Example: taskgov rollback plan-0123456789abcdef --stop --yes
    """
    with told():
        with working("reading the quotas"):
            job = _job(deployed(stack), plan_id, cluster)
            changes = job.changes()
            excess = job.excess(changes)
        written, error, blocked = 0, None, why_not(job.plan, changes, excess)
        done = yes and blocked is None and any(entry.state is ChangeState.STANDS for entry in changes)
        if done:
            job = replace(job, by=by_hand(job.place, "rollback", job.plan.cluster_arn, plan_id))
        if yes and blocked is None and stop:
            turn(job.place, on=True, reason=f"rollback of {plan_id}")
        if done:
            with working("restoring the quotas; each wave settles before the next"):
                written, error = job.run()
        stopped = bool(switch_of(job.place)["on"])
    ended = End(done, written, error, stopped, excess, blocked is not None)
    data = _as_data(job, changes, ended)
    parts = [*_shown(job, changes, ended)]
    if blocked is not None and not yes:
        parts.append(unfolded(f"Nothing was written, and nothing can be: {blocked}"))
    answer(lambda: data, parts, form, as_json=as_json)
    if blocked is not None and yes:
        print_error("Refused", blocked)
    raise typer.Exit(NO if error or blocked else OK)


def why_not(plan: Plan, changes: list[ChangeSince], excess: str | None = None) -> str | None:
    """Say why nothing of a plan can be restored; None where it can."""
    foreign = [entry.change.name for entry in changes if entry.state is ChangeState.CHANGED_SINCE]
    if foreign:
        said = (
            f"{', '.join(dict.fromkeys(foreign))} of plan {plan.plan_id} changed since; restoring the rest could "
            "guarantee more than there is"
        )
    elif excess is not None:
        said = (
            f"restoring plan {plan.plan_id} would guarantee {excess}: another team was given what it freed, or nodes "
            "were lost"
        )
    else:
        return None
    later = f"Roll back the later plan first (taskgov history {plan.cluster_name})"
    return f"{said}. {later}, or correct the policy document"


def _job(place: Deployed, plan_id: str, cluster: str | None) -> Rollback:
    for arn in place.arns(cluster):
        for run in runs(place, arn):
            if run.get("planId") == plan_id and "plan" in run:  # one that was stopped before it wrote has none
                pointer = Pointer.model_validate_json(run["plan"])
                return Rollback(place, stored_plan(place.documents, pointer), pointer)
    raise RefusedError(f"no run on record ended with plan {plan_id}; runs and their plans: taskgov history CLUSTER")


def _as_data(job: Rollback, changes: list[ChangeSince], ended: End) -> dict[str, Any]:
    return {
        "planId": job.plan.plan_id,
        "clusterArn": job.plan.cluster_arn,
        "changes": [
            {
                "index": entry.change.index,
                "wave": entry.change.wave,
                "isLow": entry.change.is_low,
                "kind": entry.change.kind,
                "name": entry.change.name,
                "team": entry.change.team,
                "gpusBefore": entry.change.gpus_before,
                "gpusAfter": entry.change.gpus_after,
                "standing": entry.state,
            }
            for entry in changes
        ],
        "done": ended.done,
        "written": ended.written,
        "error": ended.error,
        "excess": ended.excess,
        "stopSwitch": ended.stopped,
    }


def _shown(job: Rollback, changes: list[ChangeSince], ended: End) -> Iterator[RenderableType]:
    rows = [
        (
            str(entry.change.index + 1),
            said_wave(entry.change),
            entry.change.team or entry.change.name,
            said_kind(entry.change),
            said_number(entry.change.gpus_after),
            said_number(entry.change.gpus_before),
            _words(entry.state, ended),
        )
        for entry in changes
    ]
    columns = ("change #", "wave #", "team", "operation", "GPUs after #", "GPUs before #", "quota")
    yield table(f"Plan {job.plan.plan_id} on {job.plan.cluster_name}, last change first", columns, rows, main=True)
    yield from map(unfolded, _closing_lines(job.plan, changes, ended))


def _words(standing: ChangeState, ended: End) -> Text:
    if standing is ChangeState.STANDS and ended.is_blocked:
        return NOT_RESTORED
    if standing is ChangeState.STANDS and ended.done:
        return NOT_SURE if ended.error else RESTORED
    return WORDS[standing]


def _closing_lines(plan: Plan, changes: list[ChangeSince], ended: End) -> list[str]:
    if ended.is_blocked:
        return []
    if not ended.done and not any(entry.state is ChangeState.STANDS for entry in changes):
        return ["There is nothing to restore."]
    if not ended.done:
        return [f"Nothing was written. To do it: taskgov rollback {plan.plan_id} --yes --stop"]
    count = len(paths(plan.changes))
    result = f"Restored {ended.written} of {count}; it is on record: taskgov history {plan.cluster_name}"
    lines = [result if ended.error is None else f"{result}\nIt is not complete: {ended.error}"]
    if ended.stopped:
        lines.append("The stop switch is on. When the policy document is right again: taskgov stop off")
    else:
        lines.append(
            "The stop switch is off: in apply mode, the next run applies the document again. To prevent it: "
            "taskgov stop on"
        )
    return lines
