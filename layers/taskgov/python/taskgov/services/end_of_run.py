"""A run that has ended, as `publish_usage` gets it, and the record that the table keeps of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from taskgov.allocation.plan import Plan
from taskgov.contracts.steps import Cause, Pointer
from taskgov.ports import RunRecord
from taskgov.services.plan_path import QuotaPath, paths
from taskgov.services.wording import shortened_error

RunOutcome = Literal[
    "nothing-to-do",
    "planned",
    "needs-approval",
    "blocked",
    "applied",
    "progressing",
    "unfinished",
    "rejected",
    "expired",
    "unreadable",
    "failed",
]

WRITTEN_NAMED: Final = 100
"""Names of what was written in the record of a run; `applied` counts all, and its plan in the bucket names them."""


@dataclass(frozen=True, slots=True)
class EndOfRun:
    """A run that has ended, with its plan if it came to one."""

    cluster_arn: str
    cluster_name: str
    run_id: str
    outcome: RunOutcome
    applied: int
    """Quotas (or cluster policies) that were written; one that was written twice counts once."""
    started_at: datetime
    ended_at: datetime
    plan: Plan | None = None
    plan_pointer: Pointer | None = None
    snapshot_pointer: Pointer | None = None
    cause: Cause | None = None
    error: str | None = None
    written: tuple[str, ...] = ()
    """What was written (`Change.subject`), by all plans of the run; empty when it could not be read."""

    @property
    def identity(self) -> str:
        """What distinguishes it from other runs: one execution may run several times."""
        return f"end-of-run/{self.run_id}/{self.started_at.isoformat()}"

    @property
    def planned_changes(self) -> tuple[QuotaPath, ...]:
        """What its plan changes, by quota: one that is written twice is changed once. Nothing when it has no plan."""
        return paths(self.plan.changes) if self.plan else ()


def record_of(end: EndOfRun) -> RunRecord:
    """Return what the table keeps of the run."""
    return RunRecord(
        cluster_arn=end.cluster_arn,
        run_id=end.run_id,
        started_at=end.started_at,
        ended_at=end.ended_at,
        outcome=end.outcome,
        cause=end.cause,
        plan=end.plan_pointer,
        plan_id=end.plan.plan_id if end.plan else None,
        applied=end.applied,
        error=shortened_error(end.error),
        snapshot=end.snapshot_pointer,
        written=end.written[:WRITTEN_NAMED],
    )
